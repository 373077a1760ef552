"""The dispatchers' desk: its files, its news, and simulated calls."""
