"""A table of random numbers: architectures of the paper's space, whose scores say nothing."""

import csv
from pathlib import Path

import numpy as np

from hytas._engine import Feasible, SearchSpace
from hytas.lab.analysis import RankingTable, read_table

SCORES = (*("snip", "dss", "zico_pp", "naswot", "dss_nosign", "snip_msa", "snip_mlp", "synflow"),)


def write_random_table(path: Path, networks: int = 300, seed: int = 0) -> Path:
    generator = np.random.default_rng(seed)
    space = SearchSpace.builtin("hytas", {})
    drawn = space.unpack(Feasible(space).sample(networks, seed, "choices"))
    genes = ("depth", "embed_dim", "num_heads", "mlp_ratio")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*genes, "OA", "params", *SCORES])
        for item in drawn:
            numbers = generator.uniform(0.5, 0.9, 1 + len(SCORES))
            params = space.cost(item)["params"]
            row = [numbers[0], params, *numbers[1:]]
            writer.writerow([*(item[gene] for gene in genes), *row])
    return path


def random_table(folder: Path, networks: int = 300, seed: int = 0) -> RankingTable:
    return read_table(write_random_table(folder / "noise.csv", networks, seed))
