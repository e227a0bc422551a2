"""Small products, made by code from the public documents of their formats."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tifffile

WGS84 = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],'
    'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]'
)


def emit(path: Path, height: int = 12, width: int = 10, **changed: Any) -> dict[str, Any]:
    """An EMIT L2A product of 6 bands, of which two have no retrieval; its parts by name."""
    generator = np.random.default_rng(0)
    made: dict[str, Any] = {
        "reflectance": generator.uniform(0, 0.6, (height, width, 6)).astype(np.float32),
        "sensor_band_parameters/wavelengths": np.array([381.0, 500, 700, 1380, 1900, 2400], "f4"),
        "sensor_band_parameters/fwhm": np.full(6, 8.5, np.float32),
        "sensor_band_parameters/good_wavelengths": np.array([1, 1, 1, 0, 0, 1], np.float64),
    }
    made["reflectance"][0, 0] = -9999
    rows, columns = np.mgrid[0:height, 0:width]
    # The scanner flew south-east: a row of the scene is a slanted line of the map.
    made["location/lat"] = 40.0 - 0.001 * (rows + 0.5) - 0.0002 * columns
    made["location/lon"] = 20.0 + 0.001 * (columns + 0.5)
    grid = np.mgrid[0 : height + 3, 0 : width + 1]
    line = np.floor(grid[0] + 0.5 - 0.2 * grid[1]).astype(int)
    inside = (line >= 0) & (line < height) & (grid[1] < width)
    made["location/glt_x"] = np.where(inside, grid[1] + 1, 0).astype(np.int32)
    made["location/glt_y"] = np.where(inside, line + 1, 0).astype(np.int32)
    made |= changed
    with h5py.File(path, "w") as file:
        for name, values in made.items():
            if values is not None:
                file[name] = values
        file["reflectance"].attrs["_FillValue"] = np.array([-9999.0], np.float32)
        file.attrs["geotransform"] = np.array([20.0, 0.001, 0.0, 40.0, 0.0, -0.001])
        file.attrs["spatial_ref"] = WGS84
        file.attrs["title"] = "EMIT L2A Estimated Surface Reflectance"
    return made


def prisma(path: Path, level: str = "L2D", **changed: Any) -> dict[str, Any]:
    """A PRISMA product of 4 + 3 bands, one of each detector not measured; cubes and attributes."""
    generator = np.random.default_rng(1)
    swath = f"HDFEOS/SWATHS/PRS_{level}_HCO"
    vnir = generator.integers(1, 60000, (8, 4, 9)).astype(np.uint16)  # line, band, sample
    swir = generator.integers(1, 60000, (8, 3, 9)).astype(np.uint16)
    vnir[7, :, 8] = swir[7, :, 8] = 0
    attributes: dict[str, Any] = {
        "List_Cw_Vnir": np.array([0.0, 970, 700, 450], np.float32),
        "List_Cw_Vnir_Flags": np.array([0, 1, 1, 1], np.uint8),
        "List_Cw_Swir": np.array([2400.0, 950, 0], np.float32),
        "List_Cw_Swir_Flags": np.array([1, 1, 0], np.uint8),
        "L2ScaleVnirMin": np.float32(-0.1),
        "L2ScaleVnirMax": np.float32(1.2),
        "L2ScaleSwirMin": np.float32(0.0),
        "L2ScaleSwirMax": np.float32(0.8),
        "ScaleFactor_Vnir": np.float32(100.0),
        "ScaleFactor_Swir": np.float32(200.0),
        "Offset_Vnir": np.float32(0.0),
        "Offset_Swir": np.float32(1.0),
        "Epsg_Code": np.int64(32632),
        "Product_ULcorner_easting": 500000.0,
        "Product_ULcorner_northing": 5000000.0,
        "Product_LRcorner_easting": 500000.0 + 30 * 8,
        "Product_LRcorner_northing": 5000000.0 - 30 * 7,
    }
    attributes |= changed
    with h5py.File(path, "w") as file:
        file[f"{swath}/Data Fields/VNIR_Cube"] = vnir
        file[f"{swath}/Data Fields/SWIR_Cube"] = swir
        file[f"{swath}/Data Fields/VNIR_PIXEL_L2_ERR_MATRIX"] = np.zeros(vnir.shape, np.uint8)
        file[f"{swath}/Data Fields/SWIR_PIXEL_L2_ERR_MATRIX"] = np.zeros(swir.shape, np.uint8)
        file[f"HDFEOS/SWATHS/PRS_{level}_PCO/Data Fields/Cube"] = np.ones((48, 54), np.uint16)
        rows, columns = np.mgrid[0:8, 0:9]
        for end in ("_VNIR", "_SWIR") if level == "L1" else ("",):
            file[f"{swath}/Geolocation Fields/Latitude{end}"] = 45.0 - 0.0003 * rows
            file[f"{swath}/Geolocation Fields/Longitude{end}"] = 9.0 + 0.0004 * columns
        for name, value in attributes.items():
            if value is not None:
                file.attrs[name] = value
    return {**attributes, "vnir": vnir, "swir": swir}


ENMAP = "ENMAP01-____L2A-DT0000001867_20220724T104526Z_008_V010302_20230628T165614Z"
_BAND = """<bandID number="{number}"><wavelengthCenterOfBand>{wave}</wavelengthCenterOfBand>
<FWHMOfBand>7.0</FWHMOfBand><GainOfBand>0.0001</GainOfBand><OffsetOfBand>0</OffsetOfBand></bandID>
"""
_LEVEL = """<?xml version="1.0" encoding="UTF-8"?>
<level_X xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<product><image><merge><channels>5</channels><dimension><columns>7</columns><rows>6</rows>
</dimension></merge></image><bandStatistics>{statistics}</bandStatistics></product>
<specific><vnirProductQuality><expectedChannelsList>1,2,3</expectedChannelsList>
</vnirProductQuality><swirProductQuality><expectedChannelsList>4,5</expectedChannelsList>
</swirProductQuality><bandCharacterisation>{bands}</bandCharacterisation>
<backgroundValue>-32768</backgroundValue></specific></level_X>"""


def neon(path: Path, height: int = 6, width: int = 5, map_info: str = "", **changed: Any) -> Any:
    """A NEON tile of 4 bands, of which one lies in water vapour; returns the stored values."""
    cube = np.random.default_rng(4).integers(1, 9000, (height, width, 4)).astype(np.int16)
    cube[0, 0] = -9999
    corner = "UTM, 1.000, 1.000, 257000.000, 4112000.000, 1.0, 1.0, 11, North, WGS-84, units=Meters"
    made: dict[str, Any] = {
        "Reflectance_Data": cube,
        "Metadata/Spectral_Data/Wavelength": np.array([450.0, 800, 1400, 2200], np.float32),
        "Metadata/Spectral_Data/FWHM": np.full(4, 5.7, np.float32),
        "Metadata/Coordinate_System/Map_Info": np.bytes_(map_info or f"{corner}, 0"),
        "Metadata/Coordinate_System/EPSG Code": np.bytes_("32611"),
        "Metadata/Ancillary_Imagery/Haze_Cloud_Water_Map": np.arange(30).reshape(6, 5) % 3,
        "Metadata/Ancillary_Imagery/Weather_Quality_Indicator": np.ones((6, 5, 3), np.uint8),
    }
    with h5py.File(path, "w") as file:
        for name, values in (made | changed).items():
            file[f"SJER/Reflectance/{name}"] = values
        stored = file["SJER/Reflectance/Reflectance_Data"]
        stored.attrs["Data_Ignore_Value"] = -9999.0
        stored.attrs["Scale_Factor"] = 10000.0
        file["SJER/Reflectance"].attrs["Band_Window_1_Nanometers"] = [1340, 1445]
        file["SJER/Reflectance"].attrs["Band_Window_2_Nanometers"] = [1790, 1955]
    return cube


def enmap(folder: Path, waves: tuple[float, ...] = (418.4, 550, 900, 1380, 2400)) -> Path:
    """An EnMAP L2A product of 5 bands, the fourth of which is empty; returns its image."""
    image = folder / f"{ENMAP}-SPECTRAL_IMAGE.TIF"
    cube = np.random.default_rng(2).integers(0, 6000, (6, 7, 5)).astype(np.int16)
    cube[0, 0] = -32768
    cube[:, :, 3] = -32768
    tags = [
        (33550, 12, 3, (30.0, 30.0, 0.0), True),
        (33922, 12, 6, (0.0, 0.0, 0.0, 400000.0, 5800000.0, 0.0), True),
        (34735, 3, 16, (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633), True),
        (42113, 2, 0, "-32768", True),
    ]
    tifffile.imwrite(
        image, cube.transpose(2, 0, 1), planarconfig="separate", photometric="minisblack",
        metadata=None, extratags=tags,
    )  # fmt: skip
    statistics = "".join(
        f'<bandID number="{i}"><stdDeviation>{0 if i == 4 else 9.5}</stdDeviation>'
        f"<mean>{-1000000 if i == 4 else 120.5}</mean></bandID>"
        for i in range(1, 6)
    )
    bands = "".join(_BAND.format(number=i, wave=wave) for i, wave in enumerate(waves, start=1))
    text = _LEVEL.format(bands=bands, statistics=statistics)
    (folder / f"{ENMAP}-METADATA.XML").write_text(text, encoding="utf-8")
    return image


def desis(folder: Path) -> Path:
    """A DESIS L2A product of 3 bands; returns its image."""
    stem = "DESIS-HSI-L2A-DT0483531728_002-20201003T102225-V0210"
    bands = "".join(
        f"<band><bandNumber>{i}</bandNumber><wavelengthCenterOfBand>{wave}"
        "</wavelengthCenterOfBand><wavelengthWidthOfBand>2.5</wavelengthWidthOfBand>"
        "<gainOfBand>0.0001</gainOfBand><offsetOfBand>0.5</offsetOfBand></band>"
        for i, wave in enumerate((402.1, 404.7, 999.5), start=1)
    )
    text = (
        f"<hsi_doc><specific><bandCharacterisation>{bands}</bandCharacterisation>"
        "<interiorOrientation><band><bandNumber>1</bandNumber></band></interiorOrientation>"
        "</specific></hsi_doc>"
    )
    (folder / f"{stem}-METADATA.xml").write_text(text, encoding="utf-8")
    image = folder / f"{stem}-SPECTRAL_IMAGE.tif"
    cube = np.random.default_rng(3).integers(0, 6000, (6, 7, 3)).astype(np.int16)
    tifffile.imwrite(image, cube, photometric="minisblack", planarconfig="contig", metadata=None)
    return image


def pace(path: Path, level: str = "L2") -> dict[str, Any]:
    """A PACE OCI product; its parts by name."""
    generator = np.random.default_rng(4)
    made: dict[str, Any] = {
        "navigation_data/latitude": np.linspace(10, 11, 30).reshape(5, 6),
        "navigation_data/longitude": np.linspace(-60, -59, 30).reshape(5, 6),
    }
    if level == "L2":
        made["geophysical_data/rhos"] = generator.integers(-50, 9000, (5, 6, 4)).astype(np.int16)
        made["geophysical_data/l2_flags"] = np.zeros((5, 6), np.int32)
        made["sensor_band_parameters/wavelength"] = np.linspace(300, 2258, 11)
        made["sensor_band_parameters/wavelength_3d"] = np.array([346.0, 500, 895, 2258])
    else:
        for name, waves in (("blue", (350, 600)), ("red", (595, 800)), ("SWIR", (940, 1250, 1250))):
            cube = generator.uniform(0, 0.5, (len(waves), 5, 6)).astype(np.float32)
            made[f"observation_data/rhot_{name}"] = cube
            made[f"sensor_band_parameters/{name}_wavelength"] = np.array(waves, np.float32)
    with h5py.File(path, "w") as file:
        for name, values in made.items():
            file[name] = values
        if level == "L2":
            stored = file["geophysical_data/rhos"]
            stored.attrs["_FillValue"] = np.int16(-32767)
            stored.attrs["scale_factor"], stored.attrs["add_offset"] = 0.0001, 0.02
    return made
