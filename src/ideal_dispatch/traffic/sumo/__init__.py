"""Traffic simulated by SUMO (the ``sumo`` extra); plans can be made without it."""
