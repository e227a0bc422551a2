"""Models of values in every exact form: torch, ONNX, C and the program on board."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import rasterio
import torch
from onboard_program import Run, Start
from small_model import ARCHITECTURE, Exported, small_scene, wide_architecture
from test_onboard import described
from test_onboard_stops import constants, with_flipped_weights
from test_rasters import write_cube

from commands import run_here
from hytas.data import PatchReader, Preprocessing, scene_from_arrays
from hytas.data.interpret.wavelengths import items_of
from hytas.data.read.envi import fields_of
from hytas.data.targets import checked_targets
from hytas.export import describe, export_formats
from hytas.export.c_source import open_c
from hytas.export.parity import open_onnx
from hytas.models import InputShape, SensorModel, build_network
from hytas.models.regression import FITTED, LinearValues, MeanOfValues
from hytas.spaces.names import PRETREATMENTS
from hytas.tasks import task_of

MARK, HOLES = 9999.0, [(2, 3), (5, 7), (9, 4)]
TARGETS = ("carbon, organic", "clay")
WINNERS = ("ridge", "pls", "mean", "fractions", *PRETREATMENTS)
PIXEL_TOKENS = wide_architecture("pixel", "mean", depth=1)


def winner(kind: str, folder: Path, *formats: str) -> Exported:
    """A model of smooth spectra: bands are nearly equal to their neighbours, and two are equal."""
    cube = np.cumsum(small_scene("float32").cube, axis=2, dtype=np.float32)
    cube[..., 10] = cube[..., 9]
    pixels, height, width = np.arange(cube[..., 0].size), *cube.shape[:2]
    flat = cube.reshape(-1, cube.shape[2])
    values = np.stack([flat[:, 3] / 1e3, np.log1p(flat[:, 20] - flat[:, 7])], axis=1)
    if fractions := kind == "fractions":
        share = flat[:, 3] / flat[:, 3].max()
        values = np.stack([share, 1 - share], axis=1)
    targets, labels = checked_targets("labels", TARGETS, values, ("%", "g/kg"))
    targets = replace(targets, fractions=fractions)
    labels = labels.reshape(height, width).astype(np.int32)
    scene = scene_from_arrays(cube, labels, nodata=MARK, targets=targets, name="soil")
    task = task_of(scene).fitted(values)
    preprocessing = Preprocessing.fit_scene(scene, pixels)
    side = 1 if kind in PRETREATMENTS else 5  # only tables have the gene
    patches = torch.from_numpy(preprocessing.apply(PatchReader(cube, side)(pixels))).float()
    aims = torch.from_numpy(task.coded(values))
    bands = len(preprocessing.bands)

    def fitted(name: str) -> torch.nn.Module:
        network = FITTED[name](bands, 2, name)
        network.solve(patches, aims)
        if isinstance(network, LinearValues):  # large terms that cancel
            with torch.no_grad():
                network.head.weight[:, 9:11] += torch.tensor([1e4, -1e4])
        return network

    architecture = PIXEL_TOKENS if kind == "mean" else ARCHITECTURE
    shape = InputShape(bands, 2, side, 3, values=1)
    if kind in FITTED:
        network = fitted(kind)
    else:
        if side == 1:
            architecture = {**PIXEL_TOKENS, "patch": 1, "skip": "linear", "pretreatment": kind}
        network = build_network(architecture, shape, seed=5)
        if side == 1:
            network.pretreatment.begin(patches)
            spectra = network.pretreatment(patches)[:, 0, 0]
            task.begin_skip(network.skip, network.head, spectra, aims)
            torch.nn.init.normal_(network.head.weight, std=0.1)
        if kind == "mean":
            network = MeanOfValues(network, {name: fitted(name) for name in ("pls", "kernel")}, 2)
    for row, column in HOLES:
        cube[row, column] = MARK
    model = SensorModel(network, preprocessing, read_out=task.read_out()).eval()
    card = task.described(describe(scene, preprocessing, architecture, shape))
    files = export_formats(model, folder, card, ["onnx-scene", *formats])
    return Exported(scene, model, card, folder, files)


@pytest.mark.parametrize("kind", WINNERS)
def test_every_exact_form_gives_the_values_of_torch(
    onboard: Run, tmp_path: Path, kind: str
) -> None:
    """To 1e-5 of each target's deviation; the program writes the bytes of `hytas predict`."""
    exported = winner(kind, tmp_path, "onnx", "c", "onnx-int8")
    patches, files = exported.patches(), exported.files
    expected, scale = exported.probabilities(patches), np.array(exported.card.targets["scale"])
    assert np.isfinite(expected).all()
    assert (expected.std(axis=0) > 0.01 * scale).all()
    scene = write_cube(tmp_path / "scene", exported.scene.cube, "bil", "<")
    maps = {"onboard": tmp_path / "here.hdr", "predict": tmp_path / "there.hdr"}
    done = onboard(files["onnx-scene"], scene, maps["onboard"])
    assert done.returncode == 0, done.stderr
    done = run_here("predict", files["onnx-scene"], scene, "--out", maps["predict"])
    assert done.returncode == 0, done.stderr
    found = {"onnx": open_onnx(files["onnx"])(patches), "c": open_c(files["c"])(patches)}
    for name, path in maps.items():
        assert fields_of(path)["interleave"] == "bil"
        lines = np.fromfile(path.with_suffix(".img"), "<f4").reshape(17, 2, 23)
        assert np.isnan(lines).sum() == 2 * len(HOLES)
        found[name] = lines.transpose(0, 2, 1).reshape(-1, 2)
    of_int8 = np.abs(open_onnx(files["onnx-int8"])(patches) - expected) / scale
    assert of_int8.max() < (1e-5 if kind in FITTED else 0.05)  # whose matrices stay in float32
    for name, values in found.items():
        gap = np.abs(values - expected) / scale
        assert np.nanmax(gap) < 1e-5, name
    images = [path.with_suffix(".img").read_bytes() for path in maps.values()]
    assert images[0] == images[1]


@pytest.fixture(scope="module")
def ridge(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return winner("ridge", tmp_path_factory.mktemp("ridge"))


def test_the_header_names_bands_units_and_no_data(
    onboard: Run, ridge: Exported, tmp_path: Path
) -> None:
    model, scene = (
        ridge.files["onnx-scene"],
        write_cube(tmp_path / "s", ridge.scene.cube, "bsq", "<"),
    )
    here, there = tmp_path / "here.hdr", tmp_path / "there.hdr"
    assert run_here("predict", model, scene, "--out", there).returncode == 0
    done = onboard(model, scene, here)
    assert "17 lines of 23 pixels mapped" in done.stdout
    assert described(here) == described(there)
    for path in (here, there):
        fields = fields_of(path)
        assert items_of(fields["band names"]) == ["carbon; organic", "clay"]
        assert items_of(fields["band units"]) == ["%", "g/kg"]
        assert "description" not in fields
        with rasterio.open(path.with_suffix(".img")) as file:
            assert (file.count, file.descriptions[1]) == (2, "clay")
            assert np.isnan(file.nodata)
    done = onboard(model, scene, here, "--confidence", tmp_path / "sure.hdr")
    assert "--confidence: a model of values gives none" in done.stderr


def test_a_run_of_values_goes_on_when_a_weight_changed(
    onboard: Run, start: Start, ridge: Exported, tmp_path: Path
) -> None:
    model, cube = ridge.files["onnx-scene"], np.concatenate([ridge.scene.cube] * 300)
    long, whole, out = (tmp_path / f"{name}.hdr" for name in ("long", "whole", "map"))
    write_cube(long.with_suffix(""), cube, "bil", "<")
    assert onboard(model, long, whole).returncode == 0
    constant = constants(onnx.load(model).graph)
    scaling = [one.raw_data for one in constant if list(one.dims) == [24]]
    process = start(model, long, out)
    said = with_flipped_weights(process, tmp_path / "map.img.part", 50 * 8, scaling)
    assert "its weights changed in memory between lines " in said
    assert "goes on behind line " in onboard(model, long, out).stderr
    assert out.with_suffix(".img").read_bytes() == whole.with_suffix(".img").read_bytes()


@pytest.mark.skipif("HYTAS_SANITIZE" in os.environ, reason="sanitizers replace operator new")
def test_pushed_lines_of_values_need_no_allocation(
    onboard: Run, onboard_build: Path, ridge: Exported, tmp_path: Path
) -> None:
    """The stand-in for onnxruntime allocates nothing when it runs."""
    library, model = onboard_build / "libstand_in.so", ridge.files["onnx-scene"]
    scene, out = write_cube(tmp_path / "scene", ridge.scene.cube, "bip", "<"), tmp_path / "map.hdr"
    assert onboard(model, scene, out, library=library).returncode == 0
    raster = np.fromfile(out.with_suffix(".img"), "<f4").reshape(17, 2, 23)
    for given in ((23, "none"), (scene, tmp_path / "other.hdr", "values")):
        command = [onboard_build / "count_allocations", library, model, *given]
        lines = ridge.scene.cube.tobytes()
        done = subprocess.run(list(map(str, command)), input=lines, capture_output=True)
        assert done.returncode == 0, done.stderr
        memory, allocated, calls = map(int, done.stderr.split())
        assert calls == 0
        assert 0 < memory < allocated
        if given[0] == 23:
            pushed = np.frombuffer(done.stdout, np.float32).reshape(17, 23, 2)
            np.testing.assert_array_equal(pushed, raster.transpose(0, 2, 1))
    assert (tmp_path / "other.img").read_bytes() == out.with_suffix(".img").read_bytes()
