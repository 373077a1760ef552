"""The evidence pages, generated from replays, trips and trained models."""
