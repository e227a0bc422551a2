"""Every drawing: arrays, names and numbers in; SVG, PNG or PDF out.

matplotlib and Pillow are imported when something is drawn.
"""

from hytas.pictures.charts import draw_family, draw_front
from hytas.pictures.figures import PICTURES
from hytas.pictures.maps import Legend, colour_map, draw_map, map_png, picture_png

__all__ = [
    "PICTURES",
    "Legend",
    "colour_map",
    "draw_family",
    "draw_front",
    "draw_map",
    "map_png",
    "picture_png",
]
