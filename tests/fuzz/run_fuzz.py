"""Fuzz for a time or a number of inputs; keep what fails, and say so.

    python tests/fuzz/run_fuzz.py --seconds 60 --target hdf5
    python tests/fuzz/run_fuzz.py --again FOLDER --target hdf5   # an input that was kept

The exit status is 1 if an input failed.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from fuzz_judge import Judge, Verdict
from fuzz_mutator import Sample, damaged
from fuzz_targets import TARGETS


def inputs(target: str, seed: int) -> Iterator[Sample]:
    """Yield the whole inputs of a target, then damaged ones without end.

    Each has a generator of its own, so that the n-th input is the same however many are asked for.
    """
    corpus, _, finish = TARGETS[target]
    whole = corpus()
    for number, sample in enumerate(whole):
        yield finish(sample, Random(f"{target} whole {number}"))
    number = 0
    while True:
        rng = Random(f"{target} {seed} {number}")
        yield finish(damaged(rng.choice(whole), whole, rng), rng)
        number += 1


def write(sample: Sample, folder: Path) -> Path:
    """Write the files of an input into an empty folder; return the first."""
    for old in folder.iterdir():
        old.unlink()
    for name, data in sample.items():
        (folder / name).write_bytes(data)
    return folder / next(iter(sample))


def judged(
    judge: Judge, target: str, seed: int, folder: Path
) -> Iterator[tuple[int, Sample, Verdict]]:
    """Yield the number, the files and the verdict of each input."""
    for number, sample in enumerate(inputs(target, seed)):
        yield number, sample, judge(target, write(sample, folder))


def fuzz(judge: Judge, target: str, seed: int, seconds: float, count: int, keep: Path) -> int:
    """Fuzz one target, print one line about it and one for each failure; return these."""
    found: Counter[str] = Counter()
    seen: set[str] = set()
    slowest = largest = 0.0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for number, sample, verdict in judged(judge, target, seed, Path(folder)):
            found[verdict.kind] += 1
            slowest, largest = max(slowest, verdict.seconds), max(largest, verdict.megabytes)
            if verdict.is_failure:
                kept = keep / f"{target}-{seed}-{number}"
                kept.mkdir(parents=True, exist_ok=True)
                write(sample, kept)
                if verdict.detail not in seen:
                    print(
                        f"{target} {verdict.kind}: {verdict.detail!r}; kept in {kept}", flush=True
                    )
                seen.add(verdict.detail)
            if number + 1 >= count or time.monotonic() > end:
                break
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(found.items()))
    print(f"{target}: {counts}; at most {slowest:.2f} s and {largest:.0f} MB", flush=True)
    return sum(number for kind, number in found.items() if Verdict(kind, "").is_failure)


def main() -> int:
    """Fuzz the targets asked for, each for its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="time of all targets together")
    parser.add_argument("--count", type=int, default=10**9, help="inputs of each target at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=list(TARGETS))
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz-failures"))
    parser.add_argument("--again", type=Path, help="folder of one input to judge again")
    given = parser.parse_args()
    targets = given.target or list(TARGETS)
    with Judge() as judge:
        if given.again is not None:
            corpus = TARGETS[targets[0]]
            sample = corpus.finish(corpus.corpus()[0], Random(0))
            print(judge(targets[0], given.again / next(iter(sample))))
            return 0
        share = given.seconds / len(targets)
        failures = [fuzz(judge, t, given.seed, share, given.count, given.keep) for t in targets]
    return 1 if sum(failures) else 0


if __name__ == "__main__":
    sys.exit(main())
