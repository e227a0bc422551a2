"""Write a small scene as EnMAP sees one, and polygons of its classes, for the GIS tutorial.

    python examples/qgis/enmap_scene.py field

writes `field/scene.tif` (pixels of 30 m in UTM zone 32, 96 bands with wavelengths) and
`field/fields.gpkg` (polygons with the field `cover`). The land is made up; nothing is fetched.
"""

import sys
from pathlib import Path

import numpy as np
import pyogrio.raw
import rasterio
import shapely

import hytas

CRS, PIXEL, WEST, NORTH = "EPSG:32632", 30.0, 612_000.0, 5_342_000.0
POLYGONS, SIDE = 9, 6  # of each class; longest side in pixels


def write_cube(path: Path, scene: hytas.Scene) -> None:
    """Write the cube as a GeoTIFF whose bands name their wavelengths."""
    profile = {
        "driver": "GTiff",
        "height": scene.height,
        "width": scene.width,
        "count": scene.bands,
        "dtype": scene.dtype,
        "crs": CRS,
        "transform": rasterio.transform.from_origin(WEST, NORTH, PIXEL, PIXEL),
        "compress": "deflate",
    }
    with rasterio.open(path, "w", **profile) as file:
        file.write(np.moveaxis(scene.cube, 2, 0))
        for band, wavelength in enumerate(scene.wavelengths, 1):
            file.update_tags(band, wavelength=f"{wavelength:.1f}", wavelength_units="nm")
            file.set_band_description(band, f"{wavelength:.0f} nm")


def draw_polygons(scene: hytas.Scene, generator: np.random.Generator) -> list[tuple[str, object]]:
    """Return (class, polygon) pairs: fields of one class, as a person draws them."""
    drawn = []
    free = np.ones(scene.labels.shape, bool)
    for number, name in enumerate(scene.class_names, 1):
        own, found = scene.labels == number, 0
        for _ in range(20_000):
            height, width = generator.integers(3, SIDE + 1, 2)
            row = generator.integers(1, scene.height - height)
            column = generator.integers(1, scene.width - width)
            window = slice(row, row + height), slice(column, column + width)
            if found == POLYGONS or not (own[window] & free[window]).all():
                continue
            corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], float)
            corners += generator.uniform(-0.3, 0.3, corners.shape) + np.array([column, row])
            places = [(WEST + PIXEL * x, NORTH - PIXEL * y) for x, y in corners]
            drawn.append((name, shapely.Polygon(places)))
            free[max(row - 2, 0) : row + height + 2, max(column - 2, 0) : column + width + 2] = (
                False
            )
            found += 1
    return drawn


def main() -> None:
    """Write both files into the folder that is named."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "field")
    folder.mkdir(parents=True, exist_ok=True)
    scene = hytas.synthetic_scene(seed=4, height=110, width=130, bands=96)
    write_cube(folder / "scene.tif", scene)
    names, shapes = zip(*draw_polygons(scene, np.random.default_rng(1)), strict=True)
    pyogrio.raw.write(
        folder / "fields.gpkg",
        np.array([shapely.to_wkb(shape) for shape in shapes], object),
        [np.array(names, object)],
        ["cover"],
        geometry_type="Polygon",
        crs=CRS,
        driver="GPKG",
        layer="fields",
    )
    print(
        f"{folder}: scene.tif ({scene.height} x {scene.width} pixels), fields.gpkg ({len(names)})"
    )


if __name__ == "__main__":
    main()
