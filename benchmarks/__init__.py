"""Benchmarks: every row is measured beside its peers in the same run. `make bench`."""
