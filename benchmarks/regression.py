"""Is this tree slower than another commit? The engine's search and the scores, in turns.

    python benchmarks/regression.py COMMIT [--limit 1.25] [--rounds 6]

Installs both trees without their dependencies into build/regression, runs each measurement in a
process of its own, and takes the least processor time of the rounds. Prints a table. The exit
status is 1 if a measurement takes more than `--limit` times as long as at COMMIT. Both trees are
asked through the public names of `hytas`; a measurement that COMMIT cannot make is left out.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "regression"

MEASUREMENTS = {
    "engine: 1000 generations of 200 candidates": """
import numpy as np
from hytas import Budget, Evolution, Feasible, SearchSpace
space = SearchSpace.builtin("hytas")
feasible = Feasible(space, Budget.parse("0.5M..1M-params"))
def work():
    evolution = Evolution(feasible, population=200, seed=0)
    for _ in range(1000):
        ids, genomes = evolution.ask()
        evolution.tell(ids, -np.abs(space.costs(genomes, "macs") - 1.5e8))
""",
    "scores: 24 candidates by dss": """
from hytas import Evaluator, InputShape, Budget, Feasible, SearchSpace
space = SearchSpace.builtin("hytas")
feasible = Feasible(space, Budget.parse("100K..500K-params"))
architectures = space.unpack(feasible.sample(24, seed=0))
evaluator = Evaluator("dss", InputShape(bands=100, classes=9, patch_size=7))
def work():
    evaluator.score(architectures)
""",
}
TIMED = """
import time
work()
times = []
for _ in range(3):
    start = time.process_time()
    work()
    times.append(time.process_time() - start)
print(min(times))
"""


def install(tree: Path, name: str) -> Path:
    """Install a tree's package alone; the dependencies are those of this Python."""
    target = BUILD / name
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--target", str(target), str(tree)], check=True)
    return target


def seconds(target: Path, work: str) -> float | None:
    """Return the least processor time of a measurement; None if the tree cannot make it."""
    own = os.environ | {"PYTHONPATH": str(target), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", work + TIMED]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--limit", type=float, default=1.25)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    before = BUILD / "source"
    for words in (["remove", "--force"], ["add", "--force", "--detach"]):
        arguments = [str(before), *([given.commit] if words[0] == "add" else [])]
        command = ["git", "worktree", *words, *arguments]
        subprocess.run(command, cwd=ROOT, check=words[0] == "add", capture_output=True)
    old, new = install(before, "before"), install(ROOT, "after")
    slower = False
    print(f"| measurement | {given.commit[:12]} | here | ratio |\n|---|---|---|---|")
    for name, work in MEASUREMENTS.items():
        if seconds(new, work) is None:
            return 1
        if seconds(old, work) is None:
            print(f"| {name} | not there | | |")
            continue
        # In turns: what else the machine does meets both.
        pairs = [(seconds(old, work), seconds(new, work)) for _ in range(given.rounds)]
        least = [min(each[side] or 0.0 for each in pairs) for side in (0, 1)]
        ratio = least[1] / least[0]
        slower |= ratio > given.limit
        print(f"| {name} | {least[0]:.3f} s | {least[1]:.3f} s | {ratio:.2f} |", flush=True)
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
