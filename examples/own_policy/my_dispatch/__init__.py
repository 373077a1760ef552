"""A policy, a traffic source and a weather provider of one's own."""
