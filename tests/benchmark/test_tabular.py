"""A table answers like training, and a search in it finds what the table holds."""

from pathlib import Path

import numpy as np
import pytest
from small_benchmark import make

import hytas
from hytas.lab.analysis.scores import expected_best
from hytas.lab.analysis.tables import HYTAS_TABLES


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> hytas.Benchmark:
    return hytas.Benchmark.load(make(tmp_path_factory.mktemp("made") / "field").parent)


@pytest.fixture(scope="module")
def indian(shared: Path) -> hytas.Benchmark:
    return hytas.Benchmark.load(shared / "hytas2000" / "indian.csv")


def test_query_gives_what_the_table_says(made: hytas.Benchmark) -> None:
    assert (made.name, made.space, made.seeds, len(made)) == ("field", "hytas-wide", (0, 1), 4)
    for number, architecture in enumerate(made.architectures()):
        both = [made.query(architecture, "OA", seed) for seed in (0, 1)]
        assert made.query(architecture) == pytest.approx(np.mean(both))
        assert made.query(number, "oa") == made.query(architecture, "OA")
        assert 0 < made.query(architecture, "params") <= 30_000
    for name in ("OA", "AA", "kappa", "validation", "snip", "train_seconds", "bytes_int8"):
        assert name in made.metrics
        assert np.isfinite(made.query(0, name))


def test_the_nearest_network_of_one_in_the_table_is_itself(made: hytas.Benchmark) -> None:
    for architecture in made.architectures():
        assert made.nearest(architecture) == architecture


def test_a_search_sees_validation_accuracy_and_is_judged_by_the_test(made: hytas.Benchmark) -> None:
    found = made.simulate("random", 4, seeds=1)
    told = [made.query(number, "validation") for number in range(4)]
    best = made.query(int(np.argmax(told)))
    assert found.chosen[0, -1] == pytest.approx(best)
    assert made.simulate("random", 4, seeds=1, lead="OA").regret[0, -1] == 0


def test_random_search_finds_the_best_of_so_many(indian: hytas.Benchmark) -> None:
    found = indian.simulate("random", 100, seeds=400)
    accuracy = np.array([indian.query(number) for number in range(len(indian))])
    for count in (1, 10, 100):
        expected = expected_best(accuracy, count)
        assert expected is not None
        spread = found.chosen[:, count - 1].std() / 20
        assert abs(found.chosen[:, count - 1].mean() - expected) < 4 * spread


def test_a_search_of_all_networks_finds_the_best(indian: hytas.Benchmark) -> None:
    assert indian.simulate("random", 10**6, seeds=2).regret[:, -1].tolist() == [0, 0]


def test_evolution_beats_chance(indian: hytas.Benchmark) -> None:
    ours, chance = (indian.simulate(name, 150, seeds=15) for name in ("evolution", "random"))
    assert ours.at(150)[0] < chance.at(150)[0]
    assert (np.diff(ours.chosen, axis=1) >= 0).all(), "led by accuracy, it never gets worse"


def test_a_proxy_that_leads_is_judged_by_accuracy(indian: hytas.Benchmark) -> None:
    found = indian.simulate("random", 10**6, seeds=1, lead="snip")
    scores = [indian.query(number, "snip") for number in range(len(indian))]
    assert found.chosen[0, -1] == indian.query(int(np.argmax(scores)))


def test_published_tables_are_pinned() -> None:
    assert sorted(HYTAS_TABLES) == [
        *("hytas-houston", "hytas-indian", "hytas-ksc", "hytas-pavia", "hytas-salinas")
    ]
    for file in HYTAS_TABLES.values():
        assert file.checksum is not None
        assert len(file.checksum.removeprefix("sha256:")) == 64
