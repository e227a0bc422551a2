"""What options offer is what the tables hold."""

from collections.abc import Collection

import click
import pytest

from hytas.cli.score import score
from hytas.cli.space import space
from hytas.machine import PRECISIONS
from hytas.proxies.initial import INITS
from hytas.run.config import RunConfig
from hytas.spaces import DEFAULT_SPACE


@pytest.mark.parametrize(
    ("command", "option", "table"),
    [
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


def test_commands_and_runs_share_the_default_space() -> None:
    commands = [space.commands[name] for name in ("count", "sample")]
    defaults = [each.default for one in commands for each in one.params if each.name == "space"]
    assert defaults == [DEFAULT_SPACE] * 2
    assert RunConfig().space == DEFAULT_SPACE
