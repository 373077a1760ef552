"""A player: the calls, units and dispatcher of a city, against a service, by its API alone."""
