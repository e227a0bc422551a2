"""What options offer is what the tables hold; the commands import neither to show their help."""

from collections.abc import Collection

import click
import pytest

from hytas._engine import strategies
from hytas.cli.score import score
from hytas.cli.search import search
from hytas.cli.space import space
from hytas.data.preprocessing import METHODS
from hytas.data.splits.settings import KINDS, OPTIONS, SplitSettings
from hytas.estimator import HSIClassifier
from hytas.machine import PRECISIONS
from hytas.proxies.initial import INITS
from hytas.run.config import FRONT_STRATEGIES, SUPERNET_STRATEGY, RunConfig
from hytas.spaces import DEFAULT_SPACE


@pytest.mark.parametrize(
    ("command", "option", "table"),
    [
        (search, "split", KINDS),
        (search, "scaling", METHODS),
        (search, "strategy", set(strategies()) - {*FRONT_STRATEGIES} | {SUPERNET_STRATEGY}),
        (score, "precision", PRECISIONS),
        (score, "init", INITS),
    ],
)
def test_choices_are_the_tables(
    command: click.Command, option: str, table: Collection[str]
) -> None:
    (found,) = [each for each in command.params if each.name == option]
    assert isinstance(found.type, click.Choice)
    assert set(found.type.choices) == set(table)


def test_the_options_of_a_split_are_its_settings() -> None:
    offered = search.make_context("search", ["--budget", "1M-params"]).params
    assert {name: offered[name] for name in OPTIONS} == SplitSettings().options()


def test_the_help_says_what_each_strategy_does() -> None:
    (option,) = [each for each in search.params if each.name == "strategy"]
    assert isinstance(option, click.Option)
    for name, facts in strategies().items():
        told = f"{name}: {facts['about']}."
        assert (told in str(option.help)) != (name in FRONT_STRATEGIES)


def test_every_command_and_the_classes_share_the_default_space() -> None:
    commands = (search, *(space.commands[name] for name in ("count", "sample")))
    defaults = [each.default for one in commands for each in one.params if each.name == "space"]
    assert defaults == [DEFAULT_SPACE] * 3
    assert RunConfig().space == HSIClassifier().space == DEFAULT_SPACE
