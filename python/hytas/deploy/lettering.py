"""Class names in pictures, in whatever script they are written."""

import functools
import logging
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_PLACEHOLDERS = ("last resort", "lastresort", "blank", "notdef", "fallback")
"""Parts of the names of fonts that have a box, or nothing, for every character."""
_NAMED = 5
# The program on board does the same: deploy/onboard/metadata.cpp.
_INSTEAD = {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": "\N{REPLACEMENT CHARACTER}"}


@contextmanager
def lettering(names: Iterable[str]) -> Iterator[None]:
    """Draw `names` inside: each character in matplotlib's font, or in an installed one that has it.

    A character that none has is drawn as a box, without a word: `lettering_note` says so once. A
    dollar in a name is a dollar, no formula.
    """
    import matplotlib

    families, _ = _fonts_for(frozenset(_characters(names)))
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


def lettering_note(names: Sequence[str]) -> str | None:
    """One line that tells which names cannot be drawn here, or None."""
    _, lacking = _fonts_for(frozenset(_characters(names)))
    boxes = [name for name in names if not lacking.isdisjoint(legible(name))]
    if not boxes:
        return None
    more = f" and {len(boxes) - _NAMED} more" if len(boxes) > _NAMED else ""
    return (
        f"no font here has all characters of {', '.join(boxes[:_NAMED])}{more}: pictures show "
        "boxes in their place; a font of their script, such as one of Noto's, helps"
    )


def legible(name: str) -> str:
    """The name in one line that any file can hold.

    Controls and ends of lines become spaces, and half characters the mark for what is none.
    """
    return "".join(_INSTEAD.get(unicodedata.category(sign), sign) for sign in name)


def _characters(names: Iterable[str]) -> set[str]:
    text = "".join(legible(name) for name in names)
    return {sign for sign in text if unicodedata.category(sign) not in ("Zs", "Cf", "Mn")}


@functools.cache
def _fonts_for(signs: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Families to look in, matplotlib's own first, and the signs that none of them has."""
    import matplotlib
    from matplotlib.font_manager import FontProperties, findfont, fontManager

    families = list(matplotlib.rcParams["font.family"])
    lacking = signs - _glyphs(findfont(FontProperties()))
    for font in sorted(fontManager.ttflist, key=_plainness):
        if not lacking:
            break
        if any(part in font.name.lower() for part in _PLACEHOLDERS) or font.name in families:
            continue
        if not lacking.isdisjoint(_glyphs(font.fname)):
            families.append(font.name)
            lacking -= _glyphs(font.fname)
    return tuple(families), frozenset(lacking)


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
