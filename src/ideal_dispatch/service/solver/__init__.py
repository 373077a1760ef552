"""The solver: a process that has the city, the model and the traffic, and gives advice."""
