"""The benchmarks for a GPU, rehearsed on the CPU: every section works, and no failure ends them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import gpu

pytestmark = pytest.mark.slow


def bench(folder: Path, data: str = "synthetic") -> gpu.Bench:
    size = gpu.Size(300, (4, 1), 10, {**gpu.SHORT, "steps": 1})
    return gpu.Bench("cpu", size, data, folder / "rows.jsonl")


def rows(folder: Path) -> list[gpu.Row]:
    path = folder / "rows.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("section", [name for name in gpu.SECTIONS if name != "run-cpu"])
def test_every_section_measures(section: str, tmp_path: Path) -> None:
    gpu.SECTIONS[section][0](bench(tmp_path))
    found = rows(tmp_path)
    assert found
    assert not [row for row in found if gpu.failed(row)]
    assert all(row["value"] >= 0 for row in found if row.get("unit"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, gpu.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_section_that_fails_or_takes_too_long_leaves_a_row(tmp_path: Path) -> None:
    out = tmp_path / "new" / "table.md"
    size = ("--device", "cpu", "--sections", "scores", "training")
    missing = tmp_path / "no.mat"
    done = run(*size, "--seconds", 300, "--data", missing, "--out", out)
    assert done.returncode == 1, done.stderr
    table = out.read_text(encoding="utf-8")
    assert table in done.stdout
    assert "| section scores | failed: " in table
    assert "| training on cpu, captured operations, gated convolutions, width 80 | failed" in table
    assert str(missing) in table
    late = run(*size, "--seconds", 0.4, "--out", out)
    assert late.returncode == 1
    assert out.read_text(encoding="utf-8").count("failed: took longer than the 0 s") == 2


def test_the_page_names_the_machine_and_hides_no_figure(tmp_path: Path) -> None:
    measured = bench(tmp_path)
    measured.say("device", "GPU X")
    measured.put("a speed", "cuda", 12.0, "things/s")
    measured.put("a speed", "cpu", 3.0, "things/s")
    measured.put("alone", "cuda", 0.1234, "s", "less")
    measured.put("a time", "cuda", 2.0, "s", "less")
    measured.put("a time", "cpu", 3.0, "s", "less")
    with measured.attempt("a place"):
        raise ValueError("two | three\nlines")
    page = gpu.table(rows(tmp_path), "cuda", 1.6)
    assert page[page.index("| what") :].splitlines()[2:] == [
        "| a speed | 12 things/s | 3 things/s | 4 |",
        "| alone | 0.123 s |  |  |",
        "| a time | 2 s | 3 s | 1.5 |",
        "| device | GPU X | | |",
        "| a place | failed: ValueError: two / three lines | | |",
    ]


def test_without_a_gpu_nothing_is_measured(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = run("--device", "cuda", "--out", tmp_path / "table.md", "--sections", "machine")
    assert done.returncode == 1
    assert "finds no CUDA device here; make gpu DEVICE=cpu is the rehearsal" in done.stderr
