"""Rankings of trained networks: figures by hand and by brute force, and tables of every kind."""

import csv
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hytas._engine import SearchSpace
from hytas.errors import InputError
from hytas.lab.analysis import RankingTable, read_table, read_tables
from hytas.lab.analysis.scores import expected_best, rank_last_if_failed, scores_of
from hytas.lab.analysis.sections import measure_section
from hytas.lab.analysis.sections.ranking import BANDS, size_bands
from hytas.lab.analysis.settings import AnalysisSettings
from hytas.models import InputShape, build_network, count_parameters

Row = dict[str, Any]
Write = Callable[..., Path]


def networks(count: int = 60, seed: int = 0) -> list[Row]:
    """Rows whose accuracy is the depth, then the width; `snip` follows it and `dss` opposes it."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        depth, width = int(generator.integers(4, 11)), int(generator.choice([32, 64, 112, 240]))
        accuracy = 0.5 + depth / 40 + width / 10000
        rows.append(
            {
                "depth": depth,
                "embed_dim": width,
                "num_heads": generator.integers(3, 7, depth).tolist(),
                "mlp_ratio": generator.integers(1, 7, depth).tolist(),
                "OA": accuracy,
                "snip": accuracy**3,
                "dss": -accuracy,
            }
        )
    return rows


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows as a CSV table."""

    def make(rows: list[Row], name: str = "field.csv") -> Path:
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return make


def ranked(*tables: RankingTable) -> dict[str, Any]:
    """Return the groups of networks of the first table, with the figures of its scores."""
    found = measure_section("ranking", tables, AnalysisSettings(resamples=5), lambda _: None)
    groups: dict[str, Any] = found[tables[0].name]["groups"]
    return groups


def rho(groups: dict[str, Any], score: str, group: str = "all") -> float:
    value: float = groups[group]["scores"][score]["spearman"][0]
    return value


def test_perfect_and_opposite_scores(write: Write) -> None:
    groups = ranked(read_table(write(networks())))
    perfect, opposite = (groups["all"]["scores"][name] for name in ("snip", "dss"))
    assert perfect["spearman"][0] == pytest.approx(1.0)
    assert opposite["kendall"][0] == pytest.approx(-1.0)
    # The best network is the first choice of a perfect score, so it gains.
    assert perfect["gain of the first choice"] > 0
    assert opposite["of the first ten"] < 0
    assert list(groups) == ["all"]
    json.dumps(groups, allow_nan=False)


def test_expected_best_against_all_draws() -> None:
    values = np.array([0.3, 0.9, 0.5, 0.5, 0.1, 0.7])
    for count in range(1, 7):
        draws = [max(draw) for draw in itertools.combinations(values, count)]
        assert expected_best(values, count) == pytest.approx(np.mean(draws))
    assert expected_best(values, 7) is None


def test_failed_scores_rank_last(write: Write) -> None:
    ranks = rank_last_if_failed(np.array([2.0, math.nan, -5.0, math.inf]))
    np.testing.assert_array_equal(ranks, [4.0, 1.5, 3.0, 1.5])
    large = rank_last_if_failed(np.array([1e30, 2e25, math.nan, 5e28]))
    np.testing.assert_array_equal(large, [4.0, 2.0, 1.0, 3.0])
    rows = networks()
    for row in rows[:5]:
        row["snip"] = ""
    rows[5]["snip"] = "nan"
    for row in rows:
        row["naswot"] = ""
    groups = ranked(read_table(write(rows)))
    assert rho(groups, "snip") < 1.0
    assert "naswot" not in groups["all"]["scores"]


def test_accuracies_in_percent_and_rows_that_repeat(write: Write) -> None:
    rows = networks()
    expected = read_table(write(rows)).accuracy
    repeated = [*rows, *({**row, "OA": 0.5} for row in rows[:4])]
    table = read_table(write(repeated))
    np.testing.assert_array_equal(table.accuracy, expected)
    assert "4 repeated networks left out (the first row of each is kept)" in table.notes
    percent = [{**row, "OA": 100 * float(row["OA"])} for row in rows]
    table = read_table(write(percent))
    np.testing.assert_allclose(table.accuracy, expected)
    assert "OA is in percent" in table.notes
    collapsed = read_table(
        write([*percent[2:], {**percent[0], "OA": 0}, {**percent[1], "OA": 0.9}])
    )
    np.testing.assert_allclose(collapsed.accuracy[-2:], [0, 0.009])
    with pytest.raises(InputError, match=r"OA goes from 0\.\d+ to [\d.]+; must all be fractions"):
        read_table(write([*rows[1:], percent[0]]))
    with pytest.raises(InputError, match=r"1 trained networks .*; at least 3 are needed"):
        read_table(write(rows[:1] * 3))
    combined = [{**row, "rank-mean(snip,dss)": row["OA"]} for row in rows]
    assert "rank-mean(snip,dss)" in read_table(write(combined)).scores


def test_true_sizes_are_those_of_the_networks_built(write: Write) -> None:
    rows = networks(5)
    shape = InputShape(30, 4, 7, 3)
    table = read_table(write(rows), shape=shape)
    assert table.size is not None
    assert table.size.macs is not None
    for architecture, params in zip(table.architectures, table.size.params, strict=True):
        assert count_parameters(build_network(architecture, shape)) == params
    space = SearchSpace.builtin("hytas", shape.variables())
    costs = [space.cost(dict(architecture)) for architecture in table.architectures]
    assert [cost["macs"] for cost in costs] == table.size.macs.tolist()
    assert "macs" in scores_of(table)


def test_true_sizes_from_published_columns_and_names(write: Write) -> None:
    """The released count leaves fusion out, or counts eight of them whatever the depth."""
    rows = networks(30)
    known = read_table(write(rows, "houston_new.csv")).size
    assert known is not None
    fusion = 2 * 145**2 + 145
    for row, true in zip(rows, known.params, strict=True):
        row["params"] = true - (row["depth"] - 2) * fusion
        row["params_with_caf"] = row["params"] + 8 * fusion
    again = read_table(write(rows, "elsewhere.csv")).size
    assert again is not None
    np.testing.assert_allclose(again.params, known.params)
    assert again.source == "columns params and params_with_caf"


def test_bands_hold_every_network_once(write: Write) -> None:
    table = read_table(write(networks(120), "indian.csv"))
    bands = size_bands(table)
    counts = [int(bands[name].sum()) for name in BANDS]
    assert sum(counts) == 120
    assert {19, 20} <= set(counts)  # on either side of what a correlation needs
    groups = ranked(table)
    assert [name in groups for name in BANDS] == [count >= 20 for count in counts]


def test_suspect_rows_and_untrained_ones_are_left_out(write: Write) -> None:
    rows = [{**row, "suspect": 0} for row in networks(30)]
    rows[3]["suspect"], rows[4]["OA"] = 1, ""
    table = read_table(write(rows))
    assert len(table) == 28
    assert table.notes[:2] == ("1 rows flagged suspect left out", "1 rows without an OA left out")


def test_the_authors_own_files(write: Write) -> None:
    """Their names of columns, a width repeated for each layer, and a negative GraSP."""
    rows = [
        {
            "layer_num": row["depth"],
            "embed_dim": [row["embed_dim"]] * row["depth"],
            "num_heads": row["num_heads"],
            "mlp_ratio": row["mlp_ratio"],
            "OA": row["OA"],
            "NASWOT": row["OA"] * 2,
            "grasp": -row["OA"],
            "zico_modified": row["OA"],
            "flops": 1,
            "m_size": 1,
        }
        for row in networks(30)
    ]
    table = read_table(write(rows, "indian_2000_new_all.csv"))
    assert set(table.scores) == {"naswot", "-grasp", "zico_w_decay"}
    assert table.size is not None
    assert rho(ranked(table), "-grasp") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: {**row, "snipp": 1}, "unknown column 'snipp'; did you mean snip"),
        (lambda row: {("accuracy" if k == "OA" else k): v for k, v in row.items()}, "'accuracy'"),
        (lambda row: {k: v for k, v in row.items() if k != "OA"}, "the column OA is missing"),
        (lambda row: {k: v for k, v in row.items() if k != "depth"}, "the column depth is missing"),
        (lambda row: {**row, "snip": "high"}, "line 2: snip 'high' is not a number"),
        (lambda row: {**row, "depth": 3}, "line 2: architecture: of depth 3"),
        (lambda row: {**row, "mlp_ratio": "[1, 2"}, "line 2"),
        (lambda row: {**row, "SNIP": 1}, "columns snip and SNIP are both snip"),
        (lambda row: {**row, "embed_dim": [32, 64]}, "one width"),
        (lambda row: {**row, "OA": ""}, "0 trained networks (5 rows without an OA left out)"),
        (
            lambda row: {**row, "suspect": 1},
            "networks (5 rows flagged suspect left out); at least 3",
        ),
    ],
)
def test_refusals(change: Callable[[Row], Row], words: str, write: Write) -> None:
    rows = [
        change({**row, "depth": 4, "num_heads": [3] * 4, "mlp_ratio": [1] * 4})
        for row in networks(5)
    ]
    with pytest.raises(InputError, match=r"field\.csv") as refusal:
        read_table(write(rows))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_published_figures(shared: Path) -> None:
    """What the study's own tables say, worked out before with other code."""
    tables = read_tables([shared / "hytas2000"])
    each = {table.name: ranked(table) for table in tables}
    expected = {"depth-embed": 0.700, "zico_pp": 0.697, "snip": 0.686, "params": 0.684}
    means = {name: np.mean([rho(groups, name) for groups in each.values()]) for name in expected}
    assert {name: round(float(mean), 3) for name, mean in means.items()} == expected
    bands = {
        name: [round(rho(each["indian"], name, band), 2) for band in ("1-2M", "2-4M")]
        for name in ("dss", "snip", "params", "zico_pp")
    }
    assert bands == {
        "dss": [0.05, -0.37],
        "snip": [0.27, 0.0],
        "params": [0.17, -0.11],
        "zico_pp": [0.26, 0.38],
    }


def test_a_score_table_of_the_wide_space_is_ranked(tmp_path: Path) -> None:
    genes = "tokens,patch,band_width,band_stride,pooling,fusion,embed_dim,band_depth,pixel_depth"
    layers = "band_mixer,band_gate,band_heads,band_mlp,pixel_mixer,pixel_gate,pixel_heads,pixel_mlp"
    head = f"space,{genes},{layers},dss,seconds,reasons"
    plain = "attention,no,2,[],attention,no,4,[2]"
    rows = [
        f"hytas-wide,pixel,{patch},3,2,mean,no,{width},0,1,{plain},{score},0.1,"
        for patch, width, score in ((3, 32, 1.0), (5, 48, 2.0), (7, 64, 3.0))
    ]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([head, *rows]))
    with pytest.raises(InputError, match=r"column OA is missing.*add the accuracy of each"):
        read_table(path)
    path.write_text("\n".join([head + ",OA", *(f"{row},0.{n}" for n, row in enumerate(rows, 5))]))
    table = read_table(path)
    assert [one["embed_dim"] for one in table.architectures] == [32, 48, 64]
    assert rho(ranked(table), "dss") == 1.0
    path.write_text(path.read_text().replace(",mean,", ",sideways,", 1))
    with pytest.raises(InputError, match=r"line 2: .*sideways"):
        read_table(path)
