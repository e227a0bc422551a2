"""A small model on a small scene, exported once for all tests."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hytas.data import PatchReader, Preprocessing, Scene, scene_from_arrays
from hytas.deploy.smoothing import Smoothing
from hytas.export import describe, export_formats
from hytas.model_card import ModelCard
from hytas.models import InputShape, SensorModel, build_network

ARCHITECTURE = {
    "space": "hytas",
    "depth": 3,
    "embed_dim": 32,
    "num_heads": [3, 4, 5],
    "mlp_ratio": [1, 2, 1],
}
SHALLOW = {"space": "hytas", "depth": 1, "embed_dim": 32, "num_heads": [3], "mlp_ratio": [2]}
CONVOLVED = ("pixel", "mean", "conv3", "yes", 1)
"""A small network of gated convolutions, for `wide_architecture`."""


TOKENS = ("band", "pixel", "series", "parallel")


def wide_architecture(
    tokens: str, pooling: str, mixer: str = "attention", gate: str = "no", depth: int = 3
) -> dict[str, Any]:
    """One of `hytas-wide`; fusion, which only attention has, needs three layers."""
    bands, pixels = int(tokens != "pixel") * depth, int(tokens != "band") * depth
    attends = mixer == "attention"
    architecture: dict[str, Any] = {
        "space": "hytas-wide",
        "tokens": tokens,
        "patch": 5,
        "band_width": 7,
        "band_stride": 4,
        "pooling": pooling,
        "fusion": "yes" if attends and gate == "no" else "no",
        "embed_dim": 32,
        "band_depth": bands,
        "pixel_depth": pixels,
        "band_mlp": [1, 2, 3][:bands],
        "pixel_mlp": [2, 1, 4][:pixels],
    }
    for stream, depth in (("band", bands), ("pixel", pixels)):
        architecture |= {
            f"{stream}_mixer": mixer if depth else "attention",
            f"{stream}_gate": gate if depth else "no",
            f"{stream}_heads": 4 if depth and attends else 2,
        }
    return architecture


@dataclass(frozen=True)
class Exported:
    scene: Scene
    model: SensorModel
    card: ModelCard
    folder: Path
    files: dict[str, Path]

    @property
    def onnx(self) -> Path:
        return self.files["onnx"]

    def patches(self, count: int | None = None) -> np.ndarray[Any, Any]:
        pixels = np.arange(self.scene.labels.size)[:count]
        return PatchReader(self.scene.cube, self.card.patch_size)(pixels)

    def probabilities(self, patches: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        with torch.no_grad():
            return self.model.eval()(torch.from_numpy(patches)).numpy()


def small_scene(dtype: str = "uint16", height: int = 17, width: int = 23, bands: int = 24) -> Scene:
    """Four classes in quarters, with class ids that are not consecutive; band 5 is dead."""
    rng = np.random.default_rng(4)
    quarter = (np.arange(height)[:, None] * 2 // height) * 2 + np.arange(width) * 2 // width
    spectra = rng.uniform(20, 90, (4, bands))
    cube = spectra[quarter] + rng.normal(0, 12, (height, width, bands))
    cube = np.clip(np.round(cube), 0, 127).astype(dtype)
    cube[..., 5] = 7
    ids = np.array([3, 4, 9, 200])
    return scene_from_arrays(
        cube,
        ids[quarter],
        name="quarters",
        wavelengths=np.linspace(400, 1000, bands),
        class_names={3: "grass", 4: "gravel", 9: "roof", 200: "water"},
    )


def small_model(
    scene: Scene, architecture: dict[str, Any] = ARCHITECTURE, side: int = 5
) -> tuple[SensorModel, ModelCard]:
    """An untrained network with weights large enough that its answers differ between pixels."""
    preprocessing = Preprocessing.fit_scene(scene, np.arange(0, scene.labels.size, 3))
    shape = InputShape(len(preprocessing.bands), scene.classes, side, 3)
    network = build_network(architecture, shape, seed=5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3.0)
    model = SensorModel(network, preprocessing).eval()
    smoothing = Smoothing.fit(scene.cube, preprocessing, scene.nodata)
    smoothing = replace(smoothing, temperature=0.6)
    return model, describe(scene, preprocessing, architecture, shape, smoothing=smoothing.to_dict())


_ONCE: list[Exported] = []


def export_small(make_folder: Callable[[str], Path]) -> Exported:
    """Export in a new folder, or return what another folder of tests had exported."""
    if not _ONCE:
        _ONCE.append(_export(make_folder("exported")))
    return _ONCE[0]


def _export(folder: Path) -> Exported:
    scene = small_scene()
    model, card = small_model(scene)
    files = export_formats(model, folder, card, ["onnx", "torchscript"])
    return Exported(scene, model, card, folder, files)
