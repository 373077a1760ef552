"""Drawing a fictional city: streets on a chart, junctions, lanes, directions, names."""
