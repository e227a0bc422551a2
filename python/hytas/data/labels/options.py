"""The options of labels."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from hytas.data.labels.names import GivenNames, read_class_names
from hytas.data.labels.shapes import Colour, colour_of
from hytas.errors import InputError

Given = int | float | str
"""A number, a colour such as "#ffffff", or NaN, which is always unlabelled."""


@dataclass(frozen=True)
class Unlabelled:
    """The label of unlabelled pixels, besides 0 (in a picture: instead of black).

    Attributes:
        colour: of a picture, or None.
    """

    number: int | None = None
    colour: Colour | None = None

    @property
    def given(self) -> int | str | None:
        """Return what `parse_unlabelled` reads, as JSON can hold it."""
        return self.number if self.colour is None else "#{:02x}{:02x}{:02x}".format(*self.colour)


def parse_unlabelled(given: Given | None) -> Unlabelled:
    """Return the user's label or colour of unlabelled pixels."""
    if given is None:
        return Unlabelled()
    text = str(given).strip()
    if re.fullmatch(r"#[0-9a-fA-F]{6}", text):
        return Unlabelled(colour=colour_of(text))
    try:
        number = int(text) if re.fullmatch(r"[+-]?\d{1,20}", text) else float(text)
    except ValueError:
        number = math.inf
    if math.isnan(number):
        return Unlabelled()
    if not math.isfinite(number) or number != int(number) or not -(2**63) <= number < 2**63:
        rule = "must be a whole number of 64 bits, a colour such as #ffffff, or nan"
        raise InputError("unlabelled", text, rule)
    return Unlabelled(number=int(number))


@dataclass(frozen=True)
class LabelOptions:
    """Arguments of `load_scene` about labels.

    Attributes:
        key: name of the map, or two names "training,test"; the layer of vector labels.
        unlabelled: label or colour of unlabelled pixels.
        zero_is_a_class: whether 0 is a class; ids are then one more than the file's numbers.
        class_field: the field of the classes of vector labels; None finds it.
        crs: their coordinate system, if the file does not say it.
        names: of classes, by number in the file or by name; see `read_class_names`.
        least_classes: that must have pixels; fewer than 2 for one of several scenes.
        are_values: whether labels are continuous targets.
        value_fields: their fields in vector labels.
    """

    key: str | None = None
    unlabelled: Unlabelled = field(default_factory=Unlabelled)
    zero_is_a_class: bool = False
    class_field: str | None = None
    crs: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    least_classes: int = 2
    are_values: bool = False
    value_fields: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        labels_key: str | None = None,
        unlabelled: Given | None = None,
        zero_is_a_class: bool = False,
        class_field: str | None = None,
        labels_crs: str | None = None,
        class_names: GivenNames | None = None,
        least_classes: int = 2,
    ) -> Self:
        """Return the options that the arguments of `load_scene` mean."""
        mark, names = parse_unlabelled(unlabelled), read_class_names(class_names)
        return cls(labels_key, mark, zero_is_a_class, class_field, labels_crs, names, least_classes)

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields of vector labels that the user names."""
        return self.value_fields or (() if self.class_field is None else (self.class_field,))

    def refuse_colour(self, path: Path) -> None:
        """Refuse a colour of unlabelled pixels for a file that holds no picture."""
        if self.unlabelled.colour is not None:
            rule = f"is for pictures, and {path} holds whole numbers"
            raise InputError("unlabelled", self.unlabelled.given, rule)
