"""The options of a scene, of its labels or of a table, as `load_scene` takes them."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hytas.data.interpret.nodata import check_nodata
from hytas.data.palette import Colour, colour_of
from hytas.data.record import reading
from hytas.errors import InputError
from hytas.files import read_utf8
from hytas.types import Array

OF_TABLES = ("label_column", "group_column", "target_column", "band_columns")
OF_SHAPES = ("class_field", "value_field", "labels_crs")
OF_SCENES = ("axes", "labels_key", *OF_SHAPES, "zero_is_a_class", "data_dir")
Given = int | float | str
"""A number, a colour such as "#ffffff", or NaN, which is always unlabelled."""
GivenNames = str | Path | Mapping[int | str, str]
"""Names of classes as the user gives them; see `read_class_names`."""


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


@dataclass(frozen=True)
class SceneOptions:
    """Arguments of `load_scene`.

    Attributes:
        cube_key: the cube's name in its file; not needed if there is one cube.
        labels_key: the map's name, or two names "training,test".
        data_dir: a folder with the files of a scene known by name, which is then not downloaded.
        bands: a selection that `parse_bands` reads; labelled pixels must be finite in these bands.
            None means all bands except those that the file marks as bad.
        nodata: the no-data value; None uses the one that the file names.
        unlabelled: another label of unlabelled pixels, besides 0; or in a picture, instead of
            black, a colour such as "#ffffff". NaN is always unlabelled.
        zero_is_a_class: whether 0 is a class, as in a map of 0 and 1. The scene's ids are then one
            more than the file's labels, because id 0 means unlabelled.
        class_field: the field of the classes, if `labels` is a file of polygons or points.
        labels_crs: the coordinate system of these, if their file names none.
        class_names: names of classes by their number in the file, or by the name that the file
            gives: a mapping, a text such as "1=corn,2=soy", or a CSV file of numbers and names.
        axes: the order of the axes of the cube's array, such as "band,y,x"; it overrides what the
            file says.
        label_column: the column, or the variable, with the labels of a table of spectra
            (`hytas.data.spectra`).
        group_column: the same with the groups that no split may divide.
        least_classes: that must have pixels; 0 or 1 for a scene that is joined with others.
        target_column: columns of continuous targets, in place of labels.
        units: of these, in their order.
        fractions: whether the targets are shares of a sample that sum to one.
        value_field: fields of continuous targets, if `labels` is a file of polygons or points.
        task: "values" if labels are continuous targets, "classes", or "auto".
        band_columns: the columns of a table that are bands, such as "b1,b2,b7" or "b1:b200"; None
            takes those whose names are wavelengths or numbered, else all columns of numbers.
    """

    cube_key: str | None = None
    labels_key: str | None = None
    data_dir: str | Path | None = None
    bands: str | None = None
    nodata: float | None = None
    unlabelled: Unlabelled = field(default_factory=Unlabelled)
    zero_is_a_class: bool = False
    class_field: str | None = None
    labels_crs: str | None = None
    class_names: Mapping[str, str] = field(default_factory=dict)
    axes: str | None = None
    label_column: str | None = None
    group_column: str | None = None
    least_classes: int = 2
    target_column: Sequence[str] = ()
    units: Sequence[str] = ()
    fractions: bool = False
    value_field: Sequence[str] = ()
    task: str = "auto"
    band_columns: str | None = None

    @classmethod
    def of(
        cls, unlabelled: Given | None = None, class_names: GivenNames | None = None, **given: Any
    ) -> Self:
        """Return the options that arguments mean."""
        mark, names = parse_unlabelled(unlabelled), read_class_names(class_names)
        return cls(unlabelled=mark, class_names=names, **given)

    @property
    def are_values(self) -> bool:
        """Whether labels are continuous targets."""
        return self.task == "values" or bool(self.value_field)

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields of vector labels that the user names."""
        return tuple(self.value_field) or (() if self.class_field is None else (self.class_field,))

    def refuse(self, names: Iterable[str], rule: str) -> None:
        """Refuse options that are given, but mean nothing for the data."""
        for name in names:
            value = self.unlabelled.given if name == "unlabelled" else getattr(self, name)
            if value not in (None, (), []) and value is not False:
                raise InputError(name, value, rule)

    def refuse_colour(self, path: Path) -> None:
        """Refuse a colour of unlabelled pixels for a file that holds no picture."""
        if self.unlabelled.colour is not None:
            self.refuse(["unlabelled"], f"is for pictures, and {path} holds whole numbers")

    def nodata_of(self, own: float | None, cube: Array) -> float | None:
        """Return the no-data value of a cube: the user's, or `own`, which the file names."""
        return own if self.nodata is None else check_nodata(self.nodata, cube.dtype)


def parse_unlabelled(given: Given | None) -> Unlabelled:
    """Return the user's label or colour of unlabelled pixels."""
    text = "nan" if given is None else str(given).strip()
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


def read_class_names(given: GivenNames | None) -> dict[str, str]:
    """Return names of classes by the text of their number, or of the name in the file.

    Args:
        given: a mapping; the path of a CSV file, whose first two columns are number and name; or a
            text such as "1=corn,2=soy".
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        pairs = [[str(key), str(name)] for key, name in given.items()]
    elif not isinstance(given, str | Path):
        rule = "must be names by number, such as {1: 'corn'}, a text, or a CSV file"
        raise InputError("class_names", given, rule)
    elif "=" in str(given) and not Path(given).is_file():
        parts = next(csv.reader([str(given)], skipinitialspace=True))
        pairs = [part.split("=", 1) for part in parts if part.strip()]
    else:
        pairs = _of_csv(Path(given))
    names: dict[str, str] = {}
    for pair in pairs:
        key, name = (text.strip() for text in (*pair, "", "")[:2])
        if not key or not name or re.search(r";\s*\d+\s*=", name):
            rule = "must be pairs such as 1=corn,2=soy, or a CSV file of numbers and names"
            raise InputError("class_names", given, rule)
        if names.setdefault(key, name) != name:
            raise InputError("class_names", key, f"has two names, {names[key]} and {name}")
    return names


def class_names_text(names: Mapping[str, str]) -> str:
    """Return names as one text, which `read_class_names` reads."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow([f"{key}={name}" for key, name in names.items()])
    return stream.getvalue()


def _of_csv(path: Path) -> list[list[str]]:
    if not path.is_file():
        hint = "pairs are written as 1=corn,2=soy"
        raise InputError("class_names", str(path), "no such file", hint)
    text = read_utf8(path, "class_names")
    delimiter = max(",;\t", key=text.lstrip().partition("\n")[0].count)
    with reading("class_names", path, "CSV file"):
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if rows and not any(sign.isdigit() for sign in rows[0][0]):
        rows = rows[1:]  # a heading
    if not rows or min(map(len, rows)) < 2:
        rule = "needs a number and a name in each line, for every class"
        raise InputError("class_names", str(path), rule)
    return rows
