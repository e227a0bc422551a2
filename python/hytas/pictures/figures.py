"""Figures of matplotlib: SVG for pages, and SVG, PNG or PDF files.

matplotlib is imported when something is drawn. The same drawing gives the same bytes.
"""

import functools
import io
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hytas.files import atomic_write, legible, write_text

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

    from hytas.types import Floats

PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of the files that a picture can be written to."""
INK, SOFT, LINE, GROUND = "#1d2025", "#59606b", "#d5d9e0", "#ffffff"
ACCENT, SECOND = "#0b62a4", "#b4530a"
_THEME = {INK: "ink", SOFT: "soft", LINE: "line", GROUND: "ground", ACCENT: "accent"}
_THEME |= {SECOND: "second"}
"""Variables of the style of a page that take the place of colours."""
_NO_METADATA = {
    ".svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    ".png": dict.fromkeys(("Software",)),
    ".pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}
_LOG_FROM = 50
"""Positive values whose ends are so many times apart are drawn on a logarithmic axis."""

_SCRIPTS = re.compile("Noto Sans|CJK|Source Han|WenQuanYi|Unifont|Arial Unicode|PingFang|YaHei")
"""Names of fonts of further scripts."""


@contextmanager
def figure(width: float, height: float, layout: Any = "constrained") -> Iterator["Figure"]:
    """Yield a figure of `width` by `height` points; the settings of the user do not change it.

    Draw and write it inside.

    Args:
        layout: of matplotlib; None leaves axes where they are put.
    """
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sheet = str(files("hytas.pictures") / "hytas.mplstyle")
    with style.context(["default", sheet, {"font.family": _families()}]), warnings.catch_warnings():
        # A box stands for a character that no font has.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ ", category=UserWarning)
        drawing = Figure(figsize=(width / 72, height / 72), layout=layout, facecolor=GROUND)
        FigureCanvasAgg(drawing)
        yield drawing


def write(drawing: "Figure", path: str | Path, dpi: float = 150) -> Path:
    """Write a figure.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        dpi: of a PNG.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".svg":
        write_text(path, svg(drawing) + "\n")
        return path
    with atomic_write(path) as temporary:
        drawing.savefig(temporary, format=suffix[1:], dpi=dpi, metadata=_NO_METADATA[suffix])
    return path


def tag(artist: "Artist", kind: str, title: str = "") -> None:
    """Give what is drawn a class and a title in an SVG."""
    artist.set_gid(f"{kind}|{legible(title)}")


def svg(drawing: "Figure") -> str:
    """Return a figure as the text of an SVG; its letters are those of the reader's machine."""
    content = io.StringIO()
    drawing.savefig(content, format="svg", metadata=_NO_METADATA[".svg"])
    text = content.getvalue()
    text = text[text.index("<svg") :].rstrip()  # the declarations before it name a web address
    text = re.sub(r"\s*\n\s*", "\n", text).replace(">\n<", "><")
    text = re.sub(r' d="([^"]*)"', _short_path, text)
    text = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", text)
    text = re.sub(r' id="[\w.]+_\d+"', "", text)
    return re.sub(r"<g id=([\"'])([\w ]+)\|((?:(?!\1).)*)\1>", _titled, text)


def _short_path(path: re.Match[str]) -> str:
    """Return a path with places of one decimal; a point is `M1 2h0`."""
    places = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", path[1])
    short = re.sub(r"\s*([MLCQz])\s*", r"\1", places).strip()
    short = re.sub(r"M([^ML]+)L\1(?=M|$)", r"M\1h0", short)
    return f' d="{short}"'


def _titled(group: re.Match[str]) -> str:
    title = f"<title>{group[3]}</title>" if group[3] else ""
    return f'<g class="{group[2]}">{title}'


def inline_svg(drawing: "Figure", kind: str, label: str, extra: str = "", **data: str) -> str:
    """Return a figure as an element of a page, in the colours and fonts of the page.

    Args:
        kind: class of the element.
        label: what it shows, for who does not see it.
        extra: elements that are drawn last.
        data: attributes `data-NAME` of the element.
    """
    drawing.set_facecolor("none")
    text = re.sub(r"<defs><style.*?</style></defs>", "", svg(drawing))  # is of the whole page
    text = re.sub(r" font-family: [^\";]*;", "", text)
    for colour, name in _THEME.items():
        text = text.replace(colour, f"var(--{name})")
    named = {"class": kind, "role": "img", "aria-label": legible(label)}
    named |= {f"data-{name}": value for name, value in data.items()}
    attributes = " ".join(f'{name}="{escape(value)}"' for name, value in named.items())
    inside = text[text.index(">") + 1 :].removesuffix("</svg>")
    size = drawing.get_size_inches() * 72
    view = f'viewBox="0 0 {size[0]:g} {size[1]:g}"'
    return f"<svg {view} {attributes}>{inside}{extra}</svg>"


def spots(axes: "Axes", across: Any, up: Any) -> "Floats":
    """Return where values lie in an SVG: (n, 2), points from the left and from the top."""
    places = axes.transData.transform(np.column_stack([across, up]))
    height = axes.figure.bbox.height
    return np.round(np.column_stack([places[:, 0], height - places[:, 1]]), 1)


def short(value: float, place: object = None) -> str:
    """Return a number in few characters: 1.5M, 20K, 0.93."""
    if abs(value) < 1e4:
        return f"{value:.4g}"
    size, sign = next(
        pair for pair in ((1e9, "G"), (1e6, "M"), (1e3, "K")) if abs(value) >= pair[0]
    )
    return f"{value / size:.4g}{sign}"


def scale(axes: "Axes", name: str, values: Iterable[float], log: bool | None = None) -> None:
    """Give an axis short numbers.

    Args:
        name: "x" or "y".
        log: make the axis logarithmic; None does so if values are positive and far apart.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    axis = axes.xaxis if name == "x" else axes.yaxis
    finite = [value for value in values if math.isfinite(value)] or [1.0]
    low, high = min(finite), max(finite)
    if log if log is not None else low > 0 and high / low >= _LOG_FROM:
        axes.set(**{f"{name}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1e4 * low else (1,)))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(short)


def add_points(axes: "Axes", across: Any, up: Any) -> None:
    """Draw very many points in few bytes: a path of class "points", a move each."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    places = np.repeat(np.column_stack([across, up]), 2, axis=0)
    codes = np.tile([Outline.MOVETO, Outline.LINETO], len(places) // 2)
    points = PathPatch(Outline(places, codes), edgecolor=ACCENT, linewidth=4, capstyle="round")
    points.set(alpha=0.45, fill=False, clip_on=False)
    tag(axes.add_patch(points), "points")


def add_labels(
    axes: "Axes",
    labels: Sequence[tuple[float, float, str]],
    offsets: Sequence[tuple[float, float]],
) -> None:
    """Write texts next to their points, the first one first.

    Each text lies at the first of the offsets where it covers no point and no other text. It is
    left out where there is none.

    Args:
        labels: (across, up, text) of each.
        offsets: points to the right and upwards.
    """
    from matplotlib.transforms import Bbox

    axes.autoscale_view()
    points = [axes.transData.transform((across, up)) for across, up, _ in labels]
    taken = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in points]
    for across, up, text in labels:
        for right, above in offsets:
            note = axes.annotate(
                text,
                (across, up),
                (right, above),
                textcoords="offset points",
                ha="left" if right > 0 else "right" if right < 0 else "center",
                va="center",
                weight="bold",
            )
            tag(note, "number")
            box = note.get_window_extent()
            inside = axes.figure.bbox.containsx(box.x1) and axes.bbox.padded(9).containsy(box.y0)
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            note.remove()


@functools.cache
def _families() -> list[str]:
    """Return the font families to draw with: matplotlib takes the first one with a character."""
    from matplotlib.font_manager import fontManager

    others = {font.name for font in fontManager.ttflist if _SCRIPTS.search(font.name)}
    return ["DejaVu Sans", *sorted(others), "sans-serif"]
