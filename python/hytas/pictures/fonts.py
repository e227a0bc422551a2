"""Fonts for class names in any script.

Each character is drawn in the first font that has it: the one that hytas brings, then those that
are installed.
"""

import functools
import os
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from hytas.files import legible

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

FOLDERS = (
    *("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts"),
    *("/System/Library/Fonts", "/Library/Fonts", "~/Library/Fonts"),
)
"""Where fonts are installed, on Linux and macOS."""
_SUFFIXES = (".ttf", ".otf", ".ttc")
BOXES = ("last resort", "lastresort", "notdef", "bmp fallback")
"""Parts of the names of fonts that have a box for every character."""
_STYLES = ("bold", "italic", "oblique", "light", "thin", "black", "condensed", "mono")
_ABSENT = "\uffff"
"""No font has this character, so it is drawn as the box of the font."""
_NAMED = 5


def own_font() -> str:
    """Return the path of the font that hytas brings; it has Latin, Greek, Cyrillic and Arabic."""
    return str(files("hytas.pictures") / "DejaVuSans.ttf")


@functools.cache
def installed_fonts() -> tuple[str, ...]:
    """Return the font files of this machine, plain styles first."""
    paths = {
        str(Path(folder) / name)
        for top in FOLDERS
        for folder, _, names in os.walk(Path(top).expanduser())
        for name in names
        if name.lower().endswith(_SUFFIXES)
    }

    def plainness(path: str) -> tuple[bool, str]:
        name = Path(path).stem.lower()
        return any(style in name for style in _STYLES), name

    return tuple(sorted(paths, key=plainness))


@functools.lru_cache(maxsize=64)
def open_font(path: str, size: int) -> "FreeTypeFont":
    """Return a font of `size` pixels."""
    from PIL import ImageFont

    return ImageFont.truetype(path, size)


@functools.cache
def _box(path: str) -> tuple[tuple[int, int], bytes] | None:
    """Return what a font draws for a character that it lacks; None for a font that is unusable."""
    try:
        font = open_font(path, 24)
        name = str(font.getname()[0]).lower()
        return None if any(part in name for part in BOXES) else _drawn(font, _ABSENT)
    except OSError:
        return None


def _drawn(font: "FreeTypeFont", sign: str) -> tuple[tuple[int, int], bytes]:
    mask = font.getmask(sign)
    return mask.size, bytes(mask)


@functools.cache
def _has(path: str, sign: str) -> bool:
    box = _box(path)
    try:
        return box is not None and _drawn(open_font(path, 24), sign) != box
    except OSError:
        return False


def _leaves_ink(sign: str) -> bool:
    return unicodedata.category(sign) not in ("Zs", "Cf", "Mn")


def _font_of(sign: str) -> str | None:
    return _first_with(sign, (own_font(), *installed_fonts()))


@functools.cache
def _first_with(sign: str, paths: tuple[str, ...]) -> str | None:
    return next((path for path in paths if _has(path, sign)), None)


def pieces(text: str) -> list[tuple[str, str]]:
    """Return the parts of a text, each with the path of the font that has its characters."""
    parts: list[tuple[str, str]] = []
    for sign in text:
        last = parts[-1][0] if parts else own_font()
        path = (_font_of(sign) or own_font()) if _leaves_ink(sign) else last
        if parts and path == last:
            parts[-1] = (path, parts[-1][1] + sign)
        else:
            parts.append((path, sign))
    return parts


def text_width(text: str, size: int) -> float:
    """Return the width of a text in fonts of `size` pixels."""
    return sum(open_font(path, size).getlength(part) for path, part in pieces(text))


def widest(texts: Iterable[str], size: int) -> float:
    """Return the width of the widest text; 0 without any."""
    return max((text_width(legible(text), size) for text in texts), default=0.0)


def font_note(names: Sequence[str]) -> str | None:
    """Return a line that lists the names with characters that no font here has, or None."""

    def lacks(name: str) -> bool:
        return any(_leaves_ink(sign) and _font_of(sign) is None for sign in legible(name))

    boxes = [name for name in names if lacks(name)]
    if not boxes:
        return None
    more = f" and {len(boxes) - _NAMED} more" if len(boxes) > _NAMED else ""
    return (
        f"no font here has all characters of {', '.join(boxes[:_NAMED])}{more}: pictures show "
        "boxes in their place; a font of their script, such as one of Noto's, helps"
    )
