"""What an analysis says: noise of random numbers, and of real tables what scipy says."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_table import random_table
from scipy.stats import kendalltau, spearmanr

from hytas.lab.analysis import RankingTable, read_tables
from hytas.lab.analysis.factors import Factors
from hytas.lab.analysis.importance import at_equal_size, dependence, fit_forests, importances
from hytas.lab.analysis.sections import SECTIONS, measure_section, show_section
from hytas.lab.analysis.sections.ranking import BANDS, holds_zero, size_bands
from hytas.lab.analysis.settings import AnalysisSettings
from hytas.report import render_sections

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import hytas_published

QUICK = AnalysisSettings(resamples=60, fits=2, sizes=(20, 100))


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> RankingTable:
    return random_table(tmp_path_factory.mktemp("noise"), networks=200)


@pytest.fixture(scope="module")
def found(noise: RankingTable) -> dict[str, Any]:
    return {name: measure_section(name, [noise], QUICK, quiet) for name in SECTIONS}


@pytest.fixture(scope="module")
def published(shared: Path) -> list[RankingTable]:
    return read_tables([shared / "hytas2000"])


def test_scores_of_random_numbers_rank_nothing(found: dict[str, Any]) -> None:
    scores = found["ranking"]["noise"]["groups"]["all"]["scores"]
    assert len(scores) > 12
    wrong = [name for name, each in scores.items() if not holds_zero(each["spearman"])]
    assert len(wrong) <= 3, "one in twenty by chance"
    assert max(abs(each["spearman"][0]) for each in scores.values()) < 0.2
    assert np.mean([each["top 10 %"][0] for each in scores.values()]) < 0.2


def test_genes_of_random_numbers_matter_nothing(found: dict[str, Any]) -> None:
    importance = found["genes"]["noise"]["importance"]
    lowest = [each[1] for entry in importance.values() for each in entry["genes"].values()]
    assert len(lowest) > 30
    assert sum(low > 0 for low in lowest) <= 4, "one in forty by chance"
    for name, entry in importance.items():
        assert entry["explained"][1] <= 0.02, name
    assert "genes explain nothing of accuracy" in show_section("genes", found["genes"]).sentences[0]


def test_predictors_learn_nothing_of_random_numbers(found: dict[str, Any]) -> None:
    for inputs in found["predictors"]["noise"].values():
        for sizes in inputs.values():
            for entry in sizes.values():
                assert abs(entry["mean"]) < 0.15


def test_random_scores_are_not_alike(found: dict[str, Any]) -> None:
    for cluster in found["alike"]["clusters"]:
        assert set(cluster) <= {*("params", "true params", "depth-embed", "embed_dim", "macs")}


def test_the_page_has_every_section_and_asks_nobody(found: dict[str, Any]) -> None:
    sections = [show_section(name, values) for name, values in found.items()]
    page = render_sections("<b>title</b>", ["one"], sections)
    assert "<b>title" not in page
    assert "default-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    for section in sections:
        assert f'id="{section.key}"' in page
        assert section.sentences, section.key


def test_correlations_are_those_of_scipy(published: list[RankingTable]) -> None:
    (table,) = [each for each in published if each.name == "pavia"]
    found = measure_section("ranking", [table], AnalysisSettings(resamples=5), quiet)
    groups = found["pavia"]["groups"]
    assert table.size is not None
    inside = (table.size.params >= 1e6) & (table.size.params < 2e6)
    for group, mask in (("all", np.ones(len(table), bool)), ("1-2M", inside)):
        assert groups[group]["networks"] == mask.sum()
        for name in ("snip", "zico_pp", "dss"):
            pair = table.scores[name][mask], table.accuracy[mask]
            entry = groups[group]["scores"][name]
            assert entry["spearman"][0] == pytest.approx(spearmanr(*pair).statistic)
            assert entry["kendall"][0] == pytest.approx(kendalltau(*pair).statistic)


def test_correlations_between_scores_are_those_of_scipy(published: list[RankingTable]) -> None:
    found = measure_section("alike", published, QUICK, quiet)
    one, other = (found["names"].index(name) for name in ("snip", "dss"))
    expected = np.mean(
        [spearmanr(table.scores["snip"], table.scores["dss"]).statistic for table in published]
    )
    assert found["rho"][one][other] == pytest.approx(expected, abs=1e-6)
    signed = next(cluster for cluster in found["clusters"] if "dss" in cluster)
    assert "embed_dim" in signed, "with sign, scores say the width"


def test_published_figures_come_out_to_two_digits(published: list[RankingTable]) -> None:
    found = hytas_published.measure(published)
    rows = [row for rows in found.values() for row in rows if row["as"] != "mean over layers"]
    assert len(rows) == 36
    assert all(row["alike"] for row in rows), [row for row in rows if not row["alike"]]


def made_of_depth(networks: int = 300) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Architectures with three genes, and a figure that depends on one of them."""
    generator = np.random.default_rng(0)
    drawn: list[dict[str, Any]] = [
        {
            "space": "hytas",
            "depth": int(generator.integers(4, 11)),
            "embed_dim": int(generator.choice([32, 64, 128])),
            "kind": str(generator.choice(["a", "b", "c"])),
        }
        for _ in range(networks)
    ]
    figure = np.array([item["depth"] for item in drawn]) + generator.normal(0, 0.5, networks)
    return drawn, figure


def test_the_gene_that_decides_is_found() -> None:
    drawn, figure = made_of_depth()
    factors = Factors.of(drawn)
    rows = factors.rows(drawn)
    assert factors.genes == ["depth", "embed_dim", "kind"]
    assert factors.columns["kind"] == [2, 3, 4]
    explained, lost = importances(factors, rows, figure, 100, 0)
    assert explained is not None
    assert explained[0] > 0.8
    assert lost["depth"] is not None
    assert lost["depth"][1] > 1
    for gene in ("embed_dim", "kind"):
        found = lost[gene]
        assert found is not None
        assert abs(found[0]) < 0.03
    curve = dependence(factors, rows, fit_forests(rows, figure, 0), "depth", 0)
    for value, (mean, *_) in curve[1:-1]:
        assert mean == pytest.approx(value, abs=0.6)
    flat = dependence(factors, rows, fit_forests(rows, figure, 0), "kind", 0)
    assert [value for value, _ in flat] == ["a", "b", "c"]
    assert np.ptp([mean for _, (mean, *_) in flat]) < 0.3


def test_what_size_explains_is_taken_away() -> None:
    generator = np.random.default_rng(0)
    size, own = generator.uniform(1, 9, 400), generator.normal(0, 1, 400)
    left = at_equal_size(20 * size + own, size)
    assert abs(spearmanr(left, size).statistic) < 0.1
    assert spearmanr(left, own).statistic > 0.5
    order = np.argsort(size)
    place = 200
    near = [n for n in order[place - 10 : place + 11] if n != order[place]]
    figure = 20 * size + own
    assert left[order[place]] == pytest.approx(figure[order[place]] - figure[near].mean())


def test_a_small_budget_has_bands_of_its_own(tmp_path: Path) -> None:
    table = random_table(tmp_path, networks=90)
    assert table.size is not None
    small = replace(table, size=replace(table.size, params=table.size.params / 1000))
    bands = size_bands(small)
    assert [int(mask.sum()) for mask in bands.values()] == [90, 30, 30, 30]
    assert set(size_bands(table)) == {"all", *BANDS}
