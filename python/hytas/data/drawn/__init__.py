"""Ground truth as people draw it: polygons and points with a class, burnt into a label map."""
