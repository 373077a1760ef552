"""Who was advised what, when and why: append-only rows, chained by hashes, never lost."""
