"""What makes the embedded city and the evidence pages: kept and tested, not in the wheel."""
