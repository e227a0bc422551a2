"""`hytas inspect` on folders and models that are not what was written."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.io import savemat

from hytas.cli.inspect import inspect
from hytas.errors import InputError


def looked_at(path: Path, *options: str) -> Result:
    return CliRunner().invoke(inspect, [str(path), *options, "--json"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "nested more than 100 deep"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested more than 100 deep"),
        (b"", "not JSON"),
        (b"\xff\xff", "not JSON"),
        (b"9" * 5000, "not JSON"),
    ],
)
@pytest.mark.parametrize("name", ["config", "architecture", "metrics"])
def test_json_that_is_none(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / f"{name}.json").write_bytes(content)
    error = looked_at(tmp_path).exception
    assert isinstance(error, InputError)
    assert message in str(error)
    assert "\n" not in str(error)


ACCURACY = {"OA": 0.9, "AA": 0.8, "kappa": 0.7, "pixels": 40}
FINISHED = {
    "config": {
        "config": {
            "data": {"data": "ip.mat"},
            "search": {"budget": "500K-params", "space": "hytas"},
        }
    },
    "architecture": {"space": "hytas", "depth": 3, "embed_dim": 32},
    "metrics": {
        "test": ACCURACY,
        "smoothed": {**ACCURACY, "OA": 0.95},
        "costs": {"params": 45123},
        "split": {"kind": "random"},
        "parity": {"formats": {}},
        "calibration": {"reason": "too few pixels"},
        "training": {},
    },
}


def test_a_run_is_told_in_ten_lines(tmp_path: Path) -> None:
    for name, values in FINISHED.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(values))
    (tmp_path / "model.onnx").write_bytes(b"1234")
    told = CliRunner().invoke(inspect, [str(tmp_path)]).stdout
    assert len(told.splitlines()) <= 10
    for words in ("ip.mat", "500K-params", "45123 parameters", "OA 0.9000", "OA 0.9500"):
        assert words in told
    assert hashlib.sha256(b"1234").hexdigest() in told
    assert "unfinished" not in told
    (tmp_path / "metrics.json").unlink()
    assert "unfinished" in CliRunner().invoke(inspect, [str(tmp_path)]).stdout


def test_arrays_that_could_be_cube_and_labels_are_listed(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(1, 99, (6, 5, 4)).astype(np.uint8)
    classes = np.tile(np.arange(5) // 2, (6, 1)).astype(np.uint8)
    path = tmp_path / "two.mat"
    savemat(path, {"cube": values, "raw": values, "gt": classes, "mask": classes // 2})
    found = json.loads(looked_at(path).stdout)
    assert found["could be the cube"] == "cube, raw (name one with --cube-key)"
    assert found["could be labels"] == "gt, mask (name one with --labels-key)"
    assert len(found["problems"]) == 1
    assert "several cubes" in found["problems"][0]
    chosen = json.loads(looked_at(path, "--cube-key", "raw", "--labels-key", "gt").stdout)
    assert chosen["labelled pixels"] == 18
    assert not {"could be the cube", "could be labels", "problems"} & chosen.keys()


def test_files_without_labels_are_described(tmp_path: Path) -> None:
    band = np.arange(99).reshape(9, 11, 1)
    np.save(tmp_path / "band.npy", band)
    found = json.loads(looked_at(tmp_path / "band.npy").stdout)
    assert found["what"] == "label map"
    assert len(found["classes"]) == 64
    assert "98 different numbers" in found["notes"][0]
    cube = np.random.default_rng(0).integers(100, 900, (9, 11, 6)).astype(np.int16)
    cube[2] = -9999
    np.save(tmp_path / "cube.npy", cube)
    found = json.loads(looked_at(tmp_path / "cube.npy").stdout)
    assert "11 sampled pixels hold -9999" in found["notes"][1]
    assert found["problems"] == [
        f"--data {tmp_path / 'cube.npy'}: holds no label map; name its file with --labels"
    ]


@pytest.mark.parametrize(
    ("text", "what", "note"),
    [
        ("row,column,class\n1,2,3\n4,5,6\n", "polygons or points", "columns column and row;"),
        ("lon;lat;crop\n1.5;2;rye\n", "polygons or points", "columns lon and lat;"),
        ("x,y,class,b1,b2\n1,2,3,4,5\n", "table", "if x and y are positions"),
        ("x,y,450.5,460\n1,2,4,5\n", "table", "if x and y are positions"),
        ("class,b1,b2\n3,4,5\n", "table", ""),
    ],
)
def test_points_and_spectra_are_told_apart(tmp_path: Path, text: str, what: str, note: str) -> None:
    path = tmp_path / "some.csv"
    path.write_text(text)
    found = json.loads(looked_at(path).stdout)
    assert found["what"] == what
    assert note in found["notes"][-1]
