"""The embedded city is drawn here: streets on a chart, junctions, lanes, directions, names."""
