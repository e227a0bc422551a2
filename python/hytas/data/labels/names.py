"""Names of classes: as the user gives them, and in files of GDAL or ArcGIS next to a raster."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hytas.data.findings import Finding, note, warning
from hytas.data.palette import Colour
from hytas.data.xml_tree import read_xml
from hytas.errors import InputError

NO_CLASS = {
    *("masked pixels", "unclassified", "unlabelled", "unlabeled", "background", "undefined"),
    *("no data", "nodata", "not classified", "unassigned", "none", "void", "ignore"),
}
"""Names that programs give to pixels without a class, in lower case."""
_NAME_COLUMNS = ("class_name", "classname", "class", "label", "name", "category", "descriptio")
_USAGES = {"2": "name", "3": "value", "5": "value", "6": "red", "7": "green", "8": "blue"}
"""Usages of columns in an attribute table (GDALRATFieldUsage); ArcGIS gives its columns none."""
_TEXT = "2"
"""Type of a column of texts in an attribute table (GDALRATFieldType)."""
_Classes = tuple[dict[int, str], dict[int, Colour]]
"""Names and colours by value."""


def renamed(
    ids: Sequence[int], names: Mapping[int, str], given: Mapping[str, str], plus: int = 0
) -> tuple[dict[int, str], tuple[Finding, ...]]:
    """Return names of classes by id, with those that the user gives, and findings.

    A table may name further classes, such as all of a legend; a finding lists them.

    Args:
        names: that the file gives, by id.
        given: names by the number in the file, or by name; see `read_class_names`.
        plus: difference of ids and the numbers in the file: 1 if 0 is a class.
    """
    place = {names[number]: number for number in ids if number in names}
    place |= {str(number - plus): number for number in ids}
    new_names = {**names, **{place[key]: name for key, name in given.items() if key in place}}
    return new_names, unused(key for key in given if key not in place and (key != "0" or plus))


def unused(keys: Iterable[str]) -> tuple[Finding, ...]:
    """Return a finding on given names of classes that are not there."""
    others = list(keys)
    return (warning("not-used", case="class-names", names=others),) if others else ()


def number_findings(
    own: Mapping[int, str], owner: str, known: Mapping[int, str], where: str = ""
) -> tuple[Finding, ...]:
    """Return findings on classes without names of their own, which are matched by their numbers.

    Args:
        own: names of the classes by id, which may be empty.
        known: those of `owner`; "" is a model.
    """
    if not own or not all(not name or is_unnamed(name, number) for number, name in own.items()):
        return ()
    named = [f"{i} = {name}" for i, name in known.items() if not is_unnamed(name, i)]
    case = "" if owner else "model"
    findings = [note("classes-by-number", where, case, owner=owner, classes=named)] if named else []
    # Labels that count from 0 lack the last class, and their 0 is read as unlabelled.
    if {*own} != {*known} and {*own} == {number - 1 for number in known} - {0}:
        findings.append(warning("labels-from-0", where, case, number=max(known), owner=owner))
    return tuple(findings)


def is_unnamed(name: str, number: int) -> bool:
    """Return whether the name of a class is made from its number."""
    return name in (f"class {number}", f"label {number - 1}")


def is_no_class(name: str) -> bool:
    """Return whether a name is that of pixels without a class; CF conventions write no_data."""
    return name.lower().replace("_", " ") in NO_CLASS


def classes_next_to(path: Path) -> _Classes:
    """Return the classes that the files `.aux.xml` and `.vat.dbf` next to a raster name.

    A broken file names none.
    """
    (names, colours), table = gdal_classes(path), esri_classes(path)
    return names or table[0], colours or table[1]


def gdal_classes(path: Path) -> _Classes:
    """Return the classes of the file `.aux.xml` that GDAL writes next to a raster.

    It has category names, or an attribute table with a column of values and one of names.
    """
    sidecar = path.with_name(path.name + ".aux.xml")
    try:
        band = read_xml(sidecar).find("PAMRasterBand") if sidecar.is_file() else None
    except InputError:
        band = None
    if band is None:
        return {}, {}
    texts = [(each.text or "").strip() for each in band.findall("CategoryNames/Category")]
    names = {number: text for number, text in enumerate(texts) if text}
    levels = [[one.get(c, "") for c in ("c1", "c2", "c3")] for one in band.iterfind("ColorTable/*")]
    colours = _colours_of(dict(enumerate(levels)))
    if (table := band.find("GDALRasterAttributeTable")) is not None:
        fields = table.findall("FieldDefn")
        usual = [(one.findtext("Usage", ""), one.findtext("Name", "").lower()) for one in fields]
        heads = [_USAGES.get(usage, name) for usage, name in usual]
        kinds = [one.findtext("Type", _TEXT) == _TEXT for one in fields]
        texts_of = {head for head, kind in zip(heads, kinds, strict=True) if kind} | {"name"}
        rows = [[cell.text or "" for cell in row.findall("F")] for row in table.findall("Row")]
        of_table = _of_rows([dict(zip(heads, row, strict=False)) for row in rows], texts_of)
        names, colours = names | of_table[0], colours | of_table[1]
    return names, colours


def esri_classes(path: Path) -> _Classes:
    """Return the classes of the table `.vat.dbf` that ArcGIS writes to a raster."""
    from hytas.data.labels.ogr import read_dbase  # which reads the names that a user gives

    table = path.with_name(path.name + ".vat.dbf")
    if not table.is_file():
        return {}, {}
    try:
        columns = {name.lower(): column for name, column in read_dbase(table).items()}
    except (InputError, OSError, ValueError):
        return {}, {}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    texts = {name for name, column in columns.items() if any(isinstance(v, str) for v in column)}
    return _of_rows(rows, texts)


def _of_rows(rows: Sequence[Mapping[str, Any]], texts: set[str]) -> _Classes:
    """Return the classes of a table, whose columns have usual names; `texts` are those of texts."""
    named = [name for name in ("name", *_NAME_COLUMNS) if name in texts]
    named = named or (list(texts) if len(texts) == 1 else [])
    values = {row_number: str(row.get("value", "")) for row_number, row in enumerate(rows)}
    whole = {n: int(float(v)) for n, v in values.items() if re.fullmatch(r"\d{1,9}(\.0*)?", v)}
    names, levels = {}, {}
    for number, value in whole.items():
        cells = [str(rows[number].get(name) or "").strip() for name in named]
        if name := next(filter(None, cells), ""):
            names[value] = name
        levels[value] = [str(rows[number].get(one, "")) for one in ("red", "green", "blue")]
    return names, _colours_of(levels)


def _colours_of(levels: Mapping[int, Sequence[str]]) -> dict[int, Colour]:
    colours: dict[int, Colour] = {}
    for number, texts in levels.items():
        if all(text.isascii() and text.isdigit() and int(text) < 256 for text in texts):
            red, green, blue = (int(text) for text in texts)
            colours[number] = red, green, blue
    return colours
