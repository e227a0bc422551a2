"""Pack the temporary arrays of a C function into one workspace, by when they are needed."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_DECLARED = re.compile(r"^\s+(\w+) (tmp\d+\w*)((?:\[\d+\])+);$")
_NAME = re.compile(r"\btmp\d+\w*")
_FLOAT = "float"


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
        workspace: name of the array.
    """
    declared = [match for match in map(_DECLARED.match, body) if match]
    found = {
        match[2]: Temporary(match[1], match[2], match[3], values_of(match[3])) for match in declared
    }
    floats = {name: one for name, one in found.items() if one.element == _FLOAT}
    calls = [line for line in body if not _DECLARED.match(line)]
    places = _places(floats, _lifetimes(floats, calls))
    lines = [
        f"    {one.element} {one.name}{one.dimensions};"
        for one in found.values()
        if one.element != _FLOAT
    ]
    for name, one in floats.items():
        inner = one.dimensions[one.dimensions.index("]") + 1 :]
        kind = f"{_FLOAT} (*){inner}" if inner else f"{_FLOAT} *"
        held = f"(*const {name}){inner}" if inner else f"*const {name}"
        lines.append(f"    {_FLOAT} {held} = ({kind})({workspace} + {places[name]});")
    size = max((places[name] + one.values for name, one in floats.items()), default=0)
    return Packed([*lines, *calls], size)


def values_of(dimensions: str) -> int:
    """Return the number of values of an array of dimensions such as [1][9]."""
    count = 1
    for number in re.findall(r"\d+", dimensions):
        count *= int(number)
    return count


def _lifetimes(floats: Mapping[str, Temporary], calls: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the first and the last call that names each array."""
    ends: dict[str, tuple[int, int]] = {}
    for step, line in enumerate(calls):
        for name in _NAME.findall(line):
            if name in floats:
                ends[name] = (ends.get(name, (step, step))[0], step)
    return {name: ends.get(name, (0, 0)) for name in floats}


def _places(
    floats: Mapping[str, Temporary], lives: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    """Return the first float of each array: large arrays first, each at the lowest free place."""
    places: dict[str, int] = {}
    for name in sorted(floats, key=lambda name: (-floats[name].values, lives[name])):
        first, last = lives[name]
        taken = sorted(
            (places[other], places[other] + floats[other].values)
            for other in places
            if lives[other][0] <= last and first <= lives[other][1]
        )
        at = 0
        for begin, end in taken:
            if at + floats[name].values <= begin:
                break
            at = max(at, end)
        places[name] = at
    return places
