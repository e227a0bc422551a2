"""How well a latency table predicts: random networks of its space, predicted beside measured.

    python benchmarks/latency_table.py latency.json --data IndianPine.mat [--networks 24]

Write the table before, on the same machine: `hytas bench MODEL --profile-table latency.json`. Time
does not depend on the weights' values, so the networks are untrained. Processor time on one thread.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hytas._engine import Feasible, SearchSpace
from hytas.data import Preprocessing, load_scene, make_split
from hytas.deploy.bench import BenchSetting, bench
from hytas.export import describe, export_formats
from hytas.export.latency import predict
from hytas.models import InputShape, SensorModel, build_network
from hytas.spaces import open_space

BUDGET = "10K..900K-params"
DRAWN = 5000


def kind_of(architecture: dict[str, Any]) -> str:
    """How the layers of its first stream mix tokens."""
    if architecture["space"] == "hytas":
        return "attention"
    stream = "pixel" if architecture["tokens"] == "pixel" else "band"
    mixer, gate = (architecture[f"{stream}_{gene}"] for gene in ("mixer", "gate"))
    return f"{mixer}, gated" if gate == "yes" else mixer


def draw(space: SearchSpace, budget: Any, networks: int) -> list[dict[str, Any]]:
    """Random architectures, as many of each kind, and of spread sizes in each."""
    feasible = Feasible(space, budget)
    sampled = space.unpack(feasible.sample(DRAWN, seed=0, uniform="choices"))
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for architecture in sampled:
        kinds[kind_of(architecture)].append(architecture)
    each = -(-networks // len(kinds))
    found = []
    for kind in sorted(kinds):
        ordered = sorted(kinds[kind], key=lambda one: space.cost(one)["params"])
        places = np.linspace(0.1, 0.9, each) * (len(ordered) - 1)
        found += [ordered[round(place)] for place in places]
    return found[:networks]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--networks", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = json.loads(options.table.read_text(encoding="utf-8"))
    scene = load_scene(options.data)
    preprocessing = Preprocessing.fit_scene(scene, make_split(scene, patch_size=7).train)
    shape = InputShape(len(preprocessing.bands), scene.classes)
    space, budget = open_space(table["space"], BUDGET, shape.variables())
    architectures = draw(space, budget, options.networks)
    settings, predicted = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number, architecture in enumerate(architectures):
            card = describe(scene, preprocessing, architecture, shape)
            model = SensorModel(build_network(architecture, shape), preprocessing).eval()
            path = Path(folder) / str(number)
            path.mkdir()
            files = export_formats(model, path, card, ("onnx",))
            predicted.append(predict(table, card))
            conditions = (table["conditions"]["threads"], table["conditions"]["batch"])
            settings.append(
                BenchSetting(
                    str(files["onnx"]), "hytas.deploy.bench", "cpu", *conditions, options.seconds
                )
            )
        measured = [run["cpu_ms"] for run in bench(settings)]
    rows = [
        {
            "kind": kind_of(one),
            "params": space.cost(one)["params"],
            "predicted_ms": guess,
            "measured_ms": true,
            "error": guess / true - 1.0,
            "architecture": one,
        }
        for one, guess, true in zip(architectures, predicted, measured, strict=True)
    ]
    for row in rows:
        print(
            f"{row['kind']:<18} {row['params']:>9,} {row['predicted_ms']:>8.3f} ms "
            f"{row['measured_ms']:>8.3f} ms {row['error']:>+7.1%}"
        )
    errors = np.abs([row["error"] for row in rows])
    print(f"mean error {errors.mean():.1%}, largest {errors.max():.1%}, of {len(rows)} networks")
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
