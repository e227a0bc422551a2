"""`hytas analyse`: analysis of tables of trained networks."""

import click

from hytas.cli.analysis_sections import report, section_command
from hytas.lab.analysis.sections import SECTIONS


@click.group()
def analyse() -> None:
    """Measure tables of trained networks: scores, genes, predictors and searches."""


analyse.add_command(report)
for _name in SECTIONS:
    analyse.add_command(section_command(_name))
