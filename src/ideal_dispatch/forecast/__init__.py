"""Numpy forward pass of a trained model: no torch at dispatch time."""
