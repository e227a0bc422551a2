"""Compare search algorithms on a table of trained networks, where every answer is there already.

    python examples/benchmark.py [FOLDER] [TABLE]

TABLE is a folder of `hytas benchmark make`, a CSV table, or a name such as hytas-indian. Without
it, the example makes a small table in FOLDER. It prints the test OA that each search finds.
"""

import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hytas
from hytas.benchmark.make import make_benchmark


class HillClimber:
    """An algorithm of another origin, which knows nothing of hytas: it only asks and is told.

    It takes over some genes of a second network into the best one so far.
    """

    def __init__(self, architectures: list[dict[str, Any]], seed: int) -> None:
        self.known, self.random = architectures, random.Random(seed)
        self.best, self.value = self.random.choice(architectures), -1.0

    def ask(self) -> Mapping[str, Any]:
        other = self.random.choice(self.known)
        return {k: other[k] if self.random.random() < 0.3 else v for k, v in self.best.items()}

    def tell(self, architecture: Mapping[str, Any], value: float) -> None:
        if value >= self.value:
            self.best, self.value = dict(architecture), value


def small_table(folder: str) -> Path:
    """Train twelve networks for a few steps; the same call goes on if it was stopped."""
    config = hytas.RunConfig(
        budget="30K-params",
        proxy="params,depth-embed",
        presets="plain",
        final_training_on="train",
        patch_size=3,
        recipe=hytas.Recipe(epochs=5),
    )
    return make_benchmark(config, hytas.synthetic_scene(), folder, networks=12).parent


def main(folder: str, table: str | None) -> None:
    benchmark = hytas.Benchmark.load(table or small_table(folder))
    architectures = benchmark.architectures()
    print(len(benchmark), "networks; test OA of the first:", benchmark.query(architectures[0]))

    budget = min(50, len(benchmark) // 2)
    searches = {
        "random": "random",
        "our evolution": "evolution",
        "hill climber": lambda seed: HillClimber(architectures, seed),
    }
    for name, search in searches.items():
        mean, low, high = benchmark.simulate(search, budget, seeds=30).at(budget)
        print(f"{name}: regret {mean:.4f} ({low:.4f} to {high:.4f}) after {budget} evaluations")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else "runs/benchmark", given[1] if len(given) > 1 else None)
