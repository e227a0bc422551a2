"""Labels of scenes: maps, pictures, and vector labels (polygons and points), on the cube's grid."""

from hytas.data.labels.maps import LabelMap, Labels, check_map, join

__all__ = ["LabelMap", "Labels", "check_map", "join"]
