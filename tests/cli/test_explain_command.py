"""`hytas explain`: importance of bands and neighbours for the model of a run."""

import json
from pathlib import Path

from commands import Run


def test_a_run_is_explained(hytas: Run, finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    done = hytas("explain", finished, "--groups", "4", "--samples", "40", "--out", page)
    assert done.returncode == 0, done.stderr
    assert "most important" in done.stdout
    assert "than the pixel itself" in done.stdout
    assert len(done.stdout.splitlines()) < 12
    found = json.loads((tmp_path / "why.json").read_text())
    assert [band["bands"] for band in found["bands"]] == [[1, 4], [5, 8], [9, 12], [13, 16]]
    assert sorted(found["order"]) == [0, 1, 2, 3]
    assert len(found["neighbours"]["probability"]) == len(found["neighbours"]["gradient"][0])
    text = page.read_text()
    assert text.count("<svg") == 0  # charts are in data addresses: the page loads nothing
    assert "data:image/svg+xml" in text
    assert found["bands"][found["order"][0]]["label"] in text


def test_refusals(hytas: Run, finished: Path, tmp_path: Path) -> None:
    done = hytas("explain", finished, "--groups", "0")
    assert done.returncode == 2
    assert "--groups 0: must be 1 or more" in done.stderr
    done = hytas("explain", tmp_path)
    assert done.returncode == 2
    assert "is not a run folder" in done.stderr
    for name, replaced in (("metrics.html", "metrics.json"), ("report.html", "report.html")):
        before = (finished / replaced).read_bytes()
        done = hytas("explain", finished, "--samples", "20", "--out", finished / name)
        assert done.returncode == 2
        assert f"would replace {replaced} of the run" in done.stderr
        assert (finished / replaced).read_bytes() == before
