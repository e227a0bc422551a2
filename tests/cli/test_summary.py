"""The block that ends a run, and what `hytas export` says of its files."""

import json
from pathlib import Path
from typing import Any

import pytest

from hytas.cli.export import _as_written, _figure
from hytas.cli.summary import print_outcome
from hytas.run import Outcome

GENES = {"space": "hytas-wide", "tokens": "band", "band_mlp": [4, 2]}


def ended(budget: str, bounds: list[tuple[str, int, int]], **costs: int) -> Outcome:
    return Outcome(dict(GENES), costs, bounds, budget, None, {}, Path("run"))


@pytest.mark.parametrize(
    ("budget", "bounds", "line"),
    [
        ("500us", (0, 500_000), "0.394 ms  (budget at most 0.5 ms, 78.8% of it)"),
        ("200us..500us", (200_000, 500_000), "0.394 ms  (budget 0.2 ms .. 0.5 ms, 78.8% of it)"),
        # A table in units of its own: the engine counts billionths of them.
        ("0.0005", (0, 500_000), "0.000394  (budget at most 0.0005, 78.8% of it)"),
    ],
)
def test_a_latency_has_its_unit(
    capsys: pytest.CaptureFixture[str], budget: str, bounds: tuple[int, int], line: str
) -> None:
    name = "latency@table.json"
    costs: dict[str, Any] = {"params": 986_630, name: 394_000}
    print_outcome(ended(f"{budget}-{name}", [(name, *bounds)], **costs), "scene.mat")
    text = capsys.readouterr().out
    assert f"{name} {line}\n" in text
    assert "params        986,630\n" in text
    assert "band_mlp 4-2" in text


def test_genes_keep_the_order_of_the_space(tmp_path: Path) -> None:
    sorted_genes = dict(sorted(GENES.items()))
    outcome = Outcome(sorted_genes, {}, [], None, None, {}, tmp_path)
    assert list(_as_written(str(tmp_path), outcome)) == list(sorted_genes)
    (tmp_path / "architecture.json").write_text(json.dumps(GENES))
    assert list(_as_written(str(tmp_path), outcome)) == list(GENES)
    (tmp_path / "architecture.json").write_text('{"space": "other"}')
    assert _as_written(str(tmp_path), outcome) == sorted_genes


def test_figures_are_short() -> None:
    found = [_figure(value) for value in (0.9923195084485407, 2.4e-07, 0.0, 143835, 0, "why")]
    assert found == ["0.9923", "2.4e-07", "0", "143,835", "0", "why"]
