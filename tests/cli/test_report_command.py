"""`hytas report`, on runs that a search made."""

import json
import re
import shutil
from pathlib import Path

import pytest

from commands import Run
from hytas.errors import InputError
from hytas.manifest import Manifest
from hytas.run.delivering.reporting import report_runs


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


def test_a_scene_that_is_gone_leaves_no_map(hytas: Run, finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    (run / "pixels.npz").unlink()
    config = json.loads((run / "config.json").read_text())
    config["config"]["data"]["data"] = str(tmp_path / "gone.mat")
    (run / "manifest.json").unlink()
    (run / "config.json").write_text(json.dumps(config))
    done = hytas("report", run, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "no map" in done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The scene was not there to be classified again" in page
    assert 'class="maps"' not in page


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


@pytest.mark.parametrize(
    "changed",
    [
        {"test": {}},
        {"test": {"OA": "good", "per_class": []}},
        {"split": 3},
        {"parity": {"pixels": 9}},
        {"costs": {"params": None}},
    ],
)
def test_values_that_no_run_has_are_one_line(
    finished: Path, tmp_path: Path, changed: dict[str, object]
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    metrics = json.loads((run / "metrics.json").read_text())
    (run / "metrics.json").write_text(json.dumps({**metrics, **changed}))
    with pytest.raises(InputError) as caught:
        report_runs([run], tmp_path / "page.html")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: is not a run folder"),
        (["."], "is not a run folder: it holds no config.json"),
        ([".", "--out", "page.pdf"], "--out page.pdf: must end in .html"),
        ([".", "--out", "none/page.html"], "--out none/page.html: the folder none does not exist"),
    ],
)
def test_what_cannot_be_is_refused(
    hytas: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = hytas("report", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
