"""What options offer is what the tables hold; the commands import neither to show their help."""

from collections.abc import Collection

import click
import pytest

from hytas._engine import strategies
from hytas.cli.score import score
from hytas.cli.search import search
from hytas.data.preprocessing import METHODS
from hytas.data.splitting import KINDS
from hytas.machine import PRECISIONS
from hytas.proxies.draws import FUSIONS, INITS
from hytas.run.config import PARETO, PREDICTOR


@pytest.mark.parametrize(
    ("command", "option", "table"),
    [
        (search, "split", KINDS),
        (search, "scaling", METHODS),
        (search, "strategy", {*strategies(), PREDICTOR} - {PARETO}),  # --pareto takes that one
        (score, "precision", PRECISIONS),
        (score, "init", INITS),
        (score, "fusions", FUSIONS),
    ],
)
def test_choices_are_the_tables(
    command: click.Command, option: str, table: Collection[str]
) -> None:
    (found,) = [each for each in command.params if each.name == option]
    assert isinstance(found.type, click.Choice)
    assert set(found.type.choices) == set(table)
