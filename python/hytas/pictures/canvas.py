"""The page that pictures are drawn on: written as SVG, PNG or PDF."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from hytas.files import atomic_write, legible, write_text
from hytas.pictures.fonts import open_font, pieces, text_width

if TYPE_CHECKING:
    from PIL.Image import Image

INK, GREY, PALE = "#222222", "#888888", "#dddddd"
PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of the files that a picture can be written to."""
_FONTS = "'DejaVu Sans',Verdana,system-ui,sans-serif"
_PDF_DPI = 150
Points = Sequence[tuple[float, float]]


class Shape(Protocol):
    """What a canvas holds."""

    def svg(self) -> str:
        """Return the element of an SVG."""

    def paint(self, image: "Image", scale: float) -> None:
        """Paint the shape, `scale` times as large, into an image."""


class Line(NamedTuple):
    """A line through points, or an area within them."""

    points: Points
    stroke: str | None
    fill: str | None
    width: float
    dash: str
    opacity: float

    def svg(self) -> str:
        """Return the element of an SVG."""
        kind = "polygon" if self.fill else "polyline"
        spots = " ".join(f"{x:g},{y:g}" for x, y in self.points)
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        faint = f' opacity="{self.opacity:g}"' if self.opacity < 1 else ""
        edge = f' stroke="{self.stroke}" stroke-width="{self.width:g}"' if self.stroke else ""
        return f'<{kind} points="{spots}" fill="{self.fill or "none"}"{edge}{dash}{faint}/>'

    def paint(self, image: "Image", scale: float) -> None:
        """Paint the line; dashes are drawn through, and areas are opaque."""
        from PIL import ImageDraw

        draw = ImageDraw.Draw(image)
        spots = [(scale * x, scale * y) for x, y in self.points]
        if self.fill:
            # Pillow fills the last row and column, too; an SVG ends before them.
            right, bottom = np.max(spots, axis=0)
            draw.polygon([(x - (x == right), y - (y == bottom)) for x, y in spots], self.fill)
        if self.stroke:
            closed = [*spots, spots[0]] if self.fill else spots
            draw.line(closed, self.stroke, max(1, round(scale * self.width)))


class Text(NamedTuple):
    """A text on one line; `y` is its base line. A turned one runs upwards."""

    x: float
    y: float
    text: str
    size: int
    anchor: str
    turned: bool
    colour: str

    def svg(self) -> str:
        """Return the element of an SVG."""
        place = f'x="{self.x:g}" y="{self.y:g}"'
        if self.turned:
            place = f'transform="translate({self.x:g} {self.y:g}) rotate(-90)"'
        anchor = "" if self.anchor == "start" else f' text-anchor="{self.anchor}"'
        size = f'font-size="{self.size}" fill="{self.colour}"'
        return f"<text {place} {size}{anchor}>{escape(self.text)}</text>"

    def paint(self, image: "Image", scale: float) -> None:
        """Paint the text, each character in a font that has it."""
        from PIL import Image as Images
        from PIL import ImageDraw

        size = round(scale * self.size)
        length = text_width(self.text, size)
        before = {"start": 0.0, "middle": length / 2, "end": length}[self.anchor]
        mask = Images.new("L", (int(length) + 2 * size, 3 * size))
        draw, at = ImageDraw.Draw(mask), float(size)
        for path, part in pieces(self.text):
            font = open_font(path, size)
            draw.text((at, 2 * size), part, 255, font, anchor="ls")
            at += font.getlength(part)
        x, y = scale * self.x, scale * self.y
        if self.turned:
            mask = mask.transpose(Images.Transpose.ROTATE_90)
            corner = (x - 2 * size, y + before - mask.height + size)
        else:
            corner = (x - before - size, y - 2 * size)
        image.paste(self.colour, (round(corner[0]), round(corner[1])), mask)


class Pixels(NamedTuple):
    """A picture (H, W, 3), each of its pixels a square of `zoom`."""

    x: float
    y: float
    zoom: int
    colours: NDArray[np.uint8]

    def svg(self) -> str:
        """Return the element of an SVG."""
        height, width = self.zoom * self.colours.shape[0], self.zoom * self.colours.shape[1]
        source = base64.b64encode(picture_png(self.colours)).decode()
        return (
            f'<image x="{self.x:g}" y="{self.y:g}" width="{width}" height="{height}" '
            f'preserveAspectRatio="none" image-rendering="pixelated" '
            f'href="data:image/png;base64,{source}"/>'
        )

    def paint(self, image: "Image", scale: float) -> None:
        """Paint the picture without mixing colours."""
        from PIL import Image as Images

        height, width = self.colours.shape[:2]
        size = round(scale * self.zoom * width), round(scale * self.zoom * height)
        picture = Images.fromarray(self.colours).resize(size, Images.Resampling.NEAREST)
        image.paste(picture, (round(scale * self.x), round(scale * self.y)))


_MARKS: dict[str, Points] = {
    "square": ((-3, -3), (3, -3), (3, 3), (-3, 3)),
    "diamond": ((0, -4), (4, 0), (0, 4), (-4, 0)),
    "up": ((0, -4), (4, 3), (-4, 3)),
    "down": ((0, 4), (4, -3), (-4, -3)),
    "round": [
        (3.5 * float(np.cos(turn)), 3.5 * float(np.sin(turn)))
        for turn in np.linspace(0, 2 * np.pi, 16, endpoint=False)
    ],
}
MARKS = tuple(_MARKS)
"""Names of the marks."""


class Canvas:
    """A white page of `width` by `height` pixels; what is drawn later lies above.

    The same drawing gives the same file.
    """

    def __init__(self, width: float, height: float) -> None:
        """Begin an empty page."""
        self.width, self.height = round(width), round(height)
        self._shapes: list[Shape] = []

    def line(self, points: Points, colour: str = PALE, width: float = 1.0, dash: str = "") -> None:
        """Draw a line through points (x, y)."""
        self._shapes.append(Line(points, colour, None, width, dash, 1.0))

    def area(
        self, points: Points, fill: str, edge: str | None = None, opacity: float = 1.0
    ) -> None:
        """Fill the area within points (x, y)."""
        self._shapes.append(Line(points, edge, fill, 1.0, "", opacity))

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, edge: str | None = None
    ) -> None:
        """Fill a rectangle."""
        right, below = x + width, y + height
        self.area([(x, y), (right, y), (right, below), (x, below)], fill, edge)

    def mark(self, name: str, x: float, y: float, colour: str) -> None:
        """Draw a small mark, one of `MARKS`."""
        self.area([(round(x + dx, 1), round(y + dy, 1)) for dx, dy in _MARKS[name]], colour)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 11,
        anchor: str = "start",
        turned: bool = False,
        colour: str = INK,
    ) -> None:
        """Write a text on one line.

        Args:
            x: place of the anchor.
            y: of the base line.
            size: of the font, in pixels.
            anchor: "start", "middle" or "end".
            turned: write from below to above.
        """
        self._shapes.append(
            Text(round(x, 1), round(y, 1), legible(text), size, anchor, turned, colour)
        )

    def pixels(self, x: float, y: float, zoom: int, colours: NDArray[np.uint8]) -> None:
        """Draw a picture (H, W, 3), `zoom` times as large."""
        self._shapes.append(Pixels(x, y, zoom, colours))

    def svg(self) -> str:
        """Return the page as the text of an SVG; its letters are those of the reader's machine."""
        size = f'width="{self.width}" height="{self.height}"'
        view = f'viewBox="0 0 {self.width} {self.height}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="{_FONTS}">',
            f'<rect {size} fill="#ffffff"/>',
            *(shape.svg() for shape in self._shapes),
            "</svg>\n",
        ]
        return "\n".join(lines)

    def write(self, path: str | Path, scale: float = 1.0) -> Path:
        """Write the page.

        Args:
            path: .png, .svg or .pdf; replaced as a whole.
            scale: pixels of a PNG or PDF for one of the page.
        """
        path = Path(path)
        if path.suffix.lower() == ".svg":
            write_text(path, self.svg())
            return path
        from PIL import Image

        image = Image.new("RGB", (round(scale * self.width), round(scale * self.height)), "white")
        for shape in self._shapes:
            shape.paint(image, scale)
        # Else the same drawing gives another file.
        plain: dict[str, Any] = dict.fromkeys(("title", "creationDate", "modDate"))
        with atomic_write(path) as temporary:
            if path.suffix.lower() == ".pdf":
                image.save(temporary, format="PDF", resolution=_PDF_DPI, **plain)
            else:
                image.save(temporary, format="PNG", optimize=True)
        return path


def picture_png(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture (H, W, 3 or 4) as a PNG of as many pixels."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(picture).save(content, format="png", optimize=True)
    return content.getvalue()
