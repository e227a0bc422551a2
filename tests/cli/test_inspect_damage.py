"""`hytas inspect` on folders and models that are not what was written."""

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hytas.cli.inspect import inspect


def looked_at(path: Path, *options: str) -> Result:
    return CliRunner().invoke(inspect, [str(path), *options, "--json"])


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
    for words in ("ip.mat", "500K-params", "45123 parameters", "0.9000"):
        assert words in told
    assert hashlib.sha256(b"1234").hexdigest() in told
    assert "unfinished" not in told
    (tmp_path / "metrics.json").unlink()
    assert "unfinished" in CliRunner().invoke(inspect, [str(tmp_path)]).stdout


@pytest.mark.parametrize(
    ("text", "what", "note"),
    [
        (
            "row,column,class\n1,2,3\n4,5,6\n",
            "polygons or points",
            "taken for points, by its columns; column and row may",
        ),
        (
            "lon;lat;crop\n1.5;2;rye\n",
            "polygons or points",
            "taken for points, by its columns; lon and lat may",
        ),
        (
            "x,y,class,b1,b2\n1,2,3,4,5\n",
            "table",
            "taken for a table of spectra, by its columns; x and y may",
        ),
        ("x,y,450.5,460\n1,2,4,5\n", "table", "taken for a table of spectra"),
        ("class,b1,b2\n3,4,5\n", "table", ""),
    ],
)
def test_points_and_spectra_are_told_apart(tmp_path: Path, text: str, what: str, note: str) -> None:
    path = tmp_path / "some.csv"
    path.write_text(text)
    found = json.loads(looked_at(path).stdout)
    assert found["what"] == what
    assert note in "".join(found["notes"][-1:])
