"""Rankings of trained networks: figures by hand and by brute force, and tables of every kind."""

import csv
import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import Run
from hytas._engine import Feasible, SearchSpace
from hytas.errors import InputError
from hytas.lab.analysis import analyse_table, analyse_tables, read_table, read_tables
from hytas.lab.analysis.ranking import BANDS
from hytas.lab.analysis.scores import (
    expected_best,
    parse_rank_means,
    rank_last_if_failed,
    top_accuracies,
    training_free_scores,
)
from hytas.lab.analysis.size import find_size
from hytas.models import InputShape, build_network, count_parameters
from hytas.proxies.table import rank_mean
from refusals import refuses

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


def test_perfect_and_opposite_scores(write: Write) -> None:
    report = analyse_table(read_table(write(networks())), predictor_sizes=())
    assert report["scores"]["snip"]["all"]["spearman"] == pytest.approx(1.0)
    assert report["scores"]["dss"]["all"]["kendall"] == pytest.approx(-1.0)
    # The best network is the first favourite of a perfect score, so it gains.
    assert report["scores"]["snip"]["all"]["top1_gain"] > 0
    assert report["scores"]["dss"]["all"]["top10_gain"] < 0
    assert report["size"] is None
    assert "no ranges of size" in report["notes"][0]
    json.dumps(report, allow_nan=False)


def test_expected_best_against_all_draws() -> None:
    values = np.array([0.3, 0.9, 0.5, 0.5, 0.1, 0.7])
    for count in range(1, 7):
        draws = [max(draw) for draw in itertools.combinations(values, count)]
        assert expected_best(values, count) == pytest.approx(np.mean(draws))
    assert expected_best(values, 7) is None


def test_favourites_among_equals_are_drawn_at_random() -> None:
    accuracy = np.arange(100.0)
    assert top_accuracies(np.arange(100.0), accuracy, 1, 3) == 99.0
    constant = top_accuracies(np.ones(100), accuracy, 1, 400)
    assert constant == pytest.approx(49.5, abs=6)


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
    report = analyse_table(read_table(write(rows)), predictor_sizes=(20,), seeds=2)
    assert report["scores"]["snip"]["failed"] == 6
    assert report["scores"]["snip"]["all"]["spearman"] < 1.0
    assert report["scores"]["naswot"]["all"]["spearman"] is None
    assert report["predictors"]["extra-trees 20"]["all"]["spearman"] > 0.8


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


def test_rank_means(write: Write) -> None:
    table = read_table(write(networks()))
    report = analyse_table(
        table, rank_means=[("snip", "dss"), ("snip", "zico")], predictor_sizes=()
    )
    # Opposite ranks cancel out: every network gets the same mean.
    assert report["scores"]["rank-mean(snip,dss)"]["all"]["spearman"] is None
    assert "rank-mean(snip,zico)" not in report["scores"]
    assert parse_rank_means(["a,b", "rank-mean(c, d)"]) == [("a", "b"), ("c", "d")]
    with refuses("rank_mean", "a"):
        parse_rank_means(["a"])


def test_a_rank_mean_is_that_of_a_search(write: Write) -> None:
    """Where a member failed it has failed, too, and equal sums of ranks are equal."""
    rows = networks(40)
    for row in sorted(rows, key=lambda row: -float(row["OA"]))[:8]:
        row["snip"] = ""
    table = read_table(write(rows))
    _, values = training_free_scores(table, [("snip", "depth-embed")])[
        "rank-mean(snip,depth-embed)"
    ]
    depth = [len(item["num_heads"]) * item["embed_dim"] for item in table.architectures]
    np.testing.assert_array_equal(values, rank_mean([table.scores["snip"], depth]))
    report = analyse_table(table, rank_means=[("snip", "depth-embed")], predictor_sizes=())
    assert report["scores"]["rank-mean(snip,depth-embed)"]["failed"] == 8


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
    assert "macs" in training_free_scores(table)


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
    report = analyse_table(table, predictor_sizes=())
    counts = [report["groups"][name]["networks"] for name in BANDS]
    assert sum(counts) == 120
    assert {19, 20} <= set(counts)  # on either side of what a correlation needs
    for name, count in zip(BANDS, counts, strict=True):
        rho = report["scores"]["snip"][name]["spearman"]
        assert (rho is None) == (count < 20)


def test_predictors_are_tested_on_the_rest_alone(write: Write) -> None:
    """Accuracy without any pattern: rho would be high if the trained networks were tested on."""
    generator = np.random.default_rng(3)
    rows = [{**row, "OA": generator.random(), "snip": generator.random()} for row in networks(120)]
    report = analyse_table(read_table(write(rows)), predictor_sizes=(60, 115), seeds=3)
    assert set(report["predictors"]) == {"extra-trees 60", "random-forest 60"}
    assert abs(report["predictors"]["extra-trees 60"]["all"]["spearman"]) < 0.35


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
    report = analyse_table(table, predictor_sizes=())
    assert report["scores"]["-grasp"]["all"]["spearman"] == pytest.approx(1.0)


def test_the_output_of_hytas_score_with_an_accuracy(write: Write) -> None:
    rows = [
        {**row, "dss:layers=all": row["OA"], "macs": 5, "seconds": 1.0, "reasons": ""}
        for row in networks(12)
    ]
    assert "dss:layers=all" in read_table(write(rows)).scores


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


def test_columns_of_other_names_on_request(write: Write) -> None:
    path = write([{**row, "mine": row["OA"], "remark": "x"} for row in networks(12)])
    table = read_table(path, score_columns=["mine"], ignored_columns=["remark"])
    assert "mine" in table.scores
    assert "remark" not in table.scores
    with pytest.raises(InputError, match="no column 'yours'"):
        read_table(path, score_columns=["mine", "yours"], ignored_columns=["remark"])
    plain = write(networks(12), "plain.csv")
    own, other = read_tables([path, plain], score_columns=["mine"], ignored_columns=["remark"])
    assert "mine" in own.scores
    assert "mine" not in other.scores
    with pytest.raises(InputError, match="no column 'yours'"):
        read_tables([path, plain], score_columns=["mine", "yours"], ignored_columns=["remark"])


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no \.csv"):
        read_tables([tmp_path])
    with pytest.raises(InputError, match="no such file"):
        read_tables([tmp_path / "none.csv"])
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match="not UTF-8"):
        read_tables([tmp_path])
    (tmp_path / "binary.csv").write_text("")
    with pytest.raises(InputError, match="the column OA is missing"):
        read_tables([tmp_path])


def test_means_and_the_choice_made_on_other_tables(write: Write) -> None:
    """`snip` is best on two tables and opposed on the third: chosen for it, and shown to fail."""
    tables = [read_table(write(networks(60, seed), f"t{seed}.csv")) for seed in range(3)]
    third = [{**row, "snip": -row["snip"]} for row in networks(60, 2)]
    tables[2] = read_table(write(third, "t2.csv"))
    found = analyse_tables(tables, rank_means=(), predictor_sizes=())
    assert found["mean"]["snip"]["all"]["spearman"] == pytest.approx(1 / 3)
    assert found["mean"]["snip"]["tables"] == 3
    last = found["transfer"][2]
    assert (last["table"], last["chosen"]) == ("t2", "snip")
    assert last["all"]["snip"] == pytest.approx(-1.0)
    alike = [
        read_table(write([{**row, "OA": 0.5} for row in networks(30)], f"{n}.csv")) for n in "ab"
    ]
    assert analyse_tables(alike, rank_means=(), predictor_sizes=())["transfer"] == []


# The command, as a user runs it.


def test_command_prints_tables_and_json(write: Write, here: Run) -> None:
    one, two = write(networks(60), "indian.csv"), write(networks(60, 1), "pavia.csv")
    quick = ("--predictor-sizes", "20", "--seeds", 2, "--rank-mean", "snip,depth")
    done = here("analyse", "ranking", "--tables", one, two, *quick)
    assert done.returncode == 0, done.stderr
    assert "mean of indian, pavia" in done.stdout
    assert "rank-mean(snip,depth)" in done.stdout
    assert "extra-trees 20" in done.stdout
    assert re.search(r"^snip +1\.000/1\.000", done.stdout, re.MULTILINE)
    assert re.search(r"^random +-?\.[0-9]{3}/-?\.[0-9]{3}", done.stdout, re.MULTILINE)
    done = here("analyse", "ranking", "--tables", one.parent, *quick, "--json")
    found = json.loads(done.stdout)
    assert [table["name"] for table in found["tables"]] == ["indian", "pavia"]
    assert found["mean"]["snip"]["all"]["spearman"] == pytest.approx(1.0)


def test_published_figures(shared: Path) -> None:
    """What the study's own tables say, worked out before with other code."""
    tables = read_tables([shared / "hytas2000"])
    mean = analyse_tables(tables, predictor_sizes=(), seeds=1)
    rho = {name: entry["all"]["spearman"] for name, entry in mean["mean"].items()}
    expected = {"depth-embed": 0.700, "zico_pp": 0.697, "snip": 0.686, "params": 0.684}
    assert {name: round(rho[name], 3) for name in expected} == expected
    indian = next(report for report in mean["tables"] if report["name"] == "indian")
    bands = {
        name: [round(indian["scores"][name][band]["spearman"], 2) for band in ("1-2M", "2-4M")]
        for name in ("dss", "snip", "params", "zico_pp")
    }
    assert bands == {
        "dss": [0.05, -0.37],
        "snip": [0.27, 0.0],
        "params": [0.17, -0.11],
        "zico_pp": [0.26, 0.38],
    }


@pytest.mark.parametrize("name", ["params", "reference_params"])
def test_a_column_that_leaves_fusion_out_is_known_for_it(name: str) -> None:
    space = SearchSpace.builtin("hytas", {"bands": 61, "classes": 5})
    architectures = space.unpack(Feasible(space).sample(30, seed=0))
    params = np.array([float(space.cost(one)[name]) for one in architectures])
    found = find_size("other", architectures, {"params": params}, None)
    assert found is not None
    expected = "column params" + (", without fusion" if name != "params" else "")
    assert found.source == expected
    np.testing.assert_array_equal(found.params, params)


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
    assert analyse_table(table, predictor_sizes=())["scores"]["dss"]["all"]["spearman"] == 1.0
    path.write_text(path.read_text().replace(",mean,", ",sideways,", 1))
    with pytest.raises(InputError, match=r"line 2: .*sideways"):
        read_table(path)
