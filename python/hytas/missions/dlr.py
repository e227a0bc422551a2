"""EnMAP L1C and L2A and DESIS L1C and L2A (DLR): an image and its metadata in XML.

Layout: EnMAP product specification EN-PCV-ICD-2009, DESIS products definition. `NAME-METADATA.XML`
describes `NAME-SPECTRAL_IMAGE.TIF`: centre, gain and offset of each band. The image may also be of
ENVI or JPEG 2000.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from hytas.data.findings import Finding, note, refusal, warning
from hytas.data.limits import by
from hytas.data.record import BandFacts, Contents
from hytas.data.xml_tree import read_xml
from hytas.errors import InputError
from hytas.missions.joined import JoinedPart, join_parts

_ENDS = (".TIF", "_COG.TIF", "_COG.TIFF", ".TIFF", ".GEOTIFF", ".BSQ", ".BIL", ".BIP", ".JP2")
_IMAGE = re.compile(
    rf"((ENMAP|DESIS).*)-SPECTRAL_IMAGE({'|'.join(map(re.escape, _ENDS))})", re.IGNORECASE
)
_METADATA = re.compile(r"((ENMAP|DESIS).*)-METADATA\.XML", re.IGNORECASE)
_MISSIONS = {"ENMAP": "EnMAP", "DESIS": "DESIS"}
_EMPTY_MEAN = -1_000_000
"""Mean of a band that holds no data, in the statistics of an EnMAP product."""


def _image_of(path: Path) -> Path:
    """Return the image of a product, given its metadata; any other path as it is."""
    if _METADATA.fullmatch(path.name) is None:
        return path
    stem = path.name[: -len("-METADATA.XML")]
    names = [f"{stem}-SPECTRAL_IMAGE{end}" for end in _ENDS]
    found = {other.name.upper(): other for other in sorted(path.parent.iterdir())}
    for name in names:
        if name.upper() in found:
            return found[name.upper()]
    raise InputError(rule=f"is metadata without their image: looked for {names[0]}")


def matches(contents: Contents) -> bool:
    """Tell the image of a product by its name."""
    return _IMAGE.fullmatch(contents.path.name) is not None and len(contents.variables) == 1


def refine(contents: Contents) -> Contents:
    """Return the cube as reflectance (L2A) or radiance, with wavelengths and bad bands.

    Without its metadata an image is a plain GeoTIFF; a finding says so.
    """
    name = _IMAGE.fullmatch(contents.path.name)
    assert name is not None
    names = [f"{name[1]}-METADATA.{end}" for end in ("XML", "xml")]
    candidates = (contents.path.with_name(each) for each in names)
    metadata = next((path for path in candidates if path.is_file()), None)
    if metadata is None:
        missing = warning("values-unscaled", case="no-metadata", file=names[0])
        return replace(contents, findings=(*contents.findings, missing))
    root = read_xml(metadata)
    bands = list(_bands(root))
    image = contents.variables[0]
    sizes = dict(zip(image.dims, image.shape, strict=False))
    if len(bands) != sizes.get("band"):
        counts = {"size": len(bands), "bands": sizes.get("band")}
        raise refusal("sizes-differ", "", case="metadata", other=metadata.name, **counts)
    size = [_integer(root.find(f".//merge/dimension/{axis}")) for axis in ("rows", "columns")]
    findings: tuple[Finding, ...] = ()
    rows, columns = (each or 0 for each in size)
    if sizes["y"] > rows > 0 or sizes["x"] > columns > 0:
        pixels = {"size": by((rows, columns)), "own": by((sizes["y"], sizes["x"]))}
        raise refusal("sizes-differ", "", other=metadata.name, **pixels)
    if sizes["y"] < rows or sizes["x"] < columns:
        findings = (note("part-of-product", rows=rows, columns=columns),)
    waves, gain, offset, fwhm = (np.array(column) for column in zip(*bands, strict=True))
    part = JoinedPart(image, waves, gain, offset)
    cube, order = join_parts(image.name, [part], image.grid, nodata=_nodata(image.nodata, root))
    bad = _bad_bands(root, len(bands))
    good = None if not bad else np.array([band not in bad for band in order.tolist()])
    facts = BandFacts(waves[order], fwhm[order] if np.isfinite(fwhm).all() else None, good)
    kind = f"{_MISSIONS[name[2].upper()]} ({contents.format})"
    cube, sidecars = replace(cube, bands=facts), (*contents.sidecars, metadata)
    return replace(contents, format=kind, variables=(cube,), findings=findings, sidecars=sidecars)


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
        raise InputError(rule=f"{name} of a band is {facts.get(name.lower())!r}, a number needed")
    return value


def _integer(element: Element | None) -> int | None:
    text = (element.text or "").strip() if element is not None else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _nodata(own: float | None, root: Element) -> float:
    """Return the no-data value of the image, else of the metadata; DLR's default is -32768."""
    if own is not None:
        return own
    background = root.findtext(".//specific/backgroundValue") or ""
    try:
        return float(background)
    except ValueError:
        return -32768.0


def _bad_bands(root: Element, count: int) -> set[int]:
    """Indices of bands that no detector list expects, or whose statistics say that they are empty.

    EnMAP lists its channels, numbered from 1, separately for its two detectors.
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
