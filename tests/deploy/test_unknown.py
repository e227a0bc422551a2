"""Ground of no class of a model: the score, and the same pixels in Python, C++ and C."""

import dataclasses
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onboard_program import Run
from scipy.special import softmax
from small_model import Exported, small_model, small_scene
from test_rasters import holed, write_cube

from commands import run_here
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.unknown import UnknownGround
from hytas.export import export_formats
from hytas.export.c_source import FLAGS, c_prefix, c_source

SHARE = 0.3


def drawn(seed: int, pixels: int, classes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Logits whose own class is far ahead, and their classes."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, classes, pixels)
    logits = rng.normal(0, 1, (pixels, classes))
    logits[np.arange(pixels), targets] += 5
    return softmax(logits, axis=1).astype(np.float32), targets


def test_a_share_of_new_pixels_of_known_classes_is_unknown() -> None:
    score = UnknownGround.fit(*drawn(0, 2000))
    found = score.scores(drawn(1, 4000)[0])
    for share in (0.02, 0.05, 0.2):
        assert np.mean(found > score.threshold(share)) == pytest.approx(share, rel=0.35)
    between = softmax(np.random.default_rng(2).normal(0, 1, (300, 5)), axis=1)  # no class leads
    assert np.mean(score.scores(between) > score.threshold(0.05)) > 0.7


def test_a_score_is_the_distance_to_the_nearest_centre() -> None:
    """Against a plain loop, and after the way through JSON."""
    probabilities, targets = drawn(3, 60, classes=4)
    score = UnknownGround.fit(probabilities, targets)
    again = UnknownGround.from_dict(score.to_dict(), 4)
    for one, found in zip(probabilities[:9], again.scores(probabilities[:9]), strict=True):
        values = np.log(one.astype(float))
        whitened = score.transform.astype(float) @ (values - values.mean())
        plain = min(sum((whitened - centre) ** 2) for centre in score.centres.astype(float))
        assert found == pytest.approx(plain, rel=1e-12)
    assert list(score.thresholds) == sorted(score.thresholds, reverse=True)


def test_a_class_without_held_out_pixels_is_not_unknown() -> None:
    probabilities, targets = drawn(4, 3000)
    some = targets != 2
    score = UnknownGround.fit(probabilities[some], targets[some])
    found = score.scores(probabilities[~some]) > score.threshold(0.05)
    assert found.mean() < 0.3


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A patch graph, a scene graph and a C file of a model with a score."""
    scene = small_scene("float32")
    model, card = small_model(scene)
    folder = tmp_path_factory.mktemp("told") / "ip"
    folder.mkdir()
    plain = Exported(scene, model, card, folder, {})
    pixels = np.arange(0, scene.labels.size, 2)
    chances = plain.probabilities(plain.patches()[pixels])
    score = UnknownGround.fit(chances, chances.argmax(axis=1))
    card = dataclasses.replace(card, unknown=score.to_dict())
    files = export_formats(model, folder, card, ["onnx", "onnx-scene"])
    return Exported(scene, model, card, folder, files)


@pytest.mark.parametrize("smooth", ["none", "guided"])
def test_the_same_pixels_in_python_and_on_board(
    smooth: str, onboard: Run, told: Exported, tmp_path: Path
) -> None:
    scene = write_cube(tmp_path / "scene", holed(told.scene.cube), "bil", "<")
    model, more = told.files["onnx-scene"], ("--smooth", smooth, "--unknown", SHARE)
    there = run_here("classify", model, scene, "--out", tmp_path / "there.hdr", *more)
    assert there.returncode == 0, there.stderr
    here = onboard(model, scene, tmp_path / "here.hdr", *more)
    assert here.returncode == 0, here.stderr
    found = (tmp_path / "here.img").read_bytes()
    assert found == (tmp_path / "there.img").read_bytes()
    unknown = np.frombuffer(found, np.uint8) == 0
    assert 0.1 < unknown.mean() < 0.6
    patches = run_here("classify", told.onnx, scene, "--out", tmp_path / "patches.npy", *more)
    assert patches.returncode == 0, patches.stderr
    assert np.array_equal(np.load(tmp_path / "patches.npy").ravel() == 0, unknown)


@pytest.mark.slow
def test_the_same_pixels_in_c(told: Exported, tmp_path: Path) -> None:
    pytest.importorskip("emx_onnx_cgen", reason="needs emx-onnx-cgen")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    patches = told.patches()
    model = DeployedModel.load(told.onnx, "cpu")
    expected = classify_scene(model, told.scene.cube, unknown=SHARE, smooth="none").labels == 0
    source, name = tmp_path / "model.c", c_prefix(tmp_path)
    source.write_text(
        c_source(told.model, told.card, name)
        + "\n#include <stdio.h>\nint main(void) {\n"
        + f"    static {name}_patch patch;\n    static float p[{name}_classes];\n"
        + f"    static float space[{name}_workspace];\n"
        + "    while (fread(&patch, sizeof patch, 1, stdin) == 1) {\n"
        + f"        {name}_run(&patch, p, space);\n"
        + f"        putchar('0' + {name}_is_unknown(p, {SHARE}));\n    }}\n    return 0;\n}}\n"
    )
    program = tmp_path / "program"
    subprocess.run([compiler, *FLAGS, source, "-lm", "-o", program], check=True)
    done = subprocess.run([program], input=patches.tobytes(), capture_output=True, check=True)
    found = np.array([letter == "1" for letter in done.stdout.decode()])
    assert np.array_equal(found, expected.ravel())
