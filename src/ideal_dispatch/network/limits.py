"""Limits of places on a network; settings know them without loading arrays."""

SNAP_LIMIT_M = 300.0
"""How far a place may lie from the road it is put on, where nothing else is said."""
