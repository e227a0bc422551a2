"""The C++ onboard runner and hundreds of mutated files: a map, or one line of refusal.

With HYTAS_SANITIZE=1 the program is built with sanitizers, and there are 2,000 mutations.
"""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onboard_program import Run, with_unknown
from small_model import Exported
from test_rasters import write_cube

from hytas.deploy import model_file
from hytas.deploy.delta import make_delta
from hytas.export.onnx_file import seal

SEEDS, MUTATIONS = (10, 200) if os.environ.get("HYTAS_SANITIZE") else (1, 40)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes of a file changed, removed, repeated or moved."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4)) if data else 0):
        place, other = (int(at) for at in rng.integers(0, len(data), 2))
        size = int(rng.integers(1, 40))
        change = rng.integers(5)
        if change == 0:
            data[place] ^= 1 << int(rng.integers(8))
        elif change == 1:
            data[place : place + size] = rng.bytes(size)
        elif change == 2:
            del data[max(place, 1) : place + size]
        elif change == 3:
            data[place:place] = data[other : other + size]
        else:
            del data[max(place, 1) :]
    return bytes(data)


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """A model with a mutated entry of its metadata and a right checksum.

    The graph stays: a forged one can crash onnxruntime (SECURITY.md).
    """
    graph = onnx.load_from_string(content)
    entry = graph.metadata_props[int(rng.integers(len(graph.metadata_props)))]
    text = entry.value.encode()
    if rng.random() < 0.3:  # also bytes that are no UTF-8
        place = content.index(text) + int(rng.integers(len(text)))
        return model_file.sealed(content[:place] + rng.bytes(1) + content[place + 1 :])
    entry.value = mutated(text, rng).decode(errors="replace")
    seal(graph)
    return bytes(graph.SerializeToString(deterministic=True))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_mutated_files_end_in_a_map_or_in_one_line(
    onboard: Run, models: dict[str, Exported], tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    model = with_unknown(models["uint16"], tmp_path / "good.onnx", seed)
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    delta, other = tmp_path / "good.delta", models["float32"].files["onnx-scene"]
    delta.write_bytes(make_delta(other.read_bytes(), model.read_bytes()))
    bad_model, bad_delta, bad_scene = (
        tmp_path / name for name in ("bad.onnx", "bad.delta", "bad.hdr")
    )
    bad_scene.with_suffix(".img").write_bytes(scene.with_suffix(".img").read_bytes())
    refused = 0
    for number in range(MUTATIONS):
        kind = number % 4
        if kind < 2:
            change = forged if kind else mutated
            bad_model.write_bytes(change(model.read_bytes(), rng))
            done = onboard(bad_model, scene, tmp_path / "map.hdr", "--unknown", 0.05)
        elif kind == 2:
            bad_delta.write_bytes(mutated(delta.read_bytes(), rng))
            done = onboard("--update", bad_delta, other, tmp_path / "new.onnx")
        else:
            bad_scene.write_bytes(mutated(scene.read_bytes(), rng))
            done = onboard(model, bad_scene, tmp_path / "map.hdr")
        assert done.returncode in (0, 2), (number, done.stderr)
        assert "anitizer" not in done.stderr, (number, done.stderr)
        if done.returncode == 2:
            refused += 1
            assert done.stderr.splitlines()[-1].startswith("error: "), (number, done.stderr)
    assert refused > MUTATIONS // 2
