"""Every drawing: arrays, names and numbers in, a file out.

matplotlib is imported when something is drawn.
"""

from hytas.pictures.charts import draw_confusion, draw_family, draw_front
from hytas.pictures.fonts import font_note
from hytas.pictures.maps import Legend, colour_map, draw_map, map_png, picture_png
from hytas.pictures.style import PICTURES

__all__ = [
    "PICTURES",
    "Legend",
    "colour_map",
    "draw_confusion",
    "draw_family",
    "draw_front",
    "draw_map",
    "font_note",
    "map_png",
    "picture_png",
]
