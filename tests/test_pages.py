"""The commands of the pages run, in their order, on small stand-ins of the files it names."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

import hytas
from commands import command, run_copy
from page_folder import QUICK, write_folder
from test_docs import PAGES, lines_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
pytestmark += [pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")]  # of rasterio

NOT_RUN = {
    r"pip install|benchmark fetch": "downloads",
    r"--workers (ray|slurm)|doctor --probe-workers": "needs Ray or Slurm; tests/workers",
    r"--track": "needs packages and a server; tests/lab/test_trackers.py",
    r"^tensorboard": "serves until it is stopped",
    r"^qgis_process": "needs QGIS; tests/examples/test_qgis_script.py",
    r"latency.json": "times networks for minutes; tests/deploy/test_bench.py",
    r"^gdalwarp": "needs GDAL's programs",
    r"^hytas (classify|export|predict|inspect|explain|update make|space (count|evolve))$": "a name",
    r"^hytas (supernet (train|export)|(references|export|train) --[a-z]+)$": "a name",
    r"^hytas (classify --confidence sure.tif|predict scene.onnx)$": "a part of a command",
    r"^hytas train --from (RUN --data new.csv|runs/small --data larger/)$": "with other files",
}
"""Pattern of a command -> why it does not run here."""
INSTEAD = {
    r"--data indian_pines": "--data IndianPine.mat",
    r"hytas-indian": "indian.csv",
    r"/usr/lib/libonnxruntime.so.1": str(
        next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"))
    ),
    r"MODEL SCENE --resample": "MODEL EMIT_L2A_RFL_001.nc --resample",
    r"\b(MODEL|model.onnx) (EMIT|PRS)": r"\2.onnx \2",
    r"\bMODEL\b": "model.onnx",
    r"\b(CUBE|SCENE)\b": "cube.hdr",
    r"RUN --data FOLDER": "runs/images --data tiles",
    r"\bRUN[12]?\b": "runs/ip",
    r"\bFOLDER\b": "tiles",
    r"\bFILE\b": "cube.mat",
    r"runs/field other.tif": "runs/field field/scene.tif",
    r" --recipe epochs=1000": "",
    r"--minutes 10": "--minutes 1",
    r"^torchrun.*": r"\g<0> --steps 2",
}
"""Pattern of words -> what stands for them: downloads, and names that a reader fills in."""
SHORTER = {
    "search": QUICK,
    "search --plugin examples/asha.py": [*QUICK, "--population", "2"],
    "search --data scene.mat --budget 100K-params --minutes": ["--effort", "quick"],
    "train": ["--epochs", "1"],
    "bench": ["--seconds", "0.05"],
    "supernet train": ["--steps", "2"],
    "supernet export": ["--population", "4", "--generations", "1"],
    "supernet rank": ["--count", "3"],
    "space evolve": ["--steps", "1", "--training-steps", "2", "--subnets", "10"],
    "benchmark make": ["-n", "2", "--recipe", "steps=2", "--workers", "1"],
    "benchmark curves": ["-n", "2", "--workers", "1"],
}
"""Options that make a command short, after its own: those of the longest name."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_runs(page: Path, once: Any, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    shutil.copytree(once("pages", write_folder), folder, symlinks=True)
    write_program(tmp_path / "hytas")
    failed = [told for line in lines_of(page) if (told := told_by(line, folder))]
    assert not failed, "\n\n".join(failed)


def told_by(line: str, folder: Path) -> str:
    """Run a command of a page; return what it says if it fails."""
    if any(re.search(pattern, line) for pattern in NOT_RUN):
        return ""
    for words, others in INSTEAD.items():
        line = re.sub(words, others, line)
    if not line.startswith("hytas "):
        places = (folder.parent, folder / "build" / "onboard", Path(sys.executable).parent)
        path = ":".join([*map(str, places), os.environ["PATH"]])
        given = {"PATH": path, "PYTHONPATH": str(Path(hytas.__file__).parents[1])}
        given = dict(os.environ) | given
        run = ["bash", "-c", line]
        done = subprocess.run(run, cwd=folder, env=given, capture_output=True, text=True)
    else:
        line, _, file = line.partition(" > ")
        words = shlex.split(line, comments=True)[1:]
        named = [name for name in SHORTER if words[: name.count(" ") + 1] == name.split()]
        words += SHORTER[max(named, key=len)] if named else []
        done = run_copy(*words, cwd=folder)
        if file:
            (folder / file.split()[0]).write_text(done.stdout)
    return "" if done.returncode == 0 else f"{line}: {done.returncode}\n{done.stderr[-1500:]}"


def write_program(path: Path) -> None:
    """Write the program `hytas`."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    path.chmod(0o755)
