"""Versions of the audit's tables."""
