"""Position of a scene on the earth: convert between ENVI headers and GeoTIFF tags.

ENVI: map info and coordinate system string (https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html).
GeoTIFF: OGC 19-008r4.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

# GeoTIFF tag numbers.
PIXEL_SCALE, TIEPOINT, TRANSFORMATION = 33550, 33922, 34264
KEY_DIRECTORY, DOUBLE_PARAMS, ASCII_PARAMS = 34735, 34736, 34737
TAGS = (PIXEL_SCALE, TIEPOINT, TRANSFORMATION, KEY_DIRECTORY, DOUBLE_PARAMS, ASCII_PARAMS)
# GeoTIFF keys.
_MODEL_TYPE, _RASTER_TYPE, _GEOGRAPHIC, _PROJECTED, _CITATION = 1024, 1025, 2048, 3072, 3073
_GEOGRAPHIC_CITATION = 2049
_USER_DEFINED = 32767
_PIXEL_IS_POINT = 2
_ESRI = "ESRI PE String = "

# UTM on the common datums: ENVI's name, the WKT name, and the EPSG codes of zone 0 north and south.
_UTM = (
    ("WGS-84", r"WGS[ _]?(?:19)?84", 32600, 32700),
    ("North America 1983", r"(?:NAD|North[ _]American)[ _]?(?:19)?83", 26900, None),
    ("North America 1927", r"(?:NAD|North[ _]American)[ _]?(?:19)?27", 26700, None),
    ("ETRS-89", r"ETRS[ _]?(?:19)?89", 25800, None),
)

_ZONE = r"UTM[ _]zone[ _](\d+)([NS])"

# (code, TIFF type, count, value): tifffile's `extratags` without the last field.
Tag = tuple[int, int, int, Any]
_ASCII, _SHORT, _DOUBLE = 2, 3, 12


@dataclass(frozen=True)
class Geo:
    """A scene's place on the earth.

    Attributes:
        transform: (a, b, c, d, e, f) with x = a col + b row + c and y = d col + e row + f, for the
            upper left corner of a pixel; None if unknown.
        epsg: the EPSG code of the coordinate system, or None.
        wkt: its well-known text, or None.
        envi: the fields of the ENVI header, unchanged, if the scene has one.
        tags: the tags of the GeoTIFF, unchanged, if the scene is one.
    """

    transform: tuple[float, float, float, float, float, float] | None
    epsg: int | None = None
    wkt: str | None = None
    envi: tuple[tuple[str, str], ...] = ()
    tags: tuple[Tag, ...] = ()

    @classmethod
    def from_envi(cls, fields: Mapping[str, str]) -> Self | None:
        """Read "map info" (comma separated) and "coordinate system string" of a header."""
        info = [part.strip() for part in fields.get("map info", "").split(",")]
        wkt = fields.get("coordinate system string", "").strip() or None
        transform = _transform_of_map_info(info)
        if transform is None and wkt is None:
            return None
        epsg = _epsg_of_wkt(wkt) if wkt else _epsg_of_map_info(info)
        return cls(transform, epsg, wkt, envi=tuple(fields.items()))

    @classmethod
    def from_tags(cls, tags: Mapping[int, Tag]) -> Self | None:
        """Read the GeoTIFF tags of a file, given by number."""
        kept = tuple(tags[code] for code in TAGS if code in tags)
        if not kept:
            return None
        values = {tag[0]: tag[3] for tag in kept}
        keys = _keys(values)
        code = keys.get(_PROJECTED, keys.get(_GEOGRAPHIC))
        epsg = code if isinstance(code, int) and 0 < code < _USER_DEFINED else None
        citation = str(keys.get(_CITATION, keys.get(_GEOGRAPHIC_CITATION, "")))
        wkt = citation.removeprefix(_ESRI) if citation.startswith(_ESRI) else None
        point = keys.get(_RASTER_TYPE) == _PIXEL_IS_POINT
        return cls(_transform_of_tags(values, point), epsg, wkt, tags=kept)

    def to_tags(self) -> tuple[Tag, ...]:
        """Return GeoTIFF tags: those of the file, or made from transform and coordinate system."""
        if self.tags:
            return self.tags
        tags: list[Tag] = []
        if self.transform is not None:
            a, b, c, d, e, f = self.transform
            if b == 0 and d == 0 and a > 0 and e < 0:
                tags.append((PIXEL_SCALE, _DOUBLE, 3, (a, -e, 0.0)))
                tags.append((TIEPOINT, _DOUBLE, 6, (0.0, 0.0, 0.0, c, f, 0.0)))
            else:
                matrix = (a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
                tags.append((TRANSFORMATION, _DOUBLE, 16, matrix))
        return (*tags, *self._key_tags())

    def _key_tags(self) -> tuple[Tag, ...]:
        geographic = self.epsg is not None and 4000 <= self.epsg < 5000
        geographic |= self.epsg is None and (self.wkt or "").startswith("GEOGCS")
        model, text = 2 if geographic else 1, ""
        keys = [(_RASTER_TYPE, 0, 1, 1)]
        if self.epsg is not None:
            keys.append((_GEOGRAPHIC if geographic else _PROJECTED, 0, 1, self.epsg))
        elif self.wkt is not None:
            text = f"{_ESRI}{self.wkt}|"
            keys.append((_GEOGRAPHIC if geographic else _PROJECTED, 0, 1, _USER_DEFINED))
            # GDAL reads the text only from the projected citation, and only if the model type is
            # not one of the standard.
            model = _USER_DEFINED
            keys.append((_CITATION, ASCII_PARAMS, len(text), 0))
        else:
            return ()
        keys.append((_MODEL_TYPE, 0, 1, model))
        flat = [number for key in ((1, 1, 0, len(keys)), *sorted(keys)) for number in key]
        tags: list[Tag] = [(KEY_DIRECTORY, _SHORT, len(flat), tuple(flat))]
        if text:
            tags.append((ASCII_PARAMS, _ASCII, 0, text))
        return tuple(tags)

    def to_envi(self) -> dict[str, str]:
        """Return header fields: those of the file, or made from transform and coordinate system.

        ENVI has no EPSG codes. For a code outside UTM and WGS-84 rasterio gives the text. Without
        rasterio the projection becomes "Arbitrary".
        """
        if self.envi:
            return dict(self.envi)
        fields: dict[str, str] = {}
        wkt = self.wkt
        zone = _utm_zone(self.epsg)
        if self.transform is not None:
            a, b, c, d, e, f = self.transform
            place = f"1, 1, {c!r}, {f!r}, {math.hypot(a, b)!r}, {math.hypot(d, e)!r}"
            turn = math.degrees(math.atan2(b, a))
            if zone is not None:
                place = f"UTM, {place}, {zone[1]}, {zone[2]}, {zone[0]}, units=Meters"
            elif self.epsg == 4326:
                place = f"Geographic Lat/Lon, {place}, WGS-84, units=Degrees"
            else:
                place = f"Arbitrary, {place}"
            fields["map info"] = place + (f", rotation={turn!r}" if turn else "")
        if wkt is None and zone is not None and zone[0] == "ETRS-89":
            wkt = _etrs_wkt(zone[1])
        elif wkt is None and zone is None and self.epsg not in (None, 4326):
            wkt = _wkt_of_epsg(self.epsg)
        if wkt is not None:
            fields["coordinate system string"] = wkt
        return fields


def _transform_of_map_info(
    info: Sequence[str],
) -> tuple[float, float, float, float, float, float] | None:
    try:
        column, row, x, y, width, height = (float(value) for value in info[1:7])
    except ValueError:
        return None
    turn = next((v.split("=")[1] for v in info if v.lower().startswith("rotation=")), "0")
    try:
        angle = math.radians(float(turn))
    except ValueError:
        angle = 0.0
    angle = angle if math.isfinite(angle) else 0.0
    cosine, sine = math.cos(angle), math.sin(angle)
    # The reference pixel counts from 1 and means its upper left corner. As in GDAL, a rotation does
    # not turn the offset to the reference pixel; its signs are GDAL's, too.
    left, top = x - width * (column - 1), y + height * (row - 1)
    return width * cosine, width * sine, left, height * sine, -height * cosine, top


def _epsg_of_map_info(info: Sequence[str]) -> int | None:
    name = info[0].lower()
    if name.startswith("geographic"):
        return 4326 if any(part.upper() == "WGS-84" for part in info) else None
    if name != "utm" or len(info) < 9 or not info[7].isdigit():
        return None
    for datum, _, north, south in _UTM:
        if any(part.lower() == datum.lower() for part in info[9:]):
            base = south if info[8].lower().startswith("s") else north
            return None if base is None else base + int(info[7])
    return None


def _epsg_of_wkt(wkt: str) -> int | None:
    # The outermost authority is the last one in the text.
    authority = re.findall(r'AUTHORITY\["EPSG",\s*"?(\d+)"?\]\s*\]\s*$', wkt)
    if authority:
        return int(authority[-1])
    name = re.match(r'\s*(?:PROJCS|GEOGCS)\["([^"]+)"', wkt)
    if name is None:
        return None
    datum = re.search(r'GEOGCS\["([^"]+)"', wkt)
    for _, pattern, north, south in _UTM:
        zone = re.fullmatch(rf"{pattern}[ _/]*{_ZONE}", name[1], re.IGNORECASE)
        if zone is None and datum and re.fullmatch(rf"(?:GCS_)?{pattern}", datum[1], re.IGNORECASE):
            # ENVI names only the zone here; the datum is one level deeper.
            zone = re.fullmatch(_ZONE, name[1], re.IGNORECASE)
        if zone is not None:
            base = south if zone[2].upper() == "S" else north
            return None if base is None else base + int(zone[1])
    if re.fullmatch(r"(?:GCS_)?WGS[ _](?:19)?84", name[1], re.IGNORECASE):
        return 4326
    return None


def _utm_zone(epsg: int | None) -> tuple[str, int, str] | None:
    """Return ENVI's datum name, the zone and "North" or "South"."""
    for datum, _, north, south in _UTM:
        for base, side in ((north, "North"), (south, "South")):
            if epsg is not None and base is not None and 1 <= epsg - base <= 60:
                return datum, epsg - base, side
    return None


def _etrs_wkt(zone: int) -> str:
    return (
        f'PROJCS["ETRS_1989_UTM_Zone_{zone}N",GEOGCS["GCS_ETRS_1989",DATUM["D_ETRS_1989",'
        'SPHEROID["GRS_1980",6378137.0,298.257222101]],PRIMEM["Greenwich",0.0],'
        'UNIT["Degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],'
        'PARAMETER["False_Easting",500000.0],PARAMETER["False_Northing",0.0],'
        f'PARAMETER["Central_Meridian",{zone * 6 - 183}.0],PARAMETER["Scale_Factor",0.9996],'
        'PARAMETER["Latitude_Of_Origin",0.0],UNIT["Meter",1.0]]'
    )


def _wkt_of_epsg(epsg: int | None) -> str | None:
    try:
        crs = import_module("rasterio.crs").CRS
    except ImportError:
        return None
    try:
        return str(crs.from_epsg(epsg).to_wkt(version="WKT1_ESRI"))
    except ValueError:  # rasterio's CRSError is a ValueError: an unknown code
        return None


def _keys(values: Mapping[int, Any]) -> dict[int, Any]:
    directory = [int(number) for number in values.get(KEY_DIRECTORY, ())]
    text = str(values.get(ASCII_PARAMS, ""))
    keys: dict[int, Any] = {}
    for at in range(4, len(directory) - 3, 4):
        key, place, count, value = directory[at : at + 4]
        if place == 0:
            keys[key] = value
        elif place == ASCII_PARAMS:
            keys[key] = text[value : value + count].rstrip("|\0")
    return keys


def _transform_of_tags(
    values: Mapping[int, Any], point: bool
) -> tuple[float, float, float, float, float, float] | None:
    if TRANSFORMATION in values:
        m = [float(number) for number in values[TRANSFORMATION]]
        a, b, c, d, e, f = m[0], m[1], m[3], m[4], m[5], m[7]
    elif PIXEL_SCALE in values and TIEPOINT in values:
        width, height = (float(number) for number in values[PIXEL_SCALE][:2])
        column, row, _, x, y = (float(number) for number in values[TIEPOINT][:5])
        a, b, c, d, e, f = width, 0.0, x - column * width, 0.0, -height, y + row * height
    else:
        return None
    if point:  # the tie point is the pixel's centre, but the transform is for its corner
        c, f = c - (a + b) / 2, f - (d + e) / 2
    return a, b, c, d, e, f
