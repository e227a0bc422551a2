"""--config and --write-config of `hytas search`."""

import json
import tomllib
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import hytas.job
from hytas.cli.search import search
from hytas.data import synthetic_scene
from hytas.errors import InputError
from hytas.run import RunConfig
from refusals import refuses


class StoppedError(Exception):
    """Raised instead of a run."""


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `hytas search` would run with the given arguments: its configuration, folder, device."""
    seen: list[Any] = []

    def run_pipeline(config: RunConfig, scene: Any, folder: str, **options: Any) -> None:
        seen.append((config, folder, options["device"]))
        raise StoppedError

    monkeypatch.setattr(hytas.job, "run_pipeline", run_pipeline)

    def configure(*arguments: object) -> Any:
        result = CliRunner().invoke(search, [str(each) for each in arguments])
        if isinstance(result.exception, StoppedError):
            return seen.pop()
        if isinstance(result.exception, InputError):
            raise result.exception
        return result

    return configure


MANY = (
    *("--budget", "500K-params", "--budget", "20M-macs", "--split", "folds", "--folds", "4"),
    *("--fold", "2", "--race-epochs", "3", "--recipe", "mixup=0.4", "--recipe", "flips=no"),
    *("--recipe", "brightness=0.2"),  # the usual value, which holds in every preset
    *("--epochs", "7", "--finalists", "5", "--space", "hytas", "--seed", "3"),
    *("--pareto", "params,score", "--bands", "1-20", "--device", "cpu", "--out", "runs/a b"),
)


def test_what_is_written_runs_the_same(tmp_path: Path, configured: Any) -> None:
    path = tmp_path / "run.toml"
    result = configured(*MANY, "--write-config", path)
    assert result.exit_code == 0, result.output
    expected = configured(*MANY)
    assert configured("--config", path) == expected
    assert expected[0].split.fold == 2
    assert expected[0].recipe.flips is False
    assert {recipe.brightness for recipe in expected[0].recipes.values()} == {0.2}
    assert expected[1:] == ("runs/a b", "cpu")
    written = tomllib.loads(path.read_text())
    held = json.loads(json.dumps(expected[0].to_dict()))
    assert "race_steps" not in written["race"]
    del held["race"]["race_steps"]
    for name, table in held.items():  # the tables are those of config.json
        assert written[name] == {key: value for key, value in table.items() if value is not None}


def test_numbers_and_switches_have_their_types(tmp_path: Path, configured: Any) -> None:
    path = tmp_path / "run.toml"
    path.write_text('budget = "500K-params"\nepochs = 30\nworkers = 3\nresample = true\n')
    config = configured("--config", path, "--no-resample")[0]
    assert (config.recipe.epochs, config.resample) == (30, False)
    path.write_text('budget = "500K-params"\nepochs = 30.5\n')
    with refuses("config", path, "epochs 30.5: must be a whole number"):
        configured("--config", path)
    path.write_text('budget = "500K-params"\ntune = "small"\n')
    with refuses("tune", "small", "begins with a model"):
        configured("--config", path)


def test_how_labels_are_read_is_kept(tmp_path: Path, configured: Any) -> None:
    truth = synthetic_scene().labels
    np.save(tmp_path / "cube.npy", synthetic_scene().cube)
    np.save(tmp_path / "gt.npy", np.where(truth == 0, 255, truth))
    coloured = np.where(truth == 0, 255, truth * 40).astype(np.uint8)
    Image.fromarray(np.repeat(coloured[..., None], 3, axis=2)).save(tmp_path / "gt.png")
    path = tmp_path / "run.toml"
    for labels, unlabelled, kept, key in (
        ("gt.npy", "255", 255, "1"),
        ("gt.png", "#FFffFF", "#ffffff", "#282828"),
    ):
        files = ("--data", tmp_path / "cube.npy", "--labels", tmp_path / labels)
        how = ("--unlabelled", unlabelled, "--class-names", f"{key}=a field")
        given = (*files, *how, "--budget", "500K-params")
        assert configured(*given, "--write-config", path).exit_code == 0
        config = configured(*given)[0]
        assert configured("--config", path)[0] == config
        assert config.unlabelled == kept
        scene = config.load_scene()
        np.testing.assert_array_equal(scene.labels > 0, truth > 0)
        assert "a field" in scene.class_names


def test_the_configuration_of_a_run_is_a_file_of_options(tmp_path: Path, configured: Any) -> None:
    config = RunConfig(budget="1M-params", split="blocks", block=8, population=11, race_epochs=2)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"config": config.to_dict(), "scene": "abc", "versions": {}}))
    assert configured("--config", path)[0] == config


def test_the_command_line_wins(tmp_path: Path, configured: Any) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'budget = "500K-params"\npopulation = 11\nrace-epochs = 3\ndevice = "cpu"\n'
        'proxy = "snip"\n[split]\nkind = "folds"\nfold = 1\nfolds = 3\n'
        "[recipe]\nmixup = 0.1\nflips = false\nepochs = 9\n"
    )
    config, _, device = configured("--config", path)
    assert (config.population, config.proxy, device) == (11, "snip", "cpu")
    assert (config.recipe.mixup, config.recipe.flips, config.recipe.epochs) == (0.1, False, 9)
    given = ("--population", 6, "--budget", "1M-params", "--recipe", "mixup=0.3", "--epochs", 4)
    config, _, _ = configured("--config", path, *given)
    assert (config.population, config.budget) == (6, "1M-params")
    assert (config.recipe.mixup, config.recipe.flips, config.recipe.epochs) == (0.3, False, 4)
    config, _, _ = configured("--config", path, "--race-steps", 50, "--split", "blocks")
    assert (config.race_steps, config.race_epochs) == (50, None)
    assert (config.split.kind, config.split.fold, config.split.folds) == ("blocks", 0, 5)
    path.write_text(path.read_text(), encoding="utf-8-sig")  # as Notepad of Windows saves it
    config, _, _ = configured("--config", path, "--fold", 2)
    assert (config.split.kind, config.split.fold, config.split.folds) == ("folds", 2, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budget = ", "is not TOML"),
        ("budget = 1M-params", "is not TOML .*; texts need quotes"),
        ("budgett = 1", "unknown key 'budgett'; did you mean budget"),
        (
            'budget = "1M-params"\n[split]\nblok = 3',
            "its table split has the unknown key 'blok'; it has block",
        ),
        ('budget = "1M-params"\nseed = [1]', "seed must be one value"),
        ('budget = "1M-params"\nseed = inf', "seed must be finite, not inf"),
        ("seed = " + "9" * 5000, "is not TOML"),
        ('budget = "1M-params"\nrecipe = 3', "recipe must be a table"),
        ('budget = "1M-params"\n[recipe]\nmixupp = 3', "did you mean 'mixup'"),
        (
            'budget = "1M-params"\nusual_finalists = "x"',
            "usual_finalists 'x': must be a whole number",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, configured: Any, text: str, words: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        configured("--config", path)
    assert "\n" not in str(caught.value)


def test_completion_is_offered() -> None:
    from click.shell_completion import BashComplete

    from hytas.cli.main import hytas as group

    complete = BashComplete(group, {}, "hytas", "_HYTAS_COMPLETE")
    assert "complete" in complete.source()
    found = [item.value for item in complete.get_completions(["search"], "--class")]
    assert found == ["--class-field", "--class-names", "--class-prior"]
    assert [item.value for item in complete.get_completions([], "cla")] == ["classify"]
    assert isinstance(group, click.Group)
