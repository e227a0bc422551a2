"""The C++ onboard runner and model files that were damaged, or made to do harm."""

from pathlib import Path

import numpy as np
import onnx
from onboard_program import Run
from small_model import Exported
from test_rasters import write_cube

from hytas.model_card import CHECKSUM


def test_no_flipped_bit_goes_unnoticed(
    onboard: Run, models: dict[str, Exported], tmp_path: Path
) -> None:
    content = models["uint16"].files["onnx-scene"].read_bytes()
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    model, rng = tmp_path / "model.onnx", np.random.default_rng(3)
    behind = content.index(b"hytas.sha256") - 4
    for place in (*rng.integers(0, len(content), 60), *range(behind, len(content), 5), 0, 1):
        damaged = bytearray(content)
        damaged[int(place)] ^= 1 << int(rng.integers(8))
        model.write_bytes(damaged)
        done = onboard(model, scene, tmp_path / "map.hdr")
        assert (done.returncode, done.stdout) == (2, ""), (place, done.stderr)
        assert done.stderr.startswith("error: model: ")
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("map*"))


def test_a_model_without_its_checksum_is_refused(
    onboard: Run, models: dict[str, Exported], tmp_path: Path
) -> None:
    graph = onnx.load(models["uint16"].files["onnx-scene"])
    for entry in list(graph.metadata_props):
        if entry.key == CHECKSUM:
            graph.metadata_props.remove(entry)
    model = tmp_path / "model.onnx"
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    onnx.save(graph, model)
    done = onboard(model, scene, tmp_path / "map.hdr")
    assert done.returncode == 2
    assert "it has no checksum" in done.stderr
