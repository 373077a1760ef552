"""Units of a fleet, one by one: where they are, what they do, who is promised to whom."""
