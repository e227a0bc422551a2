"""--config of `hytas search`."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hytas.job
from hytas.cli.search import search
from hytas.errors import InputError
from hytas.run import RunConfig


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


def test_the_configuration_of_a_run_is_a_file_of_options(tmp_path: Path, configured: Any) -> None:
    config = RunConfig(budget="1M-params", split="blocks", block=8, population=11)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"config": config.to_dict(), "scene": "abc", "versions": {}}))
    assert configured("--config", path)[0] == config


def test_the_command_line_wins(tmp_path: Path, configured: Any) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'budget = "500K-params"\npopulation = 11\ndevice = "cpu"\n'
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
    config, _, _ = configured("--config", path, "--split", "blocks")
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
        ('budget = "1M-params"\nparents = 0', "parents=0: must be 1 or more"),
        ("seed = " + "9" * 5000, "is not TOML"),
        ('budget = "1M-params"\nrecipe = 3', "recipe must be a table"),
        ('budget = "1M-params"\n[recipe]\nmixupp = 3', "did you mean 'mixup'"),
        (
            'budget = "1M-params"\nusual_finalists = "x"',
            "usual_finalists='x': must be a whole number",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, configured: Any, text: str, words: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        configured("--config", path)
    assert "\n" not in str(caught.value)
