"""What all pictures share: the page, its colours and fonts, and how it is written."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hytas.files import atomic_write
from hytas.pictures.fonts import fonts_for

INK, GREY = "#222222", "#bbbbbb"
PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of the files that a page can be written to."""
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


@contextmanager
def page(
    path: str | Path, width: float, height: float, *, names: Iterable[str] = (), trim: bool = False
) -> Iterator[Any]:
    """Yield a matplotlib figure of `width` by `height` inches; write it to `path` at the end.

    The same drawing gives the same file: no date, and no random names inside an SVG.

    Args:
        path: .png, .svg or .pdf; replaced as a whole.
        names: the texts on the page that a scene brings, in whatever script.
        trim: cut the empty margin off.

    Raises:
        OSError: the file cannot be written.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    edges: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.1} if trim else {}
    with matplotlib.rc_context({"svg.hashsalt": "hytas"}), fonts_for(names):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        yield figure
        with atomic_write(path) as temporary:
            metadata = _UNDATED.get(Path(path).suffix.lower())
            figure.savefig(temporary, dpi=150, metadata=metadata, **edges)
