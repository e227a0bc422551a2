"""The tile graph, read and run as the plugin Deepness does."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from small_model import CONVOLVED, small_model, small_scene, wide_architecture

from hytas.data import PatchReader
from hytas.export import Evidence, export_checked, qgis
from hytas.export.qgis import as_deepness

TILE = 48
"""Side of a tile here; that of a file for users is larger."""


@pytest.fixture(scope="module", autouse=True)
def _small_tiles() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qgis, "TILE", TILE)
        yield


class Deepness:
    """What Deepness 0.6 reads of a model (`model_base.py`, `segmentor.py`), and how it runs it."""

    def __init__(self, path: Path) -> None:
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (source,) = self.session.get_inputs()
        self.name, self.input_shape = source.name, source.shape
        self.output_shapes = [output.shape for output in self.session.get_outputs()]
        self.held = self.session.get_modelmeta().custom_metadata_map

    def model_type(self) -> str:
        return str(json.loads(self.held["model_type"])).capitalize()

    def number(self, key: str, kind: type) -> Any:
        return kind(json.loads(self.held[key])) if key in self.held else None

    def class_names(self) -> list[str]:
        names = json.loads(self.held["class_names"])
        ordered = sorted(names.items(), key=lambda item: int(item[0]))
        assert [int(key) for key, _ in ordered] == list(range(len(ordered)))
        return [name for _, name in ordered]

    def map_of(self, cube: np.ndarray) -> np.ndarray:
        """Classify a cube in overlapping tiles, as `map_processor_segmentation.py` does."""
        overlap = int(TILE * self.number("tiles_overlap", int) / 100 * 2) // 2
        stride, half = TILE - overlap, overlap // 2
        labels = np.zeros(cube.shape[:2], int)
        starts = [range(0, max(size - overlap, 1), stride) for size in cube.shape[:2]]
        for top in starts[0]:
            for left in starts[1]:
                tile = cube[top : top + TILE, left : left + TILE]
                ends = [(0, TILE - size) for size in tile.shape[:2]]
                tile = np.pad(tile, (*ends, (0, 0)))
                (scores,) = self.session.run(None, {self.name: as_deepness(tile)})
                scores[scores < self.number("seg_thresh", float)] = 0.0
                found = scores.argmax(axis=1)[0]
                first = [half if at else 0 for at in (top, left)]
                whole = labels[top + first[0] : top + TILE, left + first[1] : left + TILE]
                whole[:] = found[first[0] :, first[1] :][: whole.shape[0], : whole.shape[1]]
        return labels


@pytest.fixture(scope="module", params=["uint16", "float32"])
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, ...]:
    """Scene, card, evidence, figures and folder of an exported file."""
    folder, dtype = tmp_path_factory.mktemp("qgis"), request.param
    scene = small_scene(dtype, height=TILE + 40, width=TILE + 9)
    model, card = small_model(scene, wide_architecture(*CONVOLVED))
    card = dataclasses.replace(card, pixel_metres=30.0)
    pixels = np.arange(0, scene.labels.size, 25)
    evidence = Evidence(model, scene.reader(card.patch_size), pixels, scene.targets(pixels))
    found = export_checked(folder, card, ["qgis"], evidence)["qgis"]
    return scene, card, evidence, found, folder


def test_deepness_reads_and_runs_the_file(exported: tuple[Any, ...]) -> None:
    scene, card, evidence, found, folder = exported
    assert found["labels_changed"] == 0
    plugin = Deepness(folder / "model.qgis.onnx")
    assert plugin.model_type() == "Segmentor"
    assert plugin.class_names() == ["grass", "gravel", "roof", "water"]
    assert plugin.input_shape == [1, 24, TILE, TILE]
    assert plugin.output_shapes == [[1, 4, TILE, TILE]]
    assert plugin.number("tile_size", int) == TILE
    assert plugin.number("resolution", float) == 3000.0  # cm
    labels = plugin.map_of(scene.cube)
    inner = np.zeros(labels.shape, bool)
    margin = card.margin
    inner[margin:-margin, margin:-margin] = True
    pixels = np.flatnonzero(inner)[::7]
    expected = Evidence(evidence.model, PatchReader(scene.cube, 5), pixels, pixels).expected.argmax(
        1
    )
    assert len(np.unique(expected)) == 4
    assert (labels.ravel()[pixels] == expected).mean() > 0.999
