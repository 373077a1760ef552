"""Is recorded traffic like real traffic? The plausibility page of a recording."""
