"""Names of classes: from the user, and from the sidecar file of a raster by GDAL or ArcGIS."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hytas.data.findings import Finding, note, warning
from hytas.data.labels.shapes import Colour
from hytas.data.xml_tree import read_xml
from hytas.errors import InputError
from hytas.files import read_utf8

ClassNames = Mapping[str, str]
"""Names by the number of a class in its file, or by the name that the file gives."""

GivenNames = str | Path | Mapping[int | str, str]
"""Names as the user gives them; see `read_class_names`."""

MOST_CLASSES = 65536
NO_CLASS = {
    *("masked pixels", "unclassified", "unlabelled", "unlabeled", "background", "undefined"),
    *("no data", "nodata", "not classified", "unassigned", "none", "void", "ignore"),
}
"""Names that programs give to pixels without a class, in lower case."""
MOST_TABLE = 2**24
"""Bytes of a table of ArcGIS, at most."""
_NAME_COLUMNS = ("class_name", "classname", "class", "label", "name", "category", "descriptio")
_HEADINGS = {"id", "class", "class_id", "value", "label", "number", "code", "key"}


def read_class_names(given: GivenNames | None) -> dict[str, str]:
    """Return names of classes by the text of their number, or of the name in the file.

    Args:
        given: a mapping; the path of a CSV file, whose first two columns are number and name; or a
            text such as "1=corn,2=soy".
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        pairs = [(str(key), str(name)) for key, name in given.items()]
    elif not isinstance(given, str | Path):
        rule = "must be names by number, such as {1: 'corn'}, a text, or a CSV file"
        raise InputError("class_names", given, rule)
    elif "=" in str(given) and not Path(given).is_file():
        parts = next(csv.reader([str(given)], skipinitialspace=True))
        pairs = [_pair(part.split("=", 1), str(given)) for part in parts if part.strip()]
    else:
        pairs = _of_csv(Path(given))
    names: dict[str, str] = {}
    for key, name in ((key.strip(), name.strip()) for key, name in pairs):
        if not key or not name:
            raise InputError("class_names", f"{key}={name}", "a number and a name are needed")
        if key in names and names[key] != name:
            raise InputError("class_names", key, f"has two names, {names[key]} and {name}")
        names[key] = name
    return names


def class_names_text(names: ClassNames) -> str:
    """Return names as one text, which `read_class_names` reads."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow([f"{key}={name}" for key, name in names.items()])
    return stream.getvalue()


def _pair(parts: Sequence[str], text: str) -> tuple[str, str]:
    if len(parts) != 2:
        rule = "must be pairs such as 1=corn,2=soy, or a CSV file of numbers and names"
        raise InputError("class_names", text, rule)
    if re.search(r";\s*\d+\s*=", parts[1]):
        raise InputError("class_names", text, "a comma separates two pairs, not a semicolon")
    return parts[0], parts[1]


def _of_csv(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        rule = "no such file"
        raise InputError("class_names", str(path), rule, "pairs are written as 1=corn,2=soy")
    if path.stat().st_size > 2**24:
        raise InputError("class_names", str(path), f"has more than {2**24} bytes")
    text = read_utf8(path, "class_names")
    first = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise InputError("class_names", str(path), f"is not CSV ({error})") from None
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if rows and rows[0][0].strip().lower() in _HEADINGS:
        rows = rows[1:]
    if not rows or min(map(len, rows)) < 2 or len(rows) > MOST_CLASSES:
        rule = "needs a number and a name in each line, for every class"
        raise InputError("class_names", str(path), rule)
    return [(row[0], row[1]) for row in rows]


def renamed(
    ids: Sequence[int], names: Mapping[int, str], given: ClassNames, plus: int = 0
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
    if not others:
        return ()
    return (warning("names-unused", names=others),)


def by_number(owner: str, classes: Mapping[int, str], where: str = "") -> tuple[Finding, ...]:
    """Return a finding on labels without names, whose numbers are those of classes with names."""
    named = [f"{i} is {name}" for i, name in classes.items() if not is_unnamed(name, i)]
    if not named:
        return ()
    return (note("classes-by-number", where, owner=owner, classes=named),)


def from_0(where: str, own: Iterable[int], owner: str, ids: Iterable[int]) -> tuple[Finding, ...]:
    """Return a finding if labels may count from 0.

    Their ids are then those of the other ones less 1, without 0, which is read as unlabelled.
    """
    given, others = set(own), set(ids)
    if given == others or given != {number - 1 for number in others} - {0}:
        return ()
    return (warning("labels-from-0", where, number=max(others), owner=owner),)


def is_unnamed(name: str, number: int) -> bool:
    """Return whether the name of a class is made from its number."""
    return name in (f"class {number}", f"label {number - 1}")


def alike(names: Iterable[str]) -> tuple[Finding, ...]:
    """Return a finding on names of classes that differ only in case or blanks."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(" ".join(name.casefold().split()), []).append(name)
    several = [name for group in groups.values() if len(group) > 1 for name in group]
    if not several:
        return ()
    return (warning("class-names-alike", names=several),)


def is_no_class(name: str) -> bool:
    """Return whether a name is that of pixels without a class; CF conventions write no_data."""
    return name.lower().replace("_", " ") in NO_CLASS


def gdal_classes(path: Path) -> tuple[dict[int, str], dict[int, Colour]]:
    """Return names and colours by value from the file `.aux.xml` that GDAL writes next to a raster.

    It has category names, or an attribute table with a column of values and one of names.

    Returns:
        Two empty tables if there is no such file, or it is none of GDAL's.
    """
    sidecar = path.with_name(path.name + ".aux.xml")
    if not sidecar.is_file():
        return {}, {}
    try:
        root = read_xml(sidecar)
    except InputError:
        return {}, {}
    band = root.find("PAMRasterBand")
    if band is None:
        return {}, {}
    names = {
        number: (each.text or "").strip()
        for number, each in enumerate(band.findall("CategoryNames/Category"))
    }
    entries = enumerate(band.findall("ColorTable/Entry"))
    levels = {
        number: [each.get(name, "") for name in ("c1", "c2", "c3")] for number, each in entries
    }
    names, colours = {k: v for k, v in names.items() if v}, _colours_of(levels)
    if (table := band.find("GDALRasterAttributeTable")) is not None:
        fields = table.findall("FieldDefn")
        columns = [field.findtext("Usage", "") for field in fields]
        by_name = [field.findtext("Name", "").lower() for field in fields]
        kinds = [field.findtext("Type", _TEXT) for field in fields]
        of_texts = {name for name, kind in zip(by_name, kinds, strict=True) if kind == _TEXT}
        rows = [[cell.text or "" for cell in row.findall("F")] for row in table.findall("Row")]
        for row in rows:
            # ArcGIS gives its columns no usage.
            cells = dict(zip(by_name, row, strict=False)) | dict(zip(columns, row, strict=False))
            value = cells.get(_VALUE) or cells.get(_VALUE_RANGE) or cells.get("value", "")
            if not _WHOLE.fullmatch(value):
                continue
            number = int(float(value))
            usual = (column for column in _NAME_COLUMNS if column in of_texts)
            named = (cells.get(column, "").strip() for column in (_NAME, *usual))
            if name := next(filter(None, named), ""):
                names[number] = name
            colours |= _colours_of({number: [cells.get(each, "") for each in _RGB]})
    return names, colours


_WHOLE = re.compile(r"\d{1,9}(\.0*)?")
# Usages of columns in an attribute table (GDALRATFieldUsage).
_NAME, _VALUE_RANGE, _VALUE = "2", "3", "5"
_RGB = ("6", "7", "8")
_TEXT = "2"
"""Type of a column of texts in an attribute table (GDALRATFieldType)."""


def _colours_of(levels: Mapping[int, Sequence[str]]) -> dict[int, Colour]:
    colours: dict[int, Colour] = {}
    for number, texts in levels.items():
        if all(text.isascii() and text.isdigit() and int(text) < 256 for text in texts):
            red, green, blue = (int(text) for text in texts)
            colours[number] = red, green, blue
    return colours


def esri_classes(path: Path) -> tuple[dict[int, str], dict[int, Colour]]:
    """Return names and colours by value from the table `.vat.dbf` that ArcGIS writes to a raster.

    Names are in the first text column with a usual name, or in the only text column.

    Returns:
        Two empty tables if there is no such file, or it is broken.
    """
    from hytas.data.labels.ogr import read_dbase  # which reads the names that a user gives

    table = path.with_name(path.name + ".vat.dbf")
    if not table.is_file() or table.stat().st_size > MOST_TABLE:
        return {}, {}
    try:
        columns = {name.lower(): column for name, column in read_dbase(table).items()}
    except (InputError, OSError, ValueError):
        return {}, {}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    texts = [name for name, column in columns.items() if any(isinstance(v, str) for v in column)]
    named = [name for name in texts if name in _NAME_COLUMNS] or (texts if len(texts) == 1 else [])
    with_value = [row for row in rows if _WHOLE.fullmatch(str(row.get("value")))]
    by_value = {int(float(row["value"])): row for row in with_value}
    names = {i: row[named[0]].strip() for i, row in by_value.items() if named and row[named[0]]}
    levels = {
        number: [str(row.get(name, "")) for name in ("red", "green", "blue")]
        for number, row in by_value.items()
    }
    return names, _colours_of(levels)
