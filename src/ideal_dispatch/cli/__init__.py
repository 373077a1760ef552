"""The ``ideal`` command: one module a command group."""
