"""Options of several scenes and of further training, as the commands take them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from small_run import small_scene

from hytas.cli.search import search
from hytas.cli.train import train
from hytas.errors import InputError
from hytas.run import RunConfig


def refused(command: Any, *arguments: object) -> str:
    result = CliRunner().invoke(command, [*map(str, arguments)], standalone_mode=False)
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "RUN", "--out", "x"], "from: needs --data, the new scene"),
        (["--from", "RUN", "--data", "d"], "from: needs --out, the folder of the new run"),
        (
            ["--from", "RUN", "--data", "d", "--out", "x", "--patch-size", "5", "--bands", "1-9"],
            "--patch-size, --bands: cannot be given with --from, whose model decides it",
        ),
        (["RUN", "--from", "RUN"], "--from: cannot be given with RUN, which has its own settings"),
        (["--from", "RUN", "--data", "d", "--out", "x"], "from='RUN': must be a run, or a model"),
        (["--arch", "a.json", "--out", "x", "--tune", "small"], "tune='small': is for --from"),
    ],
)
def test_further_training_needs_a_run_and_a_scene(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refused(train, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_scenes_that_do_not_fit_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cube, labels = small_scene()
    np.savez("a.npz", cube=cube, labels=labels)
    np.savez("few.npz", cube=cube[..., :9], labels=labels)
    np.savez("other.npz", cube=cube + 1, labels=np.where(labels == 9, 7, labels))
    search_for = ["--budget", "6K-params", "--out", "run", "--data", "a.npz"]
    for further, words in (
        (["--data", "few.npz"], "has 9 bands and a has 16"),
        (["--test-data", "other.npz"], "has class 7 (class 7), which a does not have"),
        (["--test-data", "a.npz"], "is also a training scene"),
        (["--data", "few.npz", "--resample"], "resample: few has no wavelengths"),
        (["--data", "few.npz", "--labels", "a.npz"], "labels: 1 given for 2 scenes"),
        (["--data", "gone.npz"], "gone.npz"),
        (["--resample"], "resample: takes other scenes to the bands of the first; only "),
    ):
        assert words in refused(search, *search_for, *further)
    assert not Path("run").exists()


def test_lists_travel_through_a_file_of_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["--budget", "6K-params", "--data", "a", "--data", "b", "--test-data", "c"]
    given += ["--scale-by", "scene", "--resample"]
    for arguments in (given, ["--config", "run.toml"]):
        written = CliRunner().invoke(
            search, [*arguments, "--write-config", "run.toml"], standalone_mode=False
        )
        assert written.exception is None, written.exception
    seen: list[RunConfig] = []
    monkeypatch.setattr(RunConfig, "load_scene", lambda self: seen.append(self) or exit())
    CliRunner().invoke(search, ["--config", "run.toml", "--seed", "3"])
    (config,) = seen
    assert (config.data, config.test_data, config.seed) == (("a", "b"), ("c",), 3)
    assert (config.scale_by, config.resample, config.labels) == ("scene", True, None)
