"""The records of a run's store, and how its rows are read.

A damaged row raises ValueError, TypeError or LookupError.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from hytas.files import parse_json
from hytas.search.ranks import network_kind

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


@dataclass(frozen=True)
class Evaluation:
    """A scored candidate; a failed score is NaN, with its reason."""

    id: int
    generation: int
    architecture: dict[str, Any]
    costs: dict[str, int]
    scores: dict[str, float]
    reasons: dict[str, str]
    seconds: float

    @cached_property
    def kind(self) -> str:
        """The kind of network, and its depth (`kind_of`)."""
        return network_kind(self.architecture)

    @cached_property
    def kind_of_any_depth(self) -> str:
        """The kind of network (`kind_of`)."""
        return network_kind(self.architecture, depths=False)


@dataclass(frozen=True)
class Training:
    """One training of a finalist, in a rung of the race.

    Attributes:
        id: of its evaluation.
        recipe: name of the recipe that it was trained by.
        steps: optimiser steps, those of earlier rungs among them.
        fold: number of the fold that it was validated on.
        pixels: number of validation pixels of that fold.
        figures: name -> figure on these pixels; empty if the training failed.
        seconds: duration.
        reason: why it failed; empty if it did not.
        right: merits of validation pixels, such as which are classified correctly
            (`pack_merits`); may be empty.
    """

    id: int
    recipe: str
    steps: int
    fold: int
    pixels: int
    figures: dict[str, float]
    seconds: float
    reason: str = ""
    right: bytes = b""


@dataclass(frozen=True)
class MethodFold:
    """A reference method, fitted without one fold.

    Attributes:
        method: its name.
        fold: number of the fold that is held out.
        pixels: number of validation pixels of that fold.
        right: number of these that are classified correctly.
        held_out: classes of the validation pixels; then those that a smoothed map has, of the
            pixels that smoothing is compared on.
    """

    method: str
    fold: int
    pixels: int
    right: int
    held_out: bytes


def read_row(kind: type[Record], row: Sequence[Any]) -> Record:
    """Return a row of a table as a record, whose fields are the columns in their order."""
    columns = zip(fields(kind), row, strict=True)
    return kind(*(_field(value, each.type, each.name) for each, value in columns))


def row_of(record: "DataclassInstance") -> tuple[Any, ...]:
    """Return a record as a row of its table: objects as JSON."""
    values = (getattr(record, each.name) for each in fields(record))
    return tuple(
        json.dumps(finite_or_null(value)) if isinstance(value, dict) else value for value in values
    )


def pack_classes(classes: NDArray[np.int64]) -> bytes:
    """Return class indices (n,) as a store keeps them."""
    return classes.astype("<u2").tobytes()


def unpack_classes(packed: bytes) -> NDArray[np.int64]:
    """Return the class indices (n,) that `pack_classes` packed."""
    return np.frombuffer(packed, "<u2").astype(np.int64)


def pack_merits(merits: NDArray[Any]) -> bytes:
    """Return merits (n,) as a store keeps them: flags take a bit, and numbers four bytes."""
    if merits.dtype == np.bool_:
        return np.packbits(merits).tobytes()
    return merits.astype("<f4").tobytes()


def unpack_merits(packed: bytes, count: int) -> NDArray[Any]:
    """Return the merits (count,) that `pack_merits` packed; none if there are fewer."""
    if count and len(packed) == 4 * count:
        return np.frombuffer(packed, "<f4")
    flags = np.unpackbits(np.frombuffer(packed, np.uint8)).astype(np.bool_)
    return flags[:count] if len(flags) >= count else flags[:0]


def finite_or_null(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace NaN and infinity by null, as JSON does not have them."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


_PLAIN = {int: "a whole number", float: "a number", str: "a text", bytes: "bytes"}


def _field(value: Any, kind: Any, name: str) -> Any:
    """Return the value of a field of this type; null among numbers of an object becomes NaN."""
    if kind in _PLAIN:
        kinds = (int, float) if kind is float else kind
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"{name} is {str(value)[:40]!r}; {_PLAIN[kind]} needed")
        return value
    values = parse_json(value, "a column") if isinstance(value, str) else value
    if not isinstance(values, dict):
        raise TypeError(f"{str(values)[:40]!r} is not a JSON object")
    inner = get_args(kind)[1]
    if inner is Any:
        return values
    return {
        key: math.nan if each is None and inner is float else _field(each, inner, key)
        for key, each in values.items()
    }
