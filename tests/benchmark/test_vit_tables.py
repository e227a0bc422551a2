"""Published tables of vision transformers, from small files in the authors' formats."""

import json
from pathlib import Path

import pytest
import torch

import hytas
from commands import Run
from hytas.spaces.costs import cost
from hytas.spaces.shape import ImageShape

OOD = {
    str(number): {
        "net_setting": {
            "layer_num": 12,
            "mlp_ratio": [4, 3.5] * 6,
            "num_heads": [3] * 12,
            "embed_dim": [width] * 12,
        },
        "performance": {
            "Imagenet": {"clean": 75.0 + number, "imagenet-C": {"Fog": {"5": 40.0 - number}}}
        },
        "params": 1.0,
    }
    for number, width in enumerate((192, 216, 240, 240))
}
BENCH = [
    {
        "arch": {"base_dim": dim, "mlp_ratio": 4, "depth": [2, 6, 4], "num_heads": [2, 4, 8]},
        "c100_base_acc": None if dim == 16 else 60.0 + dim,
        "c100_kd_acc": 70.0 + dim / 10,
    }
    for dim in (16, 24, 32, 40)
]


@pytest.fixture
def ood(tmp_path: Path) -> Path:
    path = tmp_path / "OoD-ViT-NAS-Tiny.json"
    path.write_text(json.dumps(OOD))
    return path


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "gt_pit.pth"
    torch.save(BENCH, path)
    return path


def test_a_file_of_ood_vit_nas(ood: Path) -> None:
    loaded = hytas.Benchmark.load(ood)
    assert (loaded.space, len(loaded)) == ("autoformer-tiny", 3)  # a repeated network counts once
    assert loaded.query(1) == pytest.approx(0.76)
    assert loaded.query(1, "imagenet-c:fog:5") == 39.0
    other = hytas.Benchmark.load(ood, accuracy="imagenet-c:fog:5")
    assert other.query(0) == pytest.approx(0.4)


def test_a_file_of_vit_bench_101(bench: Path) -> None:
    loaded = hytas.Benchmark.load(bench)
    assert (loaded.space, len(loaded)) == ("pit-tiny", 4)  # the figure that all networks have
    assert loaded.query(3) == pytest.approx(0.74)
    assert len(hytas.Benchmark.load(bench, accuracy="c100_base_acc")) == 3


def test_parameters_are_those_that_were_published() -> None:
    """The first network of OoD-ViT-NAS, whose file says 6.776776 million parameters."""
    ratios = [4, 3.5, 3.5, 3.5, 4, 3.5, 4, 4, 3.5, 4, 3.5, 3.5, 3.5, 3.5]
    heads = [3, 4, 3, 3, 4, 4, 3, 4, 4, 3, 4, 3, 4, 4]
    genes = {"depth": 14, "embed_dim": 192, "num_heads": heads, "mlp_ratio": ratios}
    architecture = {"space": "autoformer-tiny", **genes}
    assert cost(architecture, ImageShape(3, 1000, 224), "params") == 6_776_776


def test_the_command_writes_a_table_that_others_read(here: Run, bench: Path) -> None:
    out = bench.parent / "pit.csv"
    done = here("benchmark", "fetch", bench, "--accuracy", "c100_kd_acc", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "4 networks of pit-tiny" in done.stdout
    done = here("analyse", "ranking", "--tables", out, "--resamples", "5")
    assert done.returncode == 0, done.stderr
    assert "params" in done.stdout
    done = here("benchmark", "fetch", "nats", "--out", out)
    assert done.returncode == 2
    assert "vit-bench-101-pit" in done.stderr
