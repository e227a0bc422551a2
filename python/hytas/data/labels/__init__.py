"""Labels of scenes: maps, pictures, and vector labels (polygons and points), on the cube's grid."""
