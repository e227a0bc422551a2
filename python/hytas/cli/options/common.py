"""Options of many commands, and their types."""

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from hytas.errors import InputError

Command = Callable[..., Any]
CONFIG_FOLDER = "hytas.config_folder"
"""Key of a context's `meta`: the folder of the file that `--config` names."""

MOST_THREADS = 1024
"""CPU threads at most. Each thread takes memory, and a typo must not exhaust it."""


UNITS = (
    "params",
    "macs",
    "activations",
    "ram",
    "flash",
    "bytes",
    "fp32",
    "fp16",
    "int8",
    "ms",
    "us",
    "s",
)
_SYNONYMS = {
    **dict.fromkeys(("param", "parameter", "parameters", "weights"), "params"),
    **dict.fromkeys(("mac", "multadds", "madds", "mult-adds"), "macs"),
    **dict.fromkeys(("flop", "flops"), "macs"),
}
"""What others call a unit -> its name in a budget."""


class BudgetType(click.ParamType[str]):
    """A budget such as `2M-params`, as canonical text. It is checked before any file is read."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from hytas.spaces.budgets import parse_budget

        for term in str(value).split(","):
            amount, _, unit = term.strip().partition("-")
            name = _SYNONYMS.get(unit.lower(), unit.lower())
            if unit != name and name in UNITS:
                hint = f"write {amount}-{name}"
                if unit.lower().startswith("flop"):
                    hint = "a multiply-accumulate is two of them: write half the number of macs"
                raise InputError("budget", value, f"unit {unit!r} is not a unit", hint)
        return str(parse_budget(value))


class OpenChoice(click.Choice[str]):
    """A choice that plug-ins may add to; the configuration refuses a name that none brings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from hytas.plugins import brings, brought_by

        name = "" if param is None else str(param.name)
        if brings(name, str(value)):
            return str(value)
        if value not in self.choices and (hint := brought_by(name, str(value))):
            raise InputError(name, value, f"must be one of {', '.join(self.choices)}", hint)
        return super().convert(value, param, ctx)


class Option(click.Option):
    """An option with a panel of the help that lists it."""

    def __init__(self, *names: Any, panel: str = "Running", **arguments: Any) -> None:
        super().__init__(*names, **arguments)
        self.panel = panel


def command_line() -> str:
    """Return the command that runs, as a shell takes it; empty inside another program."""
    context = click.get_current_context(silent=True)
    command = None if context is None else context.find_object(str)
    return command or ""


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator for several options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


uniform_option = functools.partial(
    click.option,
    "--uniform",
    type=click.Choice(["architectures", "choices"]),
    show_default=True,
    help="Draw every architecture with the same probability, or every choice of a gene.",
)

device_option = click.option(
    "--device",
    cls=Option,
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where to score and train; auto uses a GPU if there is one.",
)


def _load_plugins(
    ctx: click.Context, param: click.Parameter, values: Sequence[str] | None
) -> tuple[str, ...]:
    from hytas.plugins import load

    source = ctx.get_parameter_source("plugins")
    in_file = source is click.core.ParameterSource.DEFAULT_MAP
    return load(values or (), kept=Path(ctx.meta[CONFIG_FOLDER]) if in_file else None)


plugin_option = functools.partial(
    click.option,
    "--plugin",
    "plugins",
    cls=Option,
    multiple=True,
    is_eager=True,
    callback=_load_plugins,
    help="Python file, or name of an installed plug-in, that brings networks, proxies, rankings, "
    "strategies or readers (docs/extending.md); repeatable.",
)


def _known_workers(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from hytas.workers import check_workers

    check_workers(value)
    return value


workers_option = click.option(
    "--workers",
    cls=Option,
    callback=_known_workers,
    help="Where to work in parallel: a number of processes, ray, ray://HOST:PORT, or "
    "slurm:partition=NAME,time=MINUTES,... (docs/scale.md). The result is the same.  [default: "
    "one process a core; on a GPU one to score, and to train as many as it has room for]",
)


def budgets_option(help_text: str) -> Callable[[Command], Command]:
    """Return --budget, which must be given and may be repeated: the argument `budgets`."""
    return click.option(
        "--budget",
        "budgets",
        cls=Option,
        panel="Most used",
        type=BudgetType(),
        multiple=True,
        required=True,
        help=help_text,
    )


def whole_numbers(text: str) -> list[int]:
    """Return the numbers of a text such as 1,32; none if a part is not a whole number."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        return []


def is_given(name: str) -> bool:
    """Return whether a parameter of the running command was given."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not click.core.ParameterSource.DEFAULT


def refuse_given(names: Iterable[str], why: str) -> None:
    """Refuse parameters of the running command that were given.

    Raises:
        InputError: one was; its rule is `why`.
    """
    for name in names:
        if is_given(name):
            value = click.get_current_context().params[name]
            raise InputError(name, value, why)


json_option = click.option(
    "--json", "as_json", cls=Option, is_flag=True, help="Print the result as JSON."
)
