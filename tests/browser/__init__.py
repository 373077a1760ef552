"""The desk in a real browser, against the real service."""
