"""Architectures a second for each proxy and for all together, and how far from the machine's limit.

    python benchmarks/proxies.py [--quick] [--batches 1,8,64,512]

Beside every figure stand, measured in the same run: the plain loop, which builds each network with
torch.nn and scores it alone by the written-out formula (tests/proxies/oracle.py), and the CPU's own
matrix rate. A network is scored on one thread; many are scored by a process a core. Seconds of one
are CPU seconds (`--clock cpu`, the default) or wall seconds: on a machine with other work only the
first mean anything. A GPU is measured by benchmarks/gpu.py.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "proxies"))

import oracle

from hytas.models import InputShape
from hytas.proxies import Evaluator, with_workers
from hytas.proxies.no_pass import macs

# The median of the published architectures by multiply-accumulates, on Indian Pines.
SHAPE = InputShape(bands=200, classes=16)
MEDIAN = {
    "space": "hytas",
    "depth": 8,
    "embed_dim": 112,
    "num_heads": [5, 6, 3, 3, 4, 6, 3, 5],
    "mlp_ratio": [2, 1, 1, 3, 1, 3, 5, 4],
}
LARGEST = {
    "space": "hytas",
    "depth": 10,
    "embed_dim": 240,
    "num_heads": [6] * 10,
    "mlp_ratio": [6] * 10,
}
WIDTHS = (32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 240)
# Products of a pass over those of one forward pass of one patch; 16 patches in a batch.
FORWARDS = {"synflow": 3, "logsynflow": 3, "dss": 3, "naswot": 16, "grasp": 48 + 96, "croze": 96}
PLAIN = 4  # architectures of the plain loop that stands beside mixed ones
ALL = ",".join(oracle.ORACLES).replace("logsynflow", "logsynflow:domain=absolute")


def smooth_spectra(shape: InputShape, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A patch a class of smooth spectra, standardised a band."""
    random = np.random.default_rng(seed)
    band = np.linspace(0.0, 1.0, shape.bands)
    side = (shape.patch_size, shape.patch_size)
    patches = np.empty((shape.classes, *side, shape.bands))
    for label in range(shape.classes):
        bumps = zip(*(random.uniform(low, 1.0, 4) for low in (0.2, 0.0, 0.25)), strict=True)
        spectrum = sum(h * np.exp(-(((band - at) / (0.4 * w)) ** 2)) for h, at, w in bumps)
        shade = random.uniform(0.9, 1.1, (*side, 1))
        patches[label] = spectrum * shade + random.normal(0.0, 0.01, (*side, shape.bands))
    patches = (patches - patches.mean((0, 1, 2))) / patches.std((0, 1, 2))
    return torch.tensor(patches, dtype=torch.float32), torch.arange(shape.classes)


def sample(count: int, seed: int = 0) -> list[dict[str, object]]:
    """Architectures drawn uniformly by gene."""
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        depth = int(random.integers(4, 11))
        drawn.append(
            {
                "space": "hytas",
                "depth": depth,
                "embed_dim": int(random.choice(WIDTHS)),
                "num_heads": random.integers(3, 7, depth).tolist(),
                "mlp_ratio": random.integers(1, 7, depth).tolist(),
            }
        )
    return drawn


def best(work: Callable[[], object], clock: Callable[[], float], repeats: int) -> float:
    """Least seconds of `repeats` runs, after one to warm up."""
    work()
    seconds = []
    for _ in range(repeats):
        started = clock()
        work()
        seconds.append(clock() - started)
    return min(seconds)


def matrix_rate(clock: Callable[[], float], size: int = 1024) -> float:
    """Floating-point operations a second of a large float32 product."""
    one = torch.randn(size, size)
    return 2.0 * size**3 / best(lambda: one @ one, clock, 10)


def plain(
    name: str,
    batch: tuple[torch.Tensor, torch.Tensor],
    architecture: Mapping[str, object] = MEDIAN,
) -> object:
    """One network of torch.nn, built and scored alone in float32."""
    twins = name == "croze"  # reads a second, perturbed network
    network = oracle.build(
        architecture, SHAPE, dtype=torch.float32, patches=batch[0] if twins else None
    )
    return oracle.ORACLES[name](network, batch)


def one_by_one(arguments: argparse.Namespace) -> None:
    """Seconds of the median network on one thread, for each proxy and for all."""
    batch = smooth_spectra(SHAPE)
    clock = time.process_time if arguments.clock == "cpu" else time.perf_counter
    torch.set_num_threads(1)
    rate = matrix_rate(clock)
    print(f"\none thread, matrix rate {rate / 1e9:.0f} GFLOP/s")
    print("| proxy | seconds | plain loop | ratio | of the matrix rate |\n|---|---|---|---|---|")
    for name in [*oracle.ORACLES, "all"]:
        text = ALL if name == "all" else name.replace("logsynflow", "logsynflow:domain=absolute")
        evaluator = Evaluator(text, SHAPE, batch=batch)
        seconds = best(lambda e=evaluator: e.score([MEDIAN]), clock, arguments.repeats)
        names = oracle.ORACLES if name == "all" else [name]
        slow = sum(best(lambda n=n: plain(n, batch), clock, 1) for n in names)
        share = ""
        if name != "all":
            work = 2.0 * macs(MEDIAN, SHAPE, 0) * FORWARDS.get(name, 48)
            share = f"{work / seconds / rate:.0%}"
        print(f"| {name} | {seconds:.3f} | {slow:.3f} | {slow / seconds:.1f} | {share} |")


def many_at_once(arguments: argparse.Namespace) -> None:
    """Architectures a second of mixed architectures, by batch size, beside the plain loop."""
    batch = smooth_spectra(SHAPE)
    sizes = [int(size) for size in arguments.batches.split(",")]
    head = ["architectures/s", *map(str, sizes), "plain loop", "ratio"]
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name in ("dss", "snip", "all"):
        rates = []
        names = oracle.ORACLES if name == "all" else [name]
        loop = sum(
            best(lambda n=n, a=a: plain(n, batch, a), time.perf_counter, 1) / PLAIN
            for n in names
            for a in sample(PLAIN, seed=1)
        )
        for size in sizes:
            text = ALL if name == "all" else name
            some = sample(size)
            with with_workers(Evaluator(text, SHAPE, batch=batch), "local") as scorer:
                scorer.score(sample(32, seed=2))  # starts the processes
                seconds = best(lambda e=scorer, s=some: e.score(s), time.perf_counter, 1)
            rates.append(size / seconds)
        cells = [f"{rate:.2f}" for rate in (*rates, 1.0 / loop)]
        print(f"| {name} | {' | '.join(cells)} | {max(rates) * loop:.1f} |")


def peak_memory() -> None:
    """Peak of a process that scores the largest network with all proxies."""
    torch.set_num_threads(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    Evaluator(ALL, SHAPE, batch=smooth_spectra(SHAPE)).score([LARGEST])
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"\npeak memory, largest network, all proxies: {after / 2**20:.2f} GiB "
        f"({before / 2**20:.2f} GiB before it)"
    )


def precision_ranks(arguments: argparse.Namespace) -> None:
    """Rank correlation that reduced precision keeps."""
    from scipy.stats import spearmanr

    names, some = "snip,grad_norm,dss,naswot,zico", sample(arguments.ranked)
    batch = smooth_spectra(SHAPE)
    columns = []
    for precision in ("float32", "bf16"):
        scorer = Evaluator(names, SHAPE, batch=batch, precision=precision)
        columns.append([result["scores"] for result in scorer.score(some)])
    for name in names.split(","):
        pair = [[scores[name] for scores in column] for column in columns]
        print(f"bf16, {name}: Spearman {spearmanr(*pair).statistic:.4f} (n={len(some)})")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", default="1,8,64,512")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ranked", type=int, default=50)
    parser.add_argument("--clock", choices=["cpu", "wall"], default="cpu")
    parser.add_argument("--quick", action="store_true", help="the median network only")
    arguments = parser.parse_args()
    peak_memory()  # first: the peak of a process never falls
    one_by_one(arguments)
    if not arguments.quick:
        many_at_once(arguments)
        precision_ranks(arguments)


if __name__ == "__main__":
    main()
