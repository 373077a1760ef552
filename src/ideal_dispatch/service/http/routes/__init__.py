"""The API, a module for each thing that it speaks about."""
