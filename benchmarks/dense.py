"""A dense head next to patches: accuracy, CPU seconds of training and pixels a second of a map.

    python benchmarks/dense.py jasper --block 32 --guard 13 [--seeds 1] [--folder ../shared/suite]

Both train one architecture of `autoformer-mini` on 20 labels a class in blocks, on one thread. A
pixel of a map sees 13 pixels to each side in a tile, and 3 in a patch: with a guard band of 13
neither sees a training pixel from a test pixel.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
import onnxruntime
import torch

from hytas.data import Preprocessing, Scene, Split, load_scene, make_split
from hytas.export.onnx_file import OPSET, save, take_dtype, trace
from hytas.lab.dense import classify_tiles, fit_dense
from hytas.models import SensorModel, build_network
from hytas.spaces.shape import ImageShape
from hytas.train import LabelledPixels, Recipe
from hytas.train.loop import train

NETWORK = {
    "space": "autoformer-mini",
    "depth": 3,
    "embed_dim": 64,
    "num_heads": [4, 4, 4],
    "mlp_ratio": [2, 2, 2],
}
TILE, PATCH = 16, 7


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--seeds", default=1, show_default=True)
@click.option("--block", default=16, show_default=True, help="Side of a block.")
@click.option("--guard", default=3, show_default=True, help="Pixels of the guard band.")
@click.option("--folder", default="../shared/suite", show_default=True)
def main(names: tuple[str, ...], seeds: int, block: int, guard: int, folder: str) -> None:
    """Print a row for each scene, seed and way."""
    torch.set_num_threads(1)
    print("scene seed way parameters OA training_cpu_s pixels_a_cpu_s")
    for name in names:
        scene = load_scene(f"{folder}/{name}.mat", f"{folder}/{name}_gt.mat")
        for seed in range(seeds):
            side = 2 * guard + 1
            split = make_split(
                scene, seed=seed, patch_size=side, kind="blocks", block=block, train_per_class=20
            )
            for way in (dense, patches):
                with TemporaryDirectory() as place:
                    print(name, seed, *way(scene, split, seed, Path(place)), flush=True)


def dense(scene: Scene, split: Split, seed: int, folder: Path) -> tuple[object, ...]:
    """Return the figures of the dense head."""
    began = time.process_time()
    model = fit_dense(scene, split, NETWORK, side=TILE, seed=seed)
    seconds = time.process_time() - began
    run = opened(model.export(folder / "dense.onnx", scene.cube.dtype), "tiles")
    cube = np.asarray(scene.cube[:])
    return "dense", *figures(
        model.network, seconds, scene, split, lambda: classify_tiles(run, cube, TILE)
    )


def patches(scene: Scene, split: Split, seed: int, folder: Path) -> tuple[object, ...]:
    """Return the figures of the same architecture on patches."""
    known, read = split.train_and_validation, scene.reader(PATCH)
    scaling = Preprocessing.fit_scene(scene, known)
    targets = scene.labels.ravel().astype(np.int64) - 1
    classes = len(scene.class_ids)
    pixels = LabelledPixels(
        lambda chosen: scaling.apply(read(chosen)), known, targets[known], classes, scaling.dark
    )
    shape = ImageShape.of_pixels(len(scaling.bands), classes, PATCH)
    network = build_network(NETWORK, shape, seed=seed, drop_path=0.1)
    began = time.process_time()
    recipe = Recipe(steps=500, most_epochs=None, whitened=False)
    train(
        network, pixels, replace(pixels, pixels=known[:0], targets=targets[:0]), recipe, seed=seed
    )
    seconds = time.process_time() - began
    example = torch.zeros(2, PATCH, PATCH, scene.bands)
    most = max(each.numel() for each in network.parameters())
    names, batch = (["patches"], ["probabilities"]), {0: torch.export.Dim("N", min=1)}
    graph = trace(SensorModel(network, scaling).eval(), example, batch, names, OPSET, most)
    take_dtype(graph, scene.cube.dtype.name)
    run = opened(save(graph, folder / "patches.onnx"), "patches")
    every = np.arange(scene.labels.size)

    def classify() -> np.ndarray:
        rows = (run(read(row)).argmax(axis=1) for row in np.array_split(every, scene.height))
        return np.concatenate(list(rows)).reshape(scene.labels.shape)

    return "patches", *figures(network, seconds, scene, split, classify)


def opened(file: Path, name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return what runs an ONNX file on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options)
    return lambda values: session.run(None, {name: values})[0]


def figures(
    network: torch.nn.Module,
    seconds: float,
    scene: Scene,
    split: Split,
    classify: Callable[[], np.ndarray],
) -> tuple[object, ...]:
    """Return parameters, OA on test pixels, seconds of training, and pixels a CPU second."""
    began = time.process_time()
    index = classify()
    speed = index.size / (time.process_time() - began)
    right = index.ravel()[split.test] == scene.labels.ravel()[split.test] - 1
    size = sum(each.numel() for each in network.parameters())
    return size, f"{right.mean():.4f}", f"{seconds:.0f}", f"{speed:.0f}"


if __name__ == "__main__":
    main()
