"""Inference: onnxruntime beside torch eager, reduced precision, scene graph, memory; in one run.

    python benchmarks/inference.py --data IndianPine.mat [--network pixels] [--out pixels.json]

Time does not depend on the weights' values, so the network is untrained. Ratios are of processor
time on one thread, which other programs on the machine disturb least; wall-clock stands beside it.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from hytas._engine import SearchSpace
from hytas.data import Preprocessing, load_scene, make_split
from hytas.deploy.bench import BenchSetting, bench, repeat
from hytas.export import describe, export_formats
from hytas.models import InputShape, SensorModel, build_network
from networks import pixel_network

ONNX, TORCH = "hytas.deploy.bench", "hytas.export.bench_torch"
FORMATS = ("onnx", "onnx-int8", "onnx-scene")
# On 200 bands and patches of 7 x 7, about 300,000 parameters each; the small one has 87,136, as the
# winner of a search under 100K-params.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "bands": {
        "space": "hytas",
        "depth": 5,
        "embed_dim": 64,
        "num_heads": [4] * 5,
        "mlp_ratio": [2] * 5,
    },
    "pixels": pixel_network(4, 96, pooling="centre"),
    "small": pixel_network(1, 80, 3, pooling="centre"),
}


def export_all(
    data: str, architecture: dict[str, Any], folder: Path
) -> tuple[dict[str, Path], dict[str, int], int]:
    """Files of every format, the architecture's costs, and the pixels of the scene."""
    scene = load_scene(data)
    split = make_split(scene, patch_size=7)
    preprocessing = Preprocessing.fit_scene(scene, split.train)
    shape = InputShape(len(preprocessing.bands), scene.classes)
    model = SensorModel(build_network(architecture, shape), preprocessing).eval()
    card = describe(scene, preprocessing, architecture, shape)
    files = export_formats(model, folder, card, FORMATS)
    space = SearchSpace.builtin(architecture["space"], shape.variables())
    costs = space.cost(architecture)
    return files, costs, scene.labels.size


def matrix_rate(size: int = 1024) -> float:
    """Multiply-adds a second of one processor in a large float32 product."""
    from threadpoolctl import threadpool_limits

    left, right = np.random.default_rng(0).random((2, size, size), dtype=np.float32)
    with threadpool_limits(1):
        times = repeat(lambda: left @ right, 1.0, time.process_time)
    return 1000.0 * size**3 / min(times)


def measure(files: dict[str, Path], seconds: float) -> dict[str, dict[str, Any]]:
    """Every setting of interest, by a name of its own."""

    def setting(name: str, batch: int, runtime: str = ONNX) -> BenchSetting:
        return BenchSetting(str(files[name]), runtime, "cpu", 1, batch, seconds)

    settings = {
        "torch, batch 1": setting("onnx", 1, TORCH),
        "torch, batch 32": setting("onnx", 32, TORCH),
        "onnx, batch 1": setting("onnx", 1),
        "onnx, batch 8": setting("onnx", 8),
        "onnx, batch 32": setting("onnx", 32),
        "onnx, batch 256": setting("onnx", 256),
        "int8, batch 1": setting("onnx-int8", 1),
        "int8, batch 32": setting("onnx-int8", 32),
        "scene graph, 4 x 64 pixels": setting("onnx-scene", 4),
    }
    runs = bench(list(settings.values()))
    for run, one in zip(runs, settings.values(), strict=True):
        scene = "scene" in Path(one.model).name
        run["cpu_us_per_pixel"] = 1000 * run["cpu_ms"] / (one.batch * (64 if scene else 1))
    return dict(zip(settings, runs, strict=True))


def ratios(runs: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The claims, as numbers above 1 where they hold."""

    def speed(slow: str, fast: str) -> float:
        return float(runs[slow]["cpu_us_per_pixel"] / runs[fast]["cpu_us_per_pixel"])

    whole, tile = runs["onnx, batch 256"], runs["scene graph, 4 x 64 pixels"]
    return {
        "onnxruntime over torch eager, batch 1": speed("torch, batch 1", "onnx, batch 1"),
        "onnxruntime over torch eager, batch 32": speed("torch, batch 32", "onnx, batch 32"),
        "int8 over float32, batch 1": speed("onnx, batch 1", "int8, batch 1"),
        "int8 over float32, batch 32": speed("onnx, batch 32", "int8, batch 32"),
        "scene over patch graph of 1, per pixel": speed(
            "onnx, batch 1", "scene graph, 4 x 64 pixels"
        ),
        "scene over patch graph, per pixel": speed("onnx, batch 8", "scene graph, 4 x 64 pixels"),
        "memory of 256 pixels in one call, patch over scene graph": whole["run_mb"]
        / max(tile["run_mb"], 0.1),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--network", choices=ARCHITECTURES, default="bands", help="kind of tokens")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files, costs, pixels = export_all(
            options.data, ARCHITECTURES[options.network], Path(folder)
        )
        sizes = {name: path.stat().st_size for name, path in files.items()}
        runs = measure(files, options.seconds)
    rate = matrix_rate()
    per_pixel = runs["onnx, batch 8"]["cpu_us_per_pixel"]
    found = {
        "costs": costs,
        "bytes": sizes,
        "runs": runs,
        "ratios": ratios(runs),
        "matrix_gmac_per_second": rate / 1e9,
        "fraction_of_matrix_rate": costs["macs"] / (per_pixel * 1e-6) / rate,
        "scene_cpu_seconds": pixels * per_pixel / 1e6,
    }
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{'':<28} {'us/pixel':>9} {'ms':>9} {'p10..p90':>18} {'MB peak':>8} {'MB run':>7}")
    for name, run in runs.items():
        spread = f"{run['p10']:.2f}..{run['p90']:.2f}"
        print(
            f"{name:<28} {run['cpu_us_per_pixel']:>9.0f} {run['ms']:>9.2f} {spread:>18} "
            f"{run['peak_mb']:>8.0f} {run['run_mb']:>7.0f}"
        )
    for name, ratio in found["ratios"].items():
        print(f"{name:<58} {ratio:.2f}")
    for name in ("matrix_gmac_per_second", "fraction_of_matrix_rate", "scene_cpu_seconds"):
        print(f"{name:<58} {found[name]:.3g}")


if __name__ == "__main__":
    main()
