"""`hytas classify` with a table of spectra."""

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parents[1] / "export"))

from small_model import small_model, small_scene  # isort: skip

from hytas.data import load_scene
from hytas.deploy import DeployedModel, classify_scene
from hytas.export import export_formats

from commands import run_here  # isort: skip

BANDS = 24


@pytest.fixture
def table() -> pd.DataFrame:
    """Spectra of the small scene, 24 bands, with columns that are no bands."""
    scene = small_scene("float32")
    spectra = scene.cube.reshape(-1, BANDS)[::7]
    frame = pd.DataFrame(spectra, columns=[f"{wave:g} nm" for wave in scene.wavelengths])
    frame.insert(0, "moisture", 0.5)
    frame["7"] = 1.0  # a number that is no wavelength
    return frame.assign(crop=scene.labels.ravel()[::7], field=np.arange(len(frame)) % 5)


def export(table: pd.DataFrame, folder: Path, **card: object) -> Path:
    table.drop(columns=["moisture", "field", "7"], errors="ignore").to_csv(
        folder / "learnt.csv", index=False
    )
    scene = load_scene(folder / "learnt.csv", label_column="crop")
    model, own = small_model(scene, side=1)
    return export_formats(model, folder, replace(own, **card), ["onnx"])["onnx"]


def classify(model: Path, table: pd.DataFrame, *more: object) -> tuple[dict, list[dict[str, str]]]:
    path = model.with_name("table.csv")
    table.to_csv(path, index=False)
    out = model.with_name("classes.csv")
    done = run_here("classify", model, path, "--out", out, "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), list(csv.DictReader(out.read_text().splitlines()))


@pytest.mark.parametrize("scale_by", ["training", "scene"])
def test_a_table_gets_the_classes_of_a_scene(scale_by, table: pd.DataFrame, tmp_path: Path) -> None:
    moved, bands = table.copy(), [name for name in table if name.endswith("nm")]
    if scale_by == "scene":
        table[bands] = (table[bands] - table[bands].mean()) / table[bands].std().clip(1e-3)
    path = export(table, tmp_path, scale_by=scale_by)
    moved.loc[3, bands] = np.nan
    report, rows = classify(path, moved.sample(frac=1, axis=1, random_state=0))
    model = DeployedModel.load(path, "cpu")
    cube = moved[bands].to_numpy(np.float32)[:, None]
    found = classify_scene(model, cube, smooth="none").labels.ravel()
    names = dict(zip(model.card.class_ids, model.card.class_names, strict=True))
    assert [row["class"] for row in rows] == [names.get(number, "") for number in found]
    assert len(set(found)) > 2
    assert (rows[3]["class"], rows[3]["confidence"], report["no_data"]) == ("", "", 1)
    assert "moisture" in report["notes"][0]


def test_a_table_is_inspected(table: pd.DataFrame, tmp_path: Path) -> None:
    table.drop(columns="7").assign(plot="a").to_csv(tmp_path / "table.csv", index=False)
    done = run_here("inspect", tmp_path / "table.csv", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["rows"], found["wavelengths"]) == (len(table), "400.0 to 1000.0 nm")
    assert found["bands"].startswith("24 columns of numbers: 400 nm")
    done = run_here("inspect", tmp_path / "table.csv", "--bands", "1-3")
    assert "is for scenes" in done.stderr
    assert "crop, 4 values" in found["other columns"]
