"""Traffic: what routers say and what the streets do, behind one protocol."""
