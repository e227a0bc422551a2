"""Chunks of an HDF5 dataset that may be bombs: unpacked piece by piece before the library does it.

The library unpacks a chunk to the end of its stream, however large that gets. The child process of
`hdf5_guard` reads a large dataset at its ends only, so that the other chunks are looked at here.
"""

import zlib
from collections.abc import Sequence
from typing import Any

from hytas.data.limits import bytes_of, shown
from hytas.errors import InputError

# Filters by their numbers in the format; the plain ones change the size of a chunk by a few bytes.
_DEFLATE, _CHECKSUM = 1, 3
_PLAIN = (2, _CHECKSUM, 5, 6)
HARMLESS = 2**18
"""Bytes of a packed chunk that is unpacked unseen: deflate packs 1032 times at most."""
MOST_OTHER = 2**23
"""Bytes of a chunk packed by another filter than deflate; LZF packs 88 times at most."""
_PIECE = 2**20
_SLACK = 1024


class ChunkCheck:
    """Looks at each large chunk of a dataset once, before it is read for the first time.

    Args:
        name: of the dataset, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: set[tuple[int, ...]] | None = None

    def __call__(self, item: Any, key: Sequence[Any] = ()) -> None:
        """Check the chunks of h5py's dataset `item` that `item[key]` reads; `key` holds slices.

        Raises:
            InputError: one of them would be larger in memory than it should be.
        """
        if self._waiting is None:
            self._waiting = set(_large(item))
        for offset in [each for each in self._waiting if _meets(item, key, each)]:
            _check(item, offset, self._name)
            self._waiting.discard(offset)


def packers(item: Any) -> list[int]:
    """The numbers of a dataset's filters that pack, in the order in which they work."""
    return [code for code in _filters(item) if code not in _PLAIN]


def _filters(item: Any) -> list[int]:
    plan = item.id.get_create_plist()
    return [int(plan.get_filter(number)[0]) for number in range(plan.get_nfilters())]


def _large(item: Any) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    if item.chunks is None or not packers(item):
        return found

    def note(chunk: Any) -> None:
        if chunk.size > HARMLESS:
            found.append(tuple(chunk.chunk_offset))

    item.id.chunk_iter(note)
    return found


def _meets(item: Any, key: Sequence[Any], offset: tuple[int, ...]) -> bool:
    """Whether a selection reads from the chunk at an offset."""
    parts = list(key)
    if Ellipsis in parts:
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (len(item.shape) - len(parts) + 1)
    for part, first, length, size in zip(parts, offset, item.chunks, item.shape, strict=False):
        start, stop, _ = part.indices(size)
        if stop <= first or start >= first + length:
            return False
    return True


def _check(item: Any, offset: tuple[int, ...], name: str) -> None:
    filters = _filters(item)
    _, raw = item.id.read_direct_chunk(offset)
    behind = filters[filters.index(_DEFLATE) + 1 :] if _DEFLATE in filters else filters
    if packers(item) != [_DEFLATE] or any(code != _CHECKSUM for code in behind):
        if len(raw) > MOST_OTHER:
            raise InputError(
                f"a chunk of {shown(name)} has {len(raw)} bytes, packed by other filters than "
                f"deflate: at most {MOST_OTHER} are read; store it again with gzip"
            )
        return
    whole = bytes_of(item.chunks, item.dtype.itemsize)
    if _inflates_beyond(raw, whole + _SLACK):
        raise InputError(
            f"a chunk of {shown(name)} inflates to more than its {whole} bytes: the file is damaged"
        )


def _inflates_beyond(raw: bytes, most: int) -> bool:
    """Whether a deflate stream makes more than `most` bytes; one that breaks is left to HDF5."""
    stream, made = zlib.decompressobj(), 0
    try:
        while raw and not stream.eof and made <= most:
            made += len(stream.decompress(raw, _PIECE))
            raw = stream.unconsumed_tail
    except zlib.error:
        return False
    return made > most
