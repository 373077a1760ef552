"""A city that lives against a service: its calls and its units, by the public API alone."""
