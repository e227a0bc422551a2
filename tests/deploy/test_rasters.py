"""Scenes in files of every layout, georeferenced maps out, kill and resume."""

import json
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import rasterio
from click.testing import CliRunner
from small_model import Exported, small_scene

from commands import Run
from hytas.cli.classify import classify
from hytas.data.grid import Grid, wkt_of_epsg
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.journal import open_journal
from hytas.deploy.outputs import Extras, check_place, write_confidence, write_map
from hytas.errors import InputError

RUN = "from hytas.cli.main import run; run()"
MAP_INFO = "UTM, 1, 1, 500000.0, 4100000.0, 30.0, 30.0, 33, North, WGS-84, units=Meters"


def write_cube(path: Path, cube: np.ndarray, interleave: str, order: str) -> Path:
    """An ENVI cube beside its header; `order` is "<" or ">"."""
    axes = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}[interleave]
    code = {"u2": 12, "i2": 2, "f4": 4, "f8": 5}[cube.dtype.str[1:]]
    stored = np.ascontiguousarray(cube.transpose(axes)).astype(cube.dtype.newbyteorder(order))
    path.with_suffix(".img").write_bytes(stored.tobytes())
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {cube.shape[1]}\nlines = {cube.shape[0]}\nbands = {cube.shape[2]}\n"
        f"header offset = 0\nfile type = ENVI Standard\ndata type = {code}\n"
        f"interleave = {interleave}\nbyte order = {int(order == '>')}\n"
        f"data ignore value = 9999\nmap info = {{{MAP_INFO}}}\n"
    )
    return path.with_suffix(".hdr")


@pytest.fixture(scope="module")
def expected(exported: Exported) -> Any:
    """The map of the cube with a hole, classified from memory."""
    model = DeployedModel.load(exported.onnx, "cpu")
    return classify_scene(model, holed(exported.scene.cube), nodata=9999)


def holed(cube: np.ndarray) -> np.ndarray:
    cube = cube.copy()
    cube[3:5, 7:9] = 9999
    return cube


@pytest.mark.parametrize(
    ("interleave", "order"), [("bsq", "<"), ("bil", ">"), ("bip", "<"), ("bsq", ">")]
)
def test_envi_cubes_of_every_layout(
    exported: Exported, expected: Any, tmp_path: Path, interleave: str, order: str, hytas: Run
) -> None:
    scene = write_cube(tmp_path / "scene", holed(exported.scene.cube), interleave, order)
    done = hytas("classify", exported.onnx, scene, "--out", tmp_path / "map.npy", "--tile-rows", 5)
    assert done.returncode == 0, done.stderr
    assert "no data   4 pixels" in done.stdout
    assert np.array_equal(np.load(tmp_path / "map.npy"), expected.labels)
    assert not list(tmp_path.glob(".*"))


def utm(*transform: float) -> Grid:
    return Grid(transform, wkt_of_epsg(32633), 17, 23)  # type: ignore[arg-type]


NORTH_UP = (30.0, 0.0, 500000.0, 0.0, -30.0, 4100000.0)
PLACES = {
    "north up": NORTH_UP,
    "south up": (30.0, 0.0, 500000.0, 0.0, 30.0, 4000000.0),
    "oblong": (30.0, 0.0, 500000.0, 0.0, -20.0, 4100000.0),
    "rotated": (24.0, 18.0, 500000.0, 18.0, -24.0, 4100000.0),
    "rotated and oblong": (24.0, 9.0, 500000.0, 18.0, -12.0, 4100000.0),
    "sheared": (30.0, 5.0, 500000.0, 0.0, -30.0, 4100000.0),
    "mirrored": (-30.0, 0.0, 500000.0, 0.0, -30.0, 4100000.0),
    "turned by half": (-30.0, 0.0, 500000.0, 0.0, 30.0, 4100000.0),
}
NOT_IN_ENVI = {"rotated and oblong", "sheared", "mirrored", "turned by half"}


@pytest.mark.parametrize("suffix", [".tif", ".hdr"])
@pytest.mark.parametrize("place", PLACES)
def test_a_map_lies_where_its_scene_lies_or_is_refused(
    exported: Exported, expected: Any, tmp_path: Path, place: str, suffix: str
) -> None:
    extras, path = Extras(grid=utm(*PLACES[place])), tmp_path / f"map{suffix}"
    if suffix == ".hdr" and place in NOT_IN_ENVI:
        with pytest.raises(InputError) as error:
            check_place(path, extras)
        assert (error.value.argument, error.value.value) == ("out", path)
        with pytest.raises(InputError, match="an ENVI header cannot tell"):
            write_map(path, expected, exported.card, extras)
        assert not list(tmp_path.iterdir())
        return
    check_place(path, extras)
    write_map(path, expected, exported.card, extras)
    write_confidence(tmp_path / f"sure{suffix}", expected, exported.card, extras)
    for name, values in (("map", expected.labels), ("sure", expected.confidence)):
        with rasterio.open(tmp_path / f"{name}{'.img' if suffix == '.hdr' else suffix}") as file:
            assert file.transform.almost_equals(rasterio.Affine(*PLACES[place]), 1e-6)
            assert file.crs.to_epsg() == 32633
            assert file.nodata == 0
            assert np.array_equal(file.read(1), values)


def opened(path: Path) -> Any:
    """Open a raster that has no place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        return rasterio.open(path)


def style(path: Path) -> dict[int, tuple[str, str]]:
    """Values, labels and colours of a style of QGIS."""
    entries = ElementTree.parse(path).iter("paletteEntry")
    return {int(e.attrib["value"]): (e.attrib["label"], e.attrib["color"]) for e in entries}


def test_geotiff_has_names_and_colours(exported: Exported, expected: Any, tmp_path: Path) -> None:
    card = exported.card
    path = write_map(tmp_path / "map.tif", expected, card, Extras(grid=utm(*NORTH_UP)))
    with rasterio.open(path) as file:
        assert file.dtypes == ("uint8",)
        colours = file.colormap(1)
    assert [colours[number][:3] for number in (0, 3, 200)] == [
        (0, 0, 0),
        card.palette[0],
        card.palette[3],
    ]
    names = ElementTree.parse(tmp_path / "map.tif.aux.xml").iter("Category")
    assert [name.text for name in names][198:] == ["unused 198", "unused 199", "water"]
    shown = style(tmp_path / "map.qml")
    assert list(shown) == [3, 4, 9, 200]
    assert shown[200] == ("water", "#" + bytes(card.palette[3]).hex())


@pytest.mark.parametrize("ended", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_goes_on_and_ends_the_same(
    exported: Exported, tmp_path: Path, hytas: Run, ended: signal.Signals
) -> None:
    cube = small_scene("uint16", height=400, width=40).cube
    scene = write_cube(tmp_path / "scene", cube, "bip", "<")
    arguments = ["classify", exported.onnx, scene, "--tile-rows", 8, "--threads", 1, "--json"]
    whole, out = tmp_path / "whole.npz", tmp_path / "map.npz"
    assert hytas(*arguments, "--out", whole).returncode == 0
    command = [sys.executable, "-c", RUN, *map(str, arguments), "--out", str(out)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / ".map.npz.partial"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size > 64 + 41 * 320):
        assert time.monotonic() < deadline
        assert child.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    child.send_signal(ended)
    assert child.wait() == (130 if ended == signal.SIGTERM else -ended)
    assert not out.exists()
    with journal.open("r+b") as file:  # as if the kill had come in the middle of a row
        file.seek(0, 2)
        file.write(b"half a row")
    done = hytas(*arguments, "--out", out)
    report = json.loads(done.stdout)
    assert 40 <= report["resumed_at_row"] < 400
    assert not journal.exists()
    for name in ("labels", "confidence"):
        assert np.array_equal(np.load(out)[name], np.load(whole)[name])


def strip(top: int, rows: int, value: int) -> tuple[Any, ...]:
    return (top, np.full((rows, 3), value, np.int32), np.full((rows, 3), 0.5, np.float32))


def interrupted(out: Path, identity: dict[str, Any]) -> int:
    """Append two rows and stop; returns the row it began at."""
    begun = -1
    try:
        with open_journal(out, identity, (5, 3)) as journal:
            begun = journal.done
            journal.append(*strip(begun, 2, 7))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return begun


def test_a_journal_of_other_work_is_not_continued(tmp_path: Path) -> None:
    out = tmp_path / "map.npy"
    assert interrupted(out, {"model": 1}) == 0
    assert interrupted(out, {"model": 1}) == 1
    assert interrupted(out, {"model": 2}) == 0
    assert interrupted(out, {"model": 2}) == 1
    with open_journal(out, {"model": 2}, (5, 3)) as journal:
        with pytest.raises(ValueError, match="starts at row 1, 2 rows are done"):
            journal.append(*strip(1, 1, 1))
        with pytest.raises(ValueError, match="2 of 5 rows are done"):
            journal.class_map()
        journal.append(*strip(2, 3, 9))
        assert journal.class_map().labels[:][:, 0].tolist() == [7, 7, 9, 9, 9]
    assert list(tmp_path.iterdir()) == []


def test_an_output_never_overwrites_an_input_or_another_output(
    exported: Exported, tmp_path: Path
) -> None:
    scene = write_cube(tmp_path / "s", exported.scene.cube, "bil", "<")
    labels = tmp_path / "gt.npy"
    np.save(labels, exported.scene.labels.astype(np.uint8))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "d.tif").mkdir()
    runner, free = CliRunner(), tmp_path / "free.tif"
    for options, message in (
        (["--out", tmp_path / "s.hdr"], "out=.*s.hdr.*: is also a file of the scene"),
        (["--out", tmp_path / "s.img"], "out=.*s.hdr.*: is also a file of the scene"),
        (["--out", labels, "--labels", labels], "out=.*gt.npy.*: is also a file of the labels"),
        (["--out", free, "--confidence", free], "confidence=.*free.tif.*: is also a file of out"),
        (
            ["--out", tmp_path / "y.hdr", "--confidence", tmp_path / "y.img"],
            "confidence=.*y.hdr.*: is also a file of out",
        ),
        (["--out", tmp_path / "d.tif"], "out=.*d.tif': is a folder; the name of a file is needed"),
    ):
        done = runner.invoke(classify, list(map(str, [exported.onnx, scene, *options])))
        assert isinstance(done.exception, InputError), done.output
        assert re.search(message, str(done.exception)), done.exception
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
