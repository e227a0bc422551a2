"""Pack the temporary arrays of a C function into one workspace, by when they are needed."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_DECLARED = re.compile(r"^\s+(\w+) (tmp\d+\w*)((?:\[\d+\])+);$")
_NAME = re.compile(r"\btmp\d+\w*")
_FLOAT = "float"
_TRIES = 200


class Temporary(NamedTuple):
    """A temporary array; its dimensions are text such as [1][9]."""

    element: str
    name: str
    dimensions: str
    values: int


class Packed(NamedTuple):
    """The lines of a function body over a workspace, and the number of floats of the workspace."""

    lines: list[str]
    floats: int


def pack(body: Sequence[str], workspace: str) -> Packed:
    """Return a function body whose float arrays lie in `workspace`, an array of floats.

    Arrays share memory if no step needs both. Arrays of other types stay where they are.

    Args:
        body: the lines of the function: declarations of arrays, then a call a line.
    """
    declared = [match for match in map(_DECLARED.match, body) if match]
    arrays = {
        match[2]: Temporary(match[1], match[2], match[3], values_of(match[3])) for match in declared
    }
    floats = {name: one for name, one in arrays.items() if one.element == _FLOAT}
    calls = [line for line in body if not _DECLARED.match(line)]
    places = _places(floats, _lifetimes(floats, calls))
    lines = [
        f"    {one.element} {one.name}{one.dimensions};"
        for one in arrays.values()
        if one.element != _FLOAT
    ]
    for name, one in floats.items():
        inner = one.dimensions[one.dimensions.index("]") + 1 :]
        kind = f"{_FLOAT} (*){inner}" if inner else f"{_FLOAT} *"
        pointer = f"(*const {name}){inner}" if inner else f"*const {name}"
        lines.append(f"    {_FLOAT} {pointer} = ({kind})({workspace} + {places[name]});")
    size = max((places[name] + one.values for name, one in floats.items()), default=0)
    return Packed([*lines, *calls], size)


def values_of(dimensions: str) -> int:
    """Return the number of values of an array of dimensions such as [1][9]."""
    return math.prod(map(int, re.findall(r"\d+", dimensions)))


def _lifetimes(floats: Mapping[str, Temporary], calls: Sequence[str]) -> dict[str, tuple[int, int]]:
    ends: dict[str, tuple[int, int]] = {}
    for step, line in enumerate(calls):
        for name in _NAME.findall(line):
            if name in floats:
                ends[name] = (ends.get(name, (step, step))[0], step)
    return {name: ends.get(name, (0, 0)) for name in floats}


def _places(
    floats: Mapping[str, Temporary], lives: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    """Return the first float of each array, in little memory.

    Arrays take the lowest free place, large ones first. As long as that takes more than the most
    that one step needs, the topmost array goes before all others.
    """
    steps = range(max((last for _, last in lives.values()), default=0) + 1)
    needed = max(
        sum(floats[name].values for name, (first, last) in lives.items() if first <= step <= last)
        for step in steps
    )

    def end(places: Mapping[str, int], name: str) -> int:
        return places[name] + floats[name].values

    order = sorted(floats, key=lambda name: (-floats[name].values, lives[name]))
    best: dict[str, int] = {}
    least = None
    for _ in range(_TRIES):
        places = _lowest_places(floats, lives, order)
        topmost = max(places, key=lambda name: end(places, name), default="")
        size = end(places, topmost) if places else 0
        if least is None or size < least:
            best, least = places, size
        if size == needed:
            break
        order.remove(topmost)
        order.insert(0, topmost)
    return best


def _lowest_places(
    floats: Mapping[str, Temporary], lives: Mapping[str, tuple[int, int]], order: Sequence[str]
) -> dict[str, int]:
    """Return the first float of each array if each takes the lowest free place, in this order."""
    places: dict[str, int] = {}
    for name in order:
        first, last = lives[name]
        taken = sorted(
            (places[other], places[other] + floats[other].values)
            for other in places
            if lives[other][0] <= last and first <= lives[other][1]
        )
        at = 0
        for begin, stop in taken:
            if at + floats[name].values <= begin:
                break
            at = max(at, stop)
        places[name] = at
    return places
