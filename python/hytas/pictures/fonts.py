"""Fonts for class names in any script.

matplotlib draws each character in the first family of `font.family` that has it. It looks into no
family that is not named there, so the installed ones that have the other characters are added.
"""

import functools
import logging
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hytas.files import legible

_BOXES = ("last resort", "lastresort", "blank", "notdef", "bmp fallback")
"""Parts of the names of fonts that have a box, or nothing, for every character."""
_NAMED = 5


@contextmanager
def fonts_for(names: Iterable[str]) -> Iterator[None]:
    """Draw `names` inside, each character in an installed font that has it, else as a box.

    No warning is given of the boxes: `font_note` names them once. A dollar in a name is a dollar,
    no formula.
    """
    import matplotlib

    families, _ = _families(_characters(names))
    finder = logging.getLogger("matplotlib.font_manager")  # tells of fonts of another weight
    level = finder.level
    with (
        matplotlib.rc_context({"font.family": list(families), "text.parse_math": False}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message=r"Glyph \d+ ", category=UserWarning)
        finder.setLevel(logging.ERROR)
        try:
            yield
        finally:
            finder.setLevel(level)


def font_note(names: Sequence[str]) -> str | None:
    """Return one line that tells which names have characters that no font here has, or None."""
    _, lacking = _families(_characters(names))
    boxes = [name for name in names if not lacking.isdisjoint(legible(name))]
    if not boxes:
        return None
    more = f" and {len(boxes) - _NAMED} more" if len(boxes) > _NAMED else ""
    return (
        f"no font here has all characters of {', '.join(boxes[:_NAMED])}{more}: pictures show "
        "boxes in their place; a font of their script, such as one of Noto's, helps"
    )


def _characters(names: Iterable[str]) -> frozenset[str]:
    """The characters that leave ink, or join others that do."""
    text = "".join(map(legible, names))
    return frozenset(s for s in text if unicodedata.category(s) not in ("Zs", "Cf", "Mn"))


def _families(signs: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Families that have `signs`, matplotlib's own first, and the signs that none of them has."""
    import matplotlib
    from matplotlib.font_manager import FontProperties, findfont, fontManager

    families = list(matplotlib.rcParams["font.family"])
    lacking = signs - _glyphs(findfont(FontProperties()))
    for font in sorted(fontManager.ttflist, key=_plainness):
        if not lacking:
            break
        if any(part in font.name.lower() for part in _BOXES) or font.name in families:
            continue
        if not lacking.isdisjoint(_glyphs(font.fname)):
            families.append(font.name)
            lacking -= _glyphs(font.fname)
    return tuple(families), lacking


def _plainness(font: Any) -> tuple[bool, bool, str]:
    return (font.style != "normal", font.weight not in (400, "normal", "regular"), font.name)


@functools.cache
def _glyphs(path: str) -> frozenset[str]:
    """The characters that a font file has."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError, ValueError):  # a font that the system lists and nothing opens
        return frozenset()
