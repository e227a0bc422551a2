"""Fonts for class names in any script.

matplotlib draws a character in the first of the listed families that has it. Its own DejaVu Sans
has Latin, Greek, Cyrillic and Arabic; installed families are added for other characters.
"""

import functools
import unicodedata
from collections.abc import Sequence

from hytas.files import legible

_OWN = "DejaVu Sans"
_BOXES = ("last resort", "lastresort", "blank", "notdef", "bmp fallback")
"""Parts of the names of fonts that have a box, or nothing, for every character."""
_NAMED = 5


def families(text: str) -> tuple[list[str], set[str]]:
    """Return font families that have the characters of a text, and the characters that none has."""
    from matplotlib.font_manager import FontProperties, findfont, fontManager

    ink = {sign for sign in text if unicodedata.category(sign) not in ("Zs", "Cf", "Mn")}
    lacking = ink - _characters(findfont(FontProperties(family=_OWN)))
    chosen = [_OWN]
    # Plain styles first.
    for font in sorted(
        fontManager.ttflist if lacking else (),
        key=lambda font: (font.style != "normal", font.weight not in (400, "normal"), font.name),
    ):
        if any(part in font.name.lower() for part in _BOXES):
            continue
        if lacking & _characters(font.fname):
            chosen.append(font.name)
            lacking -= _characters(font.fname)
    return chosen, lacking


@functools.cache
def _characters(path: str) -> frozenset[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a listed font that nothing opens
        return frozenset()


def font_note(names: Sequence[str]) -> str | None:
    """Return a line that lists the names with characters that no font here has, or None."""
    lacking = families("".join(map(legible, names)))[1]
    boxes = [name for name in names if lacking & set(legible(name))]
    if not boxes:
        return None
    more = f" and {len(boxes) - _NAMED} more" if len(boxes) > _NAMED else ""
    return (
        f"no font here has all characters of {', '.join(boxes[:_NAMED])}{more}: pictures show "
        "boxes in their place; a font of their script, such as one of Noto's, helps"
    )
