"""EnMAP L1C and L2A and DESIS L1C and L2A (DLR): a GeoTIFF beside its metadata in XML.

Layout: EnMAP product specification EN-PCV-ICD-2009, DESIS products definition. `NAME-METADATA.XML`
describes `NAME-SPECTRAL_IMAGE.TIF`: centre, gain and offset of each band.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from hytas.data.contents import Contents
from hytas.data.formats import tiff
from hytas.data.formats.xml_tree import read_xml
from hytas.data.products.joined import Part, join
from hytas.errors import InputError

_IMAGE = re.compile(r"((ENMAP|DESIS).*)-SPECTRAL_IMAGE(_COG)?\.TIFF?", re.IGNORECASE)
_METADATA = re.compile(r"((ENMAP|DESIS).*)-METADATA\.XML", re.IGNORECASE)
_MISSIONS = {"ENMAP": "EnMAP", "DESIS": "DESIS"}
_EMPTY_MEAN = -1_000_000
"""Mean of a band that holds no data, in the statistics of an EnMAP product."""


def matches_metadata(head: bytes, path: Path) -> bool:
    """Tell the metadata of a product by their name."""
    return _METADATA.fullmatch(path.name) is not None


def read_image(path: Path) -> Contents:
    """Describe the image that lies beside the metadata `path`.

    Raises:
        InputError: there is none.
    """
    stem = path.name[: -len("-METADATA.XML")]
    names = [f"{stem}-SPECTRAL_IMAGE{end}" for end in (".TIF", ".tif", "_COG.tiff", "_COG.TIFF")]
    for name in names:
        if path.with_name(name).is_file():
            return tiff.read(path.with_name(name))
    raise InputError(f"{path} is metadata without their image: looked for {names[0]}")


def matches(contents: Contents) -> bool:
    """Tell the image of a product by its name."""
    return contents.format == "GeoTIFF" and _IMAGE.fullmatch(contents.path.name) is not None


def refine(contents: Contents) -> Contents:
    """Return the cube as reflectance (L2A) or radiance, with wavelengths and bad bands.

    Raises:
        InputError: no metadata beside the image, or those of another product.
    """
    name = _IMAGE.fullmatch(contents.path.name)
    assert name is not None
    metadata = _beside(contents.path, name[1])
    root = read_xml(metadata)
    bands = list(_bands(root))
    cube = contents.variables[0]
    count = cube.shape[2] if len(cube.shape) == 3 else 1
    if len(bands) != count:
        raise InputError(
            f"{metadata} describes {len(bands)} bands and {contents.path.name} has {count}: "
            "are they of one product?"
        )
    size = [_integer(root.find(f".//merge/dimension/{axis}")) for axis in ("rows", "columns")]
    if None not in size and size != [*cube.shape[:2]]:
        raise InputError(
            f"{metadata} describes {size[0]} x {size[1]} pixels and {contents.path.name} has "
            f"{cube.shape[0]} x {cube.shape[1]}: are they of one product?"
        )
    waves, gain, offset, widths = (np.array(column) for column in zip(*bands, strict=True))
    part = Part(cube, waves, gain, offset)
    joined, order = join(cube.name, [part], cube.geo, nodata=_mark(cube.nodata, root))
    bad = _bad_bands(root, count)
    places = np.argsort(np.argsort(waves, kind="stable"), kind="stable")
    meta = {
        "wavelengths": order,
        "bad_bands": tuple(sorted(int(places[band]) for band in bad)),
        "fwhm": widths[np.argsort(waves, kind="stable")] if np.isfinite(widths).all() else None,
        "header": str(metadata),
    }
    kind = f"{_MISSIONS[name[2].upper()]} ({contents.format})"
    return replace(contents, format=kind, variables=(joined,), meta={**contents.meta, **meta})


def _beside(image: Path, stem: str) -> Path:
    names = [f"{stem}-METADATA.{end}" for end in ("XML", "xml")]
    for name in names:
        if image.with_name(name).is_file():
            return image.with_name(name)
    raise InputError(
        f"{image} is a product without its metadata: looked for {names[0]}; under another name it "
        "is read as a plain GeoTIFF"
    )


def _bands(root: Element) -> Iterator[tuple[float, float, float, float]]:
    """Centre in nm, gain, offset, and width in nm of each band; NaN where it has none."""
    for listed in root.iter("bandCharacterisation"):
        for band in listed:
            facts = {child.tag.lower(): child.text for child in band}
            if "wavelengthcenterofband" not in facts:
                continue
            yield (
                _number(facts, "wavelengthCenterOfBand"),
                _number(facts, "GainOfBand"),
                _number(facts, "OffsetOfBand"),
                _number(facts, "FWHMOfBand") if "fwhmofband" in facts else float("nan"),
            )
        return  # DESIS has another list, of geometry


def _number(facts: dict[str, str | None], name: str) -> float:
    try:
        value = float(facts[name.lower()] or "")
    except (KeyError, ValueError):
        value = float("nan")
    if not np.isfinite(value) or (value <= 0 and name != "OffsetOfBand"):
        raise InputError(f"{name} of a band is {facts.get(name.lower())!r}, a number needed")
    return value


def _integer(element: Element | None) -> int | None:
    text = (element.text or "").strip() if element is not None else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _mark(own: float | None, root: Element) -> float:
    """The image's own mark for no data, else the metadata's; -32768 is DLR's usual one."""
    if own is not None:
        return own
    background = root.findtext(".//specific/backgroundValue") or ""
    try:
        return float(background)
    except ValueError:
        return -32768.0


def _bad_bands(root: Element, count: int) -> set[int]:
    """Indices of bands that no detector list expects, or whose statistics say that they are empty.

    EnMAP lists its channels, numbered from 1, apart for its two detectors.
    """
    expected: set[int] = set()
    for listed in root.iter("expectedChannelsList"):
        numbers = [text.strip() for text in (listed.text or "").split(",")]
        expected |= {int(text) - 1 for text in numbers if text.isascii() and text.isdigit()}
    bad = set(range(count)) - expected if expected else set()
    statistics: list[Any] = root.findall(".//product/bandStatistics/bandID")
    for index, band in enumerate(statistics[:count]):
        facts = (band.findtext("stdDeviation", ""), band.findtext("mean", ""))
        try:
            deviation, mean = (float(text) for text in facts)
        except ValueError:
            continue
        if deviation == 0 and mean == _EMPTY_MEAN:
            bad.add(index)
    return bad if len(bad) < count else set()
