"""The pages: their commands have the options that they name; `test_pages.py` runs them."""

import re
import shlex
from pathlib import Path

import click
import pytest

from commands import Run
from hytas.cli.main import hytas

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = re.compile(r"```console\n(.*?)```|(?<!`)`((?:hytas|python) [^`]+)`", re.DOTALL)


def lines_of(page: Path) -> list[str]:
    """Return the commands of a page: of console blocks and of sentences, in their order."""
    found = []
    for block, inline in COMMANDS.findall(page.read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        found += [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        found += [inline] if inline and "COMMAND" not in inline else []
    return found


def commands_of(page: Path) -> list[list[str]]:
    """Return the arguments of each `hytas` of a page."""
    words = [shlex.split(line.partition(" > ")[0], comments=True) for line in lines_of(page)]
    return [each[1:] for each in words if each[0] == "hytas"]


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
            # A sentence may name an option without its value.
            chosen.make_parser(context).parse_args([*arguments, "value"])


NO_FILE = {"proxies", "scenes", "list", "show", "count", "sample"}
"""Commands, and those of `hytas space`, that read neither a scene nor a run."""
GIVEN = re.compile(r"[A-Z]+|.*\.(json|toml)")
"""An argument that the reader brings."""


def test_commands_that_need_no_file_run(here: Run) -> None:
    commands = {tuple(words) for page in PAGES for words in commands_of(page)}
    alone = [
        words
        for words in commands
        if NO_FILE & set(words[:2] if words[:1] == ("space",) else words[:1])
        if not any(map(GIVEN.fullmatch, words))
    ]
    assert len(alone) > 10
    for words in sorted(alone):
        done = here(*words)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_whole(page: Path) -> None:
    """A blank line inside a table would end it."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert table.splitlines()[1].startswith("|---"), table[:200]
