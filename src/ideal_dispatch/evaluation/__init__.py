"""What replays show: metrics, tests, tables, figures, one page."""
