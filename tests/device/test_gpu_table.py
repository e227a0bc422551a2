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
