"""The report of a training: what was measured, its figures and its page."""
