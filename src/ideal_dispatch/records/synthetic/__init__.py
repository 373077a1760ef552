"""Records, unit logs and weather that never were: to try the software with, and for tests."""
