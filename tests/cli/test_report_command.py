"""`hytas report`, on runs that a search made."""

import json
import re
import shutil
from pathlib import Path

from commands import Run
from hytas.manifest import Manifest


def test_a_run_ends_with_its_report(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    found = json.loads((finished / "metrics.json").read_text())
    assert f"{found['test']['OA']:.4f}" in page
    assert "hytas search --data" in page  # the command
    times = json.loads((finished / "times.json").read_text())
    assert set(times) >= {"search", "race", "final training", "export", "map"}
    assert all(entry["seconds"] >= 0 for entry in times.values())
    layers = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) parameters</div>", page)]
    assert sum(layers) == found["costs"]["params"]
    macs = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) MACs</div>", page)]
    assert sum(macs) == found["costs"]["macs"]
    assert len(page) < 1_500_000


def test_the_command_writes_the_same_page(hytas: Run, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = hytas("report", finished, "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"written   {out}")
    assert out.read_bytes() == (finished / "report.html").read_bytes()


def test_a_run_that_was_stopped_is_shown(hytas: Run, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("config.json", "split.npz", "evaluations.sqlite"):
        shutil.copy(finished / name, run)
    done = hytas("report", run, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The run is not finished." in page
    assert "12 candidates were scored" in page


def test_without_a_file_a_run_gets_its_own_page(hytas: Run, finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    (run / "report.html").unlink()
    done = hytas("report", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "hytas classify run/model.onnx" in page  # works where the command was given
    assert Manifest(run).faults() == {}
