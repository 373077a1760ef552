"""The whole fleet over years: calls, units, hospitals, second units, and what they cost others."""
