"""Fuzz target of what a report shows of each pixel: the arrays of a run's `pixels.npz`."""

import sys
import tempfile
import zipfile
from pathlib import Path

from fuzz_mutator import Sample

sys.path.append(str(Path(__file__).parents[1] / "report"))

import made_up

from hytas.report import ReportPixels
from hytas.report.page import render


def pixels() -> list[Sample]:
    """The members of the archive as files: `fuzz_scenes.zip_members` packs them."""
    with tempfile.TemporaryDirectory() as place:
        made_up.pixels().save(Path(place) / "pixels.npz")
        with zipfile.ZipFile(Path(place) / "pixels.npz") as archive:
            return [{name: archive.read(name) for name in archive.namelist()}]


def look(path: Path) -> None:
    """Draw the page of a run with these pixels."""
    render([made_up.facts(pixels=ReportPixels.load(path))])
