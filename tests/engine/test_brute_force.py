"""Counts, enumeration and ranks beside lists of every architecture, through the Python module."""

import itertools
import json
import random

import pytest

from hytas._engine import Budget, Feasible, SearchSpace

Costs = list[tuple[int, int]]


def random_space(rng: random.Random, options: int) -> tuple[SearchSpace, Costs]:
    """A space whose layers have `options` or more values, and every architecture's two costs."""
    depths = sorted(rng.sample([1, 2, 3], 2)) if options < 10 else [1, 2]
    widths = sorted(rng.sample(range(1, 9), 2))
    values = [rng.randrange(30) for _ in range(options)]
    extra = rng.randrange(1, 4)
    text = {
        "format": "hytas-space",
        "version": 1,
        "name": "random",
        "genes": [
            {"name": "depth", "values": depths},
            {"name": "width", "values": widths},
            {"name": "kind", "values": list(range(options)), "per": "depth"},
            {"name": "flag", "values": [0, 1], "per": "depth"},
        ],
        "definitions": {"price": " + ".join(f"{v} * (kind == {i})" for i, v in enumerate(values))},
        "costs": {
            "params": {
                "global": "10 * width",
                "layers": {"depth": f"price * width + {extra}*flag"},
            },
            "macs": {"layers": {"depth": f"price * flag + {extra}"}},
        },
    }
    layers = [
        [(values[kind] * width + extra * flag, values[kind] * flag + extra)
         for kind, flag in itertools.product(range(options), (0, 1))]
        for width in widths
    ]  # fmt: skip
    costs = [
        (10 * width + sum(p for p, _ in chosen), sum(m for _, m in chosen))
        for depth in depths
        for width, choices in zip(widths, layers, strict=True)
        for chosen in itertools.product(choices, repeat=depth)
    ]
    return SearchSpace.parse(json.dumps(text)), costs


@pytest.mark.parametrize("options", [3, 30])
@pytest.mark.parametrize("seed", range(4))
def test_windows_equal_brute_force(options: int, seed: int) -> None:
    rng = random.Random(1000 * options + seed)
    space, costs = random_space(rng, options)
    assert space.size() == len(costs)
    for trial in range(6):
        ends = sorted(rng.choice(costs)[0] for _ in range(2))
        low, high = (ends[0], ends[0]) if trial == 0 else ends
        most = rng.choice(costs)[1] if trial % 2 else 10**6
        fitting = [c for c in costs if low <= c[0] <= high and c[1] <= most]
        budget = f"{low}..{high}-params" + (f",{most}-macs" if trial % 2 else "")
        if not fitting:
            with pytest.raises(ValueError, match="no architecture of random fits"):
                Feasible(space, Budget.parse(budget))
            continue
        feasible = Feasible(space, Budget.parse(budget))
        assert feasible.count() == len(fitting)
        genomes = feasible.enumerate(0, len(fitting))
        assert len({genome.tobytes() for genome in genomes}) == len(fitting)
        found = zip(space.costs(genomes, "params"), space.costs(genomes, "macs"), strict=True)
        assert sorted((int(p), int(m)) for p, m in found) == sorted(fitting)
        for index in {0, len(fitting) // 2, len(fitting) - 1}:
            assert feasible.rank(feasible.unrank(index)) == index
