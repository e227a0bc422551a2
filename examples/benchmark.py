"""Compare search algorithms on a table of trained networks, where every answer is there already.

    python examples/benchmark.py [FOLDER] [TABLE]

TABLE is a folder of `hytas benchmark make`, a CSV table, or a name such as hytas-indian. Without
it, the small table beside this file is taken. The example prints how far each search stays below
the best test OA, and writes that for each number of evaluations to FOLDER/regret.csv.
"""

import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hytas

SMALL = Path(__file__).parent / "benchmark-synthetic"


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


def main(folder: str, source: str) -> None:
    benchmark = hytas.Benchmark.load(source)
    architectures = benchmark.architectures()
    best = max(benchmark.query(architecture) for architecture in architectures)
    print(f"{len(benchmark)} networks; the best test OA is {best:.4f}")

    budget = min(50, len(benchmark) // 2)
    searches = {
        "random": "random",
        "our evolution": "evolution",
        "hill climber": lambda seed: HillClimber(architectures, seed),
    }
    curves = []
    for name, search in searches.items():
        found = benchmark.simulate(search, budget, seeds=30)
        mean, low, high = found.at(budget)
        print(f"{name}: regret {mean:.4f} ({low:.4f} to {high:.4f}) after {budget} evaluations")
        curves.append(",".join([name, *map(str, found.regret.mean(axis=0))]))
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / "regret.csv").write_text("\n".join(curves) + "\n")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else "runs/benchmark", given[1] if len(given) > 1 else str(SMALL))
