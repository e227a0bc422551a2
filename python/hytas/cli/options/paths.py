"""Paths in options, as later commands need them."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hytas.cli.options.common import Command, together
from hytas.errors import InputError


@contextmanager
def run_argument() -> Iterator[None]:
    """Call the folder RUN in messages, not --out: the command goes on with an existing run."""
    try:
        yield
    except InputError as error:
        raise error.renamed({"out": "RUN"}) from None


def absolute_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Return `settings` with absolute paths, so that later commands find the files.

    The paths are those of the scene, of a space file and of the latency tables in a budget. The
    name of a known scene stays a name, even if a file is called the same: write `./salinas` for
    the file.
    """
    from hytas.data.datasets import SCENES
    from hytas.data.images.load import IMAGE_SETS
    from hytas.spaces import with_files

    names = {*SCENES, *IMAGE_SETS, "synthetic"}

    def absolute(name: str, value: Any) -> Any:
        if value is None or (name.endswith("data") and value in names):
            return value
        if not isinstance(value, str):
            return tuple(absolute(name, one) for one in value)
        return str(Path(value).resolve()) if Path(value).exists() else value

    scenes = ("data", "labels", "test_data", "test_labels", "data_dir")
    files = (*scenes, "supernet", "start_with", "teacher")
    named = {name: absolute(name, settings[name]) for name in files if name in settings}
    if "space" in settings:
        given = settings["space"] or "", settings.get("budget")
        space, budget = with_files(*given, _from_the_root)
        return {**settings, **named, "space": space or None, "budget": budget}
    return {**settings, **named}


def budget_from_the_root(budget: str) -> str:
    """Return a budget with absolute paths of its latency tables."""
    from hytas.spaces import with_files

    return str(with_files("", budget, _from_the_root)[1])


def _from_the_root(path: str) -> str:
    """Return the absolute path, unless it has a comma, which would end the term of a budget."""
    whole = str(Path(path).resolve())
    return path if "," in whole else whole


_MOVED = {
    "data": "File of the run's scene, if it has moved; of several scenes, each in order.",
    "labels": "File of the scene's labels, if it has moved.",
    "test_data": "File of a scene that is only tested on, if it has moved.",
    "test_labels": "File of its labels, if it has moved.",
}


def moved_options(command: Command) -> Command:
    """Add options that say where the files of a run lie now; the command gets them as `moved`."""

    @functools.wraps(command)
    def gathered(*positional: Any, **values: Any) -> Any:
        moved = {name: values.pop(name) for name in _MOVED}
        return command(*positional, moved=moved, **values)

    return together(
        *(
            click.option(f"--{name.replace('_', '-')}", multiple=True, help=text)
            for name, text in _MOVED.items()
        )
    )(gathered)
