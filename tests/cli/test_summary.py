"""The block that ends a run, and what `hytas export` says of its files."""

from pathlib import Path
from typing import Any

import pytest

from hytas.cli.export import _print
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


def test_an_export_says_what_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    exact = {"file": "run/model.onnx", "bytes": 143835, "pixels": 90, "max_difference": 2.4e-7}
    small = {"file": "run/model.w8.onnx", "bytes": 41000, "pixels": 90}
    small |= {"agreement": 0.99234, "OA_torch": 0.95, "OA": 0.9487}
    _print({"onnx": exact, "onnx-w8": small})
    assert capsys.readouterr().out.splitlines()[1:] == [
        "written to run/",
        "  model.onnx        143,835 bytes  torch's labels on 90 pixels, largest difference 2.4e-07",
        "  model.w8.onnx      41,000 bytes  99.23 % of torch's labels on 90 pixels, "
        "OA 0.9500 -> 0.9487",
    ]
