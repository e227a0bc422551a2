"""Fuzz targets of the search engine, through its binding: stored states, budgets, space files."""

from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from click.testing import CliRunner
from fuzz_mutator import Sample

from hytas._engine import Evolution, Feasible, builtin_space_text
from hytas.cli.search import search
from hytas.spaces import open_space
from hytas.spaces.architectures import read_architectures

_BUDGETS = ("500K-params", "1.5M..2M-params", "40K..70K-params 500M-macs", "3ms-latency@t.json")
_ARCHITECTURES = (
    '{"space": "hytas", "depth": 4, "embed_dim": 32, "num_heads": [3, 4, 5, 3], '
    '"mlp_ratio": [1, 2, 3, 1]}\n'
)
_TABLE = "depth,embed_dim,num_heads,mlp_ratio\n" + '4,32,"[3, 4, 5, 3]","[1, 2, 3, 1]"\n' * 3
_CONFIG = 'budget = ["500K-params"]\nseed = 3\n[recipe]\nepochs = 5\n[split]\nkind = "blocks"\n'


@cache
def _feasible() -> Feasible:
    offered = {"bands": 16, "classes": 3, "patch": 7}
    space, budget = open_space("hytas", "40K..60K-params", offered=offered)
    return Feasible(space, budget)


def states() -> list[Sample]:
    """States of evolutions: begun, between ask and tell, and after generations of two scores."""
    found = []
    for strategy, steps in (("evolution", 0), ("evolution", 2), ("nsga2", 3), ("random", 1)):
        run = Evolution(_feasible(), strategy, population=6, parents=3, seed=steps)
        for _ in range(steps):
            ids, genomes = run.ask()
            two = np.stack([genomes.sum(1), -genomes[:, 0]], axis=1).astype(float)
            run.tell(ids, two if strategy == "nsga2" else two[:, 0])
        run.ask(2)
        found.append({"state.bin": run.state()})
    return found


def look_at_state(path: Path) -> None:
    """Go on from a state, as a resumed search does."""
    try:
        run = Evolution.restore(_feasible(), path.read_bytes())
        for _ in range(2):
            ids, genomes = run.ask(4)
            if len(ids):
                run.tell(ids, genomes.sum(1).astype(float))
    except ValueError:  # the search makes an InputError of it
        return
    _ = run.state(), run.population(), run.front()


def checked(sample: Sample, rng: Random) -> Sample:
    """Give most states the checksum that they now have: FNV-1a of 64 bits."""
    content = sample["state.bin"][:-8]
    if rng.random() < 0.2:
        return sample
    total = 0xCBF29CE484222325
    for byte in content:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    return {"state.bin": content + total.to_bytes(8, "little")}


def texts() -> list[Sample]:
    """Budgets, space files, architectures and options, each a file of its own."""
    spaces = [{"space.json": builtin_space_text(name).encode()} for name in ("hytas", "s3")]
    budgets = [{"budget.txt": text.encode()} for text in _BUDGETS]
    return [
        *spaces,
        *budgets,
        {"archs.jsonl": _ARCHITECTURES.encode() * 3},
        {"archs.csv": _TABLE.encode()},
        {"run.toml": _CONFIG.encode()},
    ]


def look_at_text(path: Path) -> None:
    """Do what a command does with the file before it works."""
    if path.name == "space.json":
        space, budget = open_space(str(path), "100K-params")
        with suppress(ValueError):  # no architecture fits; the commands make an InputError of it
            Feasible(space, budget).sample(2, 0, "choices")
    elif path.name == "budget.txt":
        open_space("hytas", path.read_bytes().decode(errors="surrogateescape"))
    elif path.name == "run.toml":
        options = ["--data", "none.mat", "--config", path]
        done = CliRunner().invoke(search, list(map(str, options)))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
    else:
        read_architectures(path)
