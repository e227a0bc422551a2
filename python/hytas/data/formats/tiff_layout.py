"""Check the pages of a TIFF file (TIFF 6.0, and BigTIFF with 64-bit offsets).

This happens before tifffile reads them. In a damaged file pages may form a ring, overlap, or share
values, and a few kilobytes then take tifffile minutes.
"""

import lzma
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hytas.data.limits import ALWAYS_READ, MOST_INFLATED, check_count

MOST_PAGES = 4000
"""Pages of one file, at most; a cube may have one for each band."""
# Values that several pages share count once for each page.
_MOST_SHARED = 16
_ALWAYS_LISTED = 2**20

# Bytes of a value by its type; an unknown type counts as the largest.
_SIZES = dict.fromkeys((1, 2, 6, 7), 1) | dict.fromkeys((3, 8), 2) | dict.fromkeys((4, 9, 11), 4)

_DEFLATE, _LZMA = (8, 32946, 50013), (34925,)


class _Layout(NamedTuple):
    """The formats of numbers in a file: the number of tags, a tag, and an offset."""

    length: struct.Struct
    tag: struct.Struct
    offset: struct.Struct


def check_pages(path: Path) -> None:
    """Check the pages of a file.

    Raises:
        ValueError: pages overlap or form a ring, or have more values than the file holds.
        InputError: there are more pages than a cube has bands.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        layout = _layout(file.read(4))
        file.seek(4 if layout.offset.size == 4 else 8)
        at = _number(file, layout.offset)
        seen: set[int] = set()
        entries = values = 0
        while at and at not in seen:
            seen.add(at)
            check_count(len(seen), "pages", MOST_PAGES)
            own, listed, at = _page(file, at, layout)
            entries, values = entries + own, values + listed
            if entries > size or values > _MOST_SHARED * size + _ALWAYS_LISTED:
                raise ValueError("its pages list more values than the file holds")
        if at:
            raise ValueError(f"its pages form a ring: the page at byte {at} follows itself")


def _layout(head: bytes) -> _Layout:
    order = "<" if head[:2] == b"II" else ">"
    if struct.unpack(order + "H", head[2:4].ljust(2, b"\0"))[0] == 43:
        return _Layout(*(struct.Struct(order + text) for text in ("Q", "HHQ8x", "Q")))
    return _Layout(*(struct.Struct(order + text) for text in ("H", "HHI4x", "I")))


def _number(file: BinaryIO, form: struct.Struct) -> int:
    data = file.read(form.size)
    if len(data) < form.size:
        raise ValueError("the file ends inside a page")
    return int(form.unpack(data)[0])


def _page(file: BinaryIO, at: int, layout: _Layout) -> tuple[int, int, int]:
    """Return the bytes of a page's entries, the bytes of their values, and the next page."""
    file.seek(at)
    count = _number(file, layout.length)
    if not 0 < count <= 4096:
        raise ValueError(f"the page at byte {at} has {count} tags; 1 to 4096 are needed")
    data = file.read(count * layout.tag.size)
    if len(data) < count * layout.tag.size:
        raise ValueError(f"the file ends inside the page at byte {at}")
    tags = layout.tag.iter_unpack(data)
    listed = sum(_SIZES.get(kind, 8) * values for _, kind, values in tags)
    # Some programs do not write the offset after the last page.
    end = file.read(layout.offset.size)
    following = layout.offset.unpack(end)[0] if len(end) == layout.offset.size else 0
    return len(data), listed, int(following)


def check_segment(key: Any, data: bytes) -> None:
    """Refuse a strip or tile that unpacks to far more bytes than its pixels have.

    Args:
        key: tifffile's page; its `chunks` are the shape of a segment.
        data: the packed bytes.

    Raises:
        ValueError: it unpacks to too many bytes.
    """
    pixels = int(key.tilelength or key.rowsperstrip) * int(key.tilewidth or key.imagewidth)
    nominal = pixels * int(key.samplesperpixel) * max(1, int(key.bitspersample) // 8)
    if nominal > max(ALWAYS_READ, MOST_INFLATED * len(data)):
        raise ValueError(f"{len(data)} bytes of the file stand for {nominal} bytes of pixels")
    most = max(ALWAYS_READ, 2 * nominal)
    compression = int(key.compression)
    if compression in _DEFLATE and 1032 * len(data) > most:
        unpacked = zlib.decompressobj().decompress(data, most + 1)
    elif compression in _LZMA:
        unpacked = lzma.LZMADecompressor(memlimit=2**28).decompress(data, most + 1)
    else:
        return
    if len(unpacked) > most:
        raise ValueError(f"a segment of {nominal} bytes unpacks to more than {most}")
