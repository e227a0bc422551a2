"""A folder with small stand-ins of all files that commands of the pages name."""

import csv
import re
import runpy
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyogrio.raw
import rasterio
import scipy.io
import shapely
from PIL import Image

import hytas
from analysis.random_table import write_random_table
from commands import run_copy
from data.products_made import emit, prisma
from hytas._engine import Feasible, SearchSpace
from hytas.data.synthetic import CLASS_NAMES

ROOT = Path(__file__).parents[1]
FENCE = "```{}\n(.*?)```"
QUICK = ["--population", "6", "--generations", "1", "--finalists", "1", "--epochs", "1"]
QUICK += ["--effort", "quick", "--workers", "1"]
"""Options of a search that takes seconds."""


def blocks(page: str, language: str) -> list[str]:
    """The code of a page in one language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(FENCE.format(language), text, re.DOTALL)


def write_folder(folder: Path) -> None:
    """Write scenes, labels, tables, images, models and runs."""
    _write_scenes(folder)
    _write_tables(folder)
    _write_images(folder)
    for name in ("examples", "deploy", "docs", "engine"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "mine.py").write_text("\n".join(blocks("docs/extending.md", "python")[:3]))
    (folder / "small.toml").write_text(blocks("docs/research.md", "toml")[0])
    suite = folder / "benchmarks" / "suite"
    suite.mkdir(parents=True)
    for path in (ROOT / "benchmarks").glob("*.py"):
        (folder / "benchmarks" / path.name).symlink_to(path)
    (folder / "benchmarks" / "curves").mkdir()
    for path in (ROOT / "benchmarks" / "curves").glob("leaves.*"):
        (folder / "benchmarks" / "curves" / path.name).symlink_to(path)
    for name in ("jasper", "leaves"):
        (suite / f"{name}.toml").write_text(TASK)
    _write_models(folder)


TASK = """about = "Six covers"
sensor = "made up"
[generated]
seed = 4
height = 40
width = 48
bands = 16
[search]
budget = "5K-params"
population = 6
generations = 1
[race]
finalists = 1
race_steps = 2
presets = "plain"
"""


def _write_scenes(folder: Path) -> None:
    gis = runpy.run_path(str(ROOT / "examples" / "qgis" / "enmap_scene.py"))
    scene = hytas.synthetic_scene(seed=4, height=40, width=48, bands=16)
    labels, cube = np.asarray(scene.labels), np.asarray(scene.cube)
    train = np.where(np.random.default_rng(0).random(labels.shape) < 0.2, labels, 0)
    arrays = {"input": cube, "TR": train, "TE": labels - train}
    scipy.io.savemat(folder / "IndianPine.mat", arrays)
    scipy.io.savemat(folder / "cube.mat", {"cube": cube})
    scipy.io.savemat(folder / "gt.mat", {"gt": labels})
    scipy.io.savemat(folder / "scene.mat", {"cube": cube, "gt": labels})
    gis["write_cube"](folder / "scene.tif", scene)
    names, shapes = zip(*gis["draw_polygons"](scene, np.random.default_rng(1)), strict=True)
    outlines = np.array([shapely.to_wkb(shape) for shape in shapes], object)
    points = np.array([shapely.to_wkb(shape.centroid) for shape in shapes], object)
    shares = np.random.default_rng(2).uniform(0, 60, (2, len(names)))
    for name in ("fields", *"abcd"):
        _write_shapes(folder / f"{name}.gpkg", outlines, {"crop": np.array(names, object)})
    _write_shapes(
        folder / "samples.gpkg", points, dict(zip(("carbon", "clay"), shares, strict=True))
    )
    for number, name in enumerate((*"abcd", "cube", "other")):
        gis["write_cube"](folder / f"{name}.tif", replace(scene, cube=cube + number))
    with rasterio.open(folder / "scene.tif") as file:
        profile = {**file.profile, "count": 1}
    for name, values, kind in (("new", labels, "uint8"), ("carbon", cube[..., 3], "float32")):
        with rasterio.open(folder / f"{name}.tif", "w", **profile | {"dtype": kind}) as file:
            file.write(values.astype(kind), 1)
    for number, name in enumerate(("cube", "new", "scene")):
        (cube + number).tofile(folder / f"{name}.img")
        (folder / f"{name}.hdr").write_text(
            f"ENVI\nsamples = {scene.width}\nlines = {scene.height}\nbands = {scene.bands}\n"
            "data type = 12\ninterleave = bip\nbyte order = 0\n"
            "map info = {UTM, 1, 1, 612000, 5342000, 30, 30, 32, North, WGS-84}\n"
        )
    emit(folder / "EMIT_L2A_RFL_001.nc")
    prisma(folder / "PRS_L2C_STD.he5", "L2C")


def _write_shapes(path: Path, shapes: np.ndarray, fields: dict[str, np.ndarray]) -> None:
    pyogrio.raw.write(
        path,
        shapes,
        list(fields.values()),
        list(fields),
        geometry_type="Polygon" if shapely.from_wkb(shapes[0]).area else "Point",
        crs="EPSG:32632",
        driver="GPKG",
    )


def _write_tables(folder: Path) -> None:
    generator, waves = np.random.default_rng(0), range(450, 850, 25)
    spectra = generator.normal(0, 0.1, (90, len(waves))) + np.arange(90)[:, None] % 3
    facts = {
        "crop": [("maize", "soy", "wheat")[row % 3] for row in range(90)],
        "field": [row // 6 for row in range(90)],
        "carbon": spectra[:, 3],
        "clay": spectra[:, 9] + 1,
    }
    for name, own in (("spectra", ["crop", "field"]), ("soils", [*facts][1:]), ("new", [])):
        rows = zip(*(facts[column] for column in own), *spectra.T, strict=True)
        _write_csv(folder / f"{name}.csv", [*own, *waves], rows)
    (folder / "results").mkdir()
    for path in (folder / "indian.csv", folder / "archs.csv", folder / "results" / "table.csv"):
        write_random_table(path, 40)
    space = SearchSpace.builtin("autoformer-tiny", {})
    drawn = space.unpack(Feasible(space).sample(12, 0, "choices"))
    genes = [name for name in drawn[0] if name != "space"]
    rows = ([*(one[name] for name in genes), generator.uniform(), one["space"]] for one in drawn)
    _write_csv(folder / "vit.csv", [*genes, "OA", "space"], rows)


def _write_csv(path: Path, columns: list, rows) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def _write_images(folder: Path) -> None:
    generator = np.random.default_rng(0)
    for name, count in (("tiles", 20), ("new-tiles", 2)):
        for shade, kind in ((60, "roof"), (190, "water")):
            place = folder / name / kind
            place.mkdir(parents=True)
            for number in range(count):
                pixels = generator.normal(shade, 20, (8, 8, 3)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(place / f"{number}.png")


def _write_models(folder: Path) -> None:
    """Write a run, its exported files, and models of the products of two missions."""
    classes = ",".join(f"{number}={name}" for number, name in enumerate(CLASS_NAMES, start=1))
    data = ["--data", "cube.mat", "--labels", "gt.mat", "--class-names", classes]
    run(folder, "search", *data, "--budget", "20K-params", *QUICK, "--out", "runs/ip")
    run(folder, "export", "runs/ip", "--formats", "onnx-scene")
    for path in folder.glob("runs/ip/*.onnx"):
        shutil.copy(path, folder / path.name)
    images = ["--data", "tiles", "--budget", "100K-params"]
    run(folder, "search", *images, *QUICK, "--out", "runs/images")
    products = {"EMIT_L2A_RFL_001.nc": (12, 10), "PRS_L2C_STD.he5": (8, 9)}
    for product, size in products.items():
        name = product.partition("_")[0]
        np.save(folder / f"{name}.npy", np.random.default_rng(0).integers(1, 4, size))
        data = ["--data", product, "--labels", f"{name}.npy", "--split", "random"]
        data += ["--space", "linear", "--proxy", "params", "--budget", "9K-params"]
        run(folder, "search", *data, *QUICK, "--out", name)
        shutil.copy(folder / name / "model.onnx", folder / f"{name}.onnx")


def run(folder: Path, *words: str) -> str:
    """Run `hytas WORDS` in a folder, and return its standard output."""
    done = run_copy(*words, cwd=folder)
    assert done.returncode == 0, (words, done.stderr[-2000:])
    return done.stdout


if __name__ == "__main__":
    write_folder(Path(sys.argv[1]))
