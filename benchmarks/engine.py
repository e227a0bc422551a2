"""Rates of the engine, and its search beside pymoo and pygmo on problems with a known optimum.

    pip install pymoo pygmo; python benchmarks/engine.py > engine.json

Prints JSON lines. Rates of the C++ part are per second of processor time; what is compared
with a peer is wall time in the same process and run. Peers that are not installed are left out.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hytas._engine import Budget, Evolution, Feasible, SearchSpace

ROOT = Path(__file__).parents[1]
WINDOWS = [
    ("autoformer-tiny", "5M..6M-params"),
    ("autoformer-tiny", "5.90M..5.91M-params"),
    ("autoformer-tiny", "5.40M..5.41M-params"),
    ("hytas", "0.5M..1M-params"),
    ("hytas", "700K..705K-params"),
]
EVALUATIONS = 1050
SEEDS = range(3)


def report(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def rates() -> None:
    """Build the C++ benchmark and pass its lines on."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DHYTAS_BUILD_BENCHMARKS=ON"]
        options.append("-DHYTAS_BUILD_TESTS=OFF")
        steps = (
            ["cmake", "-S", str(ROOT / "engine"), "-B", folder, *options],
            ["cmake", "--build", folder, "-j2"],
        )
        for step in steps:
            subprocess.run(step, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([f"{folder}/benchmarks/hytas_engine_bench"], check=True)


def python_loop() -> None:
    """Ask and tell with a NumPy score: population 1000, 200 generations."""
    for name, budget in (WINDOWS[3], WINDOWS[0]):
        space = SearchSpace.builtin(name)
        evolution = Evolution(Feasible(space, Budget.parse(budget)), population=1000, parents=200)
        start = time.perf_counter()
        for _ in range(200):
            ids, genomes = evolution.ask()
            evolution.tell(ids, -np.abs(space.costs(genomes, "macs") - 1.5e8))
        taken = time.perf_counter() - start
        report(
            what="Python ask/tell P=1000 G=200", space=name, budget=budget, value=taken, unit="s"
        )


def optimum(space: SearchSpace, budget: str) -> int:
    """The most MACs inside the window, by halving: the engine knows which bounds are empty."""
    low, high = 0, 1 << 45
    while low < high:
        middle = (low + high + 1) // 2
        try:
            Feasible(space, Budget.parse(f"{budget},{middle}..{1 << 46}-macs"))
        except ValueError:
            high = middle - 1
        else:
            low = middle
    return low


class Problem:
    """Maximise MACs inside a window of params, over padded integer vectors, as peers take them."""

    def __init__(self, space: SearchSpace, budget: str) -> None:
        self.space = space
        _, self.low, self.high = Budget.parse(budget).bounds[0]
        genes = space.genes
        depths = genes[0]["values"]
        layers = [len(g["values"]) for g in genes if g["per"]]
        self.upper = np.array([len(g["values"]) - 1 for g in genes if not g["per"]])
        self.upper = np.concatenate([self.upper, np.tile(np.array(layers) - 1, max(depths))])
        self.depths = np.array(depths)
        self.genes = len(layers)
        self.evaluated = self.feasible = 0

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(MACs, violation of the window in params) of integer rows (N, G)."""
        genomes = np.ascontiguousarray(np.rint(x), dtype=np.uint8)
        used = 2 + self.depths[genomes[:, 0]] * self.genes
        genomes[np.arange(genomes.shape[1])[None, :] >= used[:, None]] = 0
        params = self.space.costs(genomes, "params")
        outside = np.maximum(self.low - params, 0) + np.maximum(params - self.high, 0)
        self.evaluated += len(x)
        self.feasible += int((outside == 0).sum())
        return self.space.costs(genomes, "macs"), outside


def ours(problem: Problem, budget: str, seed: int) -> float:
    feasible = Feasible(problem.space, Budget.parse(budget))
    evolution = Evolution(feasible, population=50, seed=seed)
    while evolution.evaluated < EVALUATIONS:
        ids, genomes = evolution.ask()
        if len(ids) == 0:
            break
        macs, _ = problem.evaluate(genomes)
        evolution.tell(ids, macs.astype(float))
    return float(evolution.best()[1])


def with_pymoo(problem: Problem, budget: str, seed: int) -> float:
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.core.problem import Problem as PymooProblem
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.pm import PM
    from pymoo.operators.repair.rounding import RoundingRepair
    from pymoo.operators.sampling.rnd import IntegerRandomSampling
    from pymoo.optimize import minimize

    class Wrapped(PymooProblem):
        def __init__(self) -> None:
            n = len(problem.upper)
            super().__init__(n_var=n, n_obj=1, n_ieq_constr=1, xl=0, xu=problem.upper, vtype=int)

        def _evaluate(self, x: np.ndarray, out: dict, *_: object, **__: object) -> None:
            macs, outside = problem.evaluate(x)
            out["F"], out["G"] = -macs[:, None].astype(float), outside[:, None].astype(float)

    algorithm = GA(
        pop_size=50,
        sampling=IntegerRandomSampling(),
        crossover=SBX(prob=1.0, eta=3.0, vtype=float, repair=RoundingRepair()),
        mutation=PM(prob=1.0, eta=3.0, vtype=float, repair=RoundingRepair()),
        eliminate_duplicates=True,
    )
    result = minimize(Wrapped(), algorithm, ("n_eval", EVALUATIONS), seed=seed, verbose=False)
    return float(-result.F[0]) if result.F is not None else float("nan")


def with_pygmo(problem: Problem, budget: str, seed: int) -> float:
    import pygmo

    best = float("nan")

    class Wrapped:
        def get_bounds(self) -> tuple[list[float], list[float]]:
            return [0.0] * len(problem.upper), [float(u) for u in problem.upper]

        def get_nix(self) -> int:
            return len(problem.upper)

        def fitness(self, x: np.ndarray) -> list[float]:
            nonlocal best
            macs, outside = problem.evaluate(x[None, :])
            if outside[0] == 0:
                best = max(float(macs[0]), best) if best == best else float(macs[0])
            return [float(outside[0]) * 1e6 - float(macs[0])]

    algorithm = pygmo.algorithm(pygmo.sga(gen=EVALUATIONS // 50 - 1, seed=seed))
    algorithm.evolve(pygmo.population(pygmo.problem(Wrapped()), size=50, seed=seed))
    return best


def beside_peers() -> None:
    runs: dict[str, Callable[[Problem, str, int], float]] = {"hytas": ours}
    for name, module, function in (("pymoo", "pymoo", with_pymoo), ("pygmo", "pygmo", with_pygmo)):
        try:
            __import__(module)
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
        else:
            runs[name] = function
    for name, budget in WINDOWS:
        space = SearchSpace.builtin(name)
        best = optimum(space, budget)
        for peer, run in runs.items():
            gaps, micros, shares = [], [], []
            for seed in SEEDS:
                problem = Problem(space, budget)
                start = time.perf_counter()
                found = run(problem, budget, seed)
                micros.append((time.perf_counter() - start) / max(problem.evaluated, 1) * 1e6)
                gaps.append((best - found) / best)
                shares.append(problem.feasible / max(problem.evaluated, 1))
            report(
                what="search for the most MACs",
                space=name,
                budget=budget,
                by=peer,
                gap_to_optimum=float(np.median(gaps)),
                feasible=float(np.mean(shares)),
                microseconds_per_evaluation=float(np.median(micros)),
            )


if __name__ == "__main__":
    python_loop()
    beside_peers()
    rates()
