"""Every example runs as its first lines say."""

import subprocess
import sys
from pathlib import Path

import pytest

import hytas

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path, tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "test OA" in done.stdout


def test_the_scene_of_the_gis_tutorial_has_its_polygons(tmp_path: Path) -> None:
    script = EXAMPLES[0].with_name("qgis") / "enmap_scene.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    scene = hytas.load_scene(
        tmp_path / "scene.tif", labels=tmp_path / "fields.gpkg", class_field="cover"
    )
    made = hytas.synthetic_scene(seed=4, height=110, width=130, bands=96)
    assert scene.wavelengths is not None
    assert scene.pixel_metres == 30.0
    assert set(scene.class_names) == set(made.class_names)
    drawn = scene.labels > 0
    names = [scene.class_names[label - 1] for label in scene.labels[drawn]]
    assert names == [made.class_names[label - 1] for label in made.labels[drawn]]
