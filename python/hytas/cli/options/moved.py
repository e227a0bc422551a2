"""Options that say where the files of a run lie now."""

import functools
from typing import Any

import click

from hytas.cli.options.common import Command, together

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
