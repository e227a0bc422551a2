"""`hytas explain`: importance of bands and neighbours for the model of a run."""

import json
import shutil
from pathlib import Path

from commands import Run


def test_a_run_is_explained(hytas: Run, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    done = hytas("explain", run, "--groups", "4", "--samples", "40")
    assert done.returncode == 0, done.stderr
    assert "most important" in done.stdout
    assert "than the pixel itself" in done.stdout
    assert len(done.stdout.splitlines()) < 12
    found = json.loads((run / "explanation.json").read_text())
    assert [band["bands"] for band in found["bands"]] == [[1, 4], [5, 8], [9, 12], [13, 16]]
    assert sorted(found["order"]) == [0, 1, 2, 3]
    assert len(found["neighbours"]["probability"]) == len(found["neighbours"]["gradient"][0])
    title, text = "What the network looks at", (run / "report.html").read_text()
    assert title in text
    assert title not in (finished / "report.html").read_text()
    assert found["bands"][found["order"][0]]["label"] in text
    shown = hytas("explain", run, "--groups", "4", "--samples", "40", "--json")
    assert json.loads(shown.stdout) == found
