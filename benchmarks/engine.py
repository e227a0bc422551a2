"""Rates of the engine, and its search beside pymoo and pygmo on problems with a known optimum.

    pip install pymoo pygmo; python benchmarks/engine.py > engine.json

Prints JSON lines. Arguments name parts (python, peers, growth, rates), else all are run. Every
time is processor time, so other work on the machine counts little. Peers that are not installed are
left out.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hytas._engine import Budget, Evolution, Feasible, SearchSpace, builtin_space_text

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build/benchmark"
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


def best_of(rounds: int, work: Callable[[], object]) -> float:
    """Seconds of processor time: the machine's other work can only make a round slower."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def rates() -> None:
    """Build the C++ benchmark and pass its lines on."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DHYTAS_BUILD_BENCHMARKS=ON"]
    options.append("-DHYTAS_BUILD_TESTS=OFF")
    steps = (
        ["cmake", "-S", str(ROOT / "engine"), "-B", str(BUILD), *options],
        ["cmake", "--build", str(BUILD), "-j2"],
    )
    for step in steps:
        subprocess.run(step, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(BUILD / "benchmarks/hytas_engine_bench")], check=True)


def python_loop() -> None:
    """Ask and tell with a NumPy score: population 1000, 200 generations."""
    for name, budget in (WINDOWS[3], WINDOWS[0]):
        space = SearchSpace.builtin(name)
        feasible = Feasible(space, Budget.parse(budget))

        def whole(space: SearchSpace = space, feasible: Feasible = feasible) -> None:
            evolution = Evolution(feasible, population=1000, parents=200)
            for _ in range(200):
                ids, genomes = evolution.ask()
                evolution.tell(ids, -np.abs(space.costs(genomes, "macs") - 1.5e8))

        wall, start = best_of(3, whole), time.perf_counter()
        whole()
        report(
            what="Python ask/tell P=1000 G=200",
            space=name,
            budget=budget,
            value=wall,
            unit="s",
            wall=time.perf_counter() - start,
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
        self.seconds = 0.0

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(MACs, violation of the window in params) of integer rows (N, G)."""
        start = time.process_time()
        genomes = np.ascontiguousarray(np.rint(x), dtype=np.uint8)
        used = 2 + self.depths[genomes[:, 0]] * self.genes
        genomes[np.arange(genomes.shape[1])[None, :] >= used[:, None]] = 0
        params = self.space.costs(genomes, "params")
        outside = np.maximum(self.low - params, 0) + np.maximum(params - self.high, 0)
        self.evaluated += len(x)
        self.feasible += int((outside == 0).sum())
        macs = self.space.costs(genomes, "macs")
        self.seconds += time.process_time() - start
        return macs, outside


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
            gaps, micros, shares, evaluations = [], [], [], []
            run(Problem(space, budget), budget, 99)  # imports and caches are not measured
            for seed in SEEDS:
                problem = Problem(space, budget)
                start = time.process_time()
                found = run(problem, budget, seed)
                overhead = time.process_time() - start - problem.seconds
                micros.append(overhead / max(problem.evaluated, 1) * 1e6)
                evaluations.append(problem.evaluated)
                gaps.append((best - found) / best)
                shares.append(problem.feasible / max(problem.evaluated, 1))
            report(
                what="search for the most MACs",
                space=name,
                budget=budget,
                by=peer,
                gap_to_optimum=float(np.median(gaps)),
                feasible=float(np.mean(shares)),
                evaluations=int(np.median(evaluations)),
                overhead_us_per_evaluation=float(np.median(micros)),
            )


def deep_space(depth: int) -> SearchSpace:
    """hytas with 4 to `depth` layers of three choices: more would not be counted in 128 bits."""
    text = json.loads(builtin_space_text("hytas"))
    for gene, values in zip(
        text["genes"], (range(4, depth + 1), None, [4], [1, 2, 3]), strict=True
    ):
        gene["values"] = list(values or gene["values"])
    return SearchSpace.parse(json.dumps(text))


def middle_half(space: SearchSpace) -> str:
    """The window of params that holds the middle half of draws by choices."""
    params = space.costs(Feasible(space).sample(2000, 0, "choices"), "params")
    low, high = np.quantile(params, [0.25, 0.75]).astype(int)
    return f"{low}..{high}-params"


def seconds_per_offspring(feasible: Feasible, population: int) -> float:
    """One generation of as many children as the population, of a fifth as many parents."""
    times = []
    for seed in range(1 if population > 100_000 else 3):
        parents = max(1, population // 5)
        run = Evolution(feasible, population=population, parents=parents, seed=seed)
        ids, _ = run.ask()
        run.tell(ids, np.zeros(len(ids)))
        start = time.process_time()
        ids, _ = run.ask()
        times.append((time.process_time() - start) / len(ids))
    return min(times)


def seconds_per_evaluation(feasible: Feasible) -> float:
    """A whole search of up to 1000 evaluations, the table not included."""
    best = float("inf")
    for seed in range(3):
        start = time.process_time()
        run = Evolution(feasible, population=50, seed=seed)
        while run.evaluated < 1000 and not run.exhausted:
            ids, genomes = run.ask()
            run.tell(ids, -feasible.space.costs(genomes, "macs").astype(float))
        best = min(best, (time.process_time() - start) / run.evaluated)
    return best


Lines = dict[str, list[tuple[float, float]]]


def grow_population() -> Lines:
    lines: Lines = {}
    for name, budget in (WINDOWS[3], WINDOWS[0]):
        feasible = Feasible(SearchSpace.builtin(name), Budget.parse(budget))
        sizes = (100, 1000, 10_000, 100_000, 1_000_000)
        lines[f"{name} {budget}"] = [(n, seconds_per_offspring(feasible, n) * 1e6) for n in sizes]
    return lines


def measures(space: SearchSpace, budget: Budget) -> tuple[Feasible, dict[str, float]]:
    feasible = Feasible(space, budget)
    table = best_of(3, lambda: Feasible(space, budget))
    draw = best_of(3, lambda: feasible.sample(2000, 1)) / 2000
    return feasible, {
        "table (ms)": table * 1e3,
        "exact draw (µs)": draw * 1e6,
        "search (µs an evaluation)": seconds_per_evaluation(feasible) * 1e6,
    }


def grow_depth() -> Lines:
    lines: Lines = {}
    for depth in (4, 8, 16, 32, 64):
        space = deep_space(depth)
        feasible, times = measures(space, Budget.parse(middle_half(space)))
        report(what="growth", depth=depth, exact=feasible.exact, budget=str(feasible.budget))
        for name, value in times.items():
            lines.setdefault(name, []).append((depth, value))
    return lines


def grow_window() -> Lines:
    """From the smallest autoformer-tiny upwards: at width 0 it is the only one."""
    space = SearchSpace.builtin("autoformer-tiny")
    least = int(space.costs(np.zeros((1, space.genome_length), np.uint8), "params")[0])
    lines: Lines = {}
    for width in (0, 50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000, 5_000_000):
        feasible, times = measures(space, Budget.parse(f"{least}..{least + width}-params"))
        for name, value in times.items():
            lines.setdefault(name, []).append((feasible.count(), value))
    return lines


def growth() -> None:
    """Cost as the population, the depth and the number of feasible architectures grow."""
    panels = (
        ("population", "µs a distinct, feasible child", grow_population()),
        ("most layers (hytas with three choices a layer)", "processor time", grow_depth()),
        ("architectures in the window (autoformer-tiny)", "processor time", grow_window()),
    )
    for over, unit, lines in panels:
        for label, points in lines.items():
            report(what="growth", over=over, line=label, unit=unit, points=points)


PARTS = {"python": python_loop, "peers": beside_peers, "growth": growth, "rates": rates}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"{part}: must be one of {', '.join(PARTS)}")
        PARTS[part]()
