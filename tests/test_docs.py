"""The pages: their commands have the options that they name, and the first ones run."""

import re
import shlex
from pathlib import Path

import click
import pytest

from commands import run_copy
from hytas.cli.main import hytas

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands_of(page: Path) -> list[list[str]]:
    """Return the arguments of each `hytas` in the console blocks of a page."""
    text = "".join(BLOCK.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [words[2:] for words in lines if words[:2] == ["$", "hytas"]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_of_commands_exist(page: Path) -> None:
    for words in commands_of(page):
        chosen: click.Command = hytas
        arguments = words
        while isinstance(chosen, click.Group):
            _, found, arguments = chosen.resolve_command(click.Context(chosen), arguments)
            assert found is not None
            chosen = found
        with click.Context(chosen, info_name=chosen.name) as context:
            chosen.make_parser(context).parse_args(list(arguments))


@pytest.mark.slow
def test_the_first_commands_need_no_file(tmp_path: Path) -> None:
    for words in commands_of(PAGES[0])[:2]:
        done = run_copy(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "map.png").exists()
