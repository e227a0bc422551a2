"""Options that several commands share, their types, and the panels of their help."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.data.splits.settings import SplitSettings
from hytas.errors import InputError
from hytas.run.config import SETTING_GROUPS, RunConfig
from hytas.settings import OneOf, Setting, settings_of

if TYPE_CHECKING:
    from hytas.run.pace import Invocation
    from hytas.train import Recipe

Command = Callable[..., Any]

MOST_THREADS = 1024
"""CPU threads at most. Each thread takes memory, and a typo must not exhaust it."""


class BudgetType(click.ParamType[str]):
    """A budget such as `2M-params`, as canonical text. It is checked before any file is read."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from hytas.spaces.budgets import parse_budget

        return str(parse_budget(value))


class OpenChoice(click.Choice[str]):
    """A choice that plug-ins may add to; the configuration refuses a name that none brings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from hytas.plugins import brings

        if param is not None and brings(str(param.name), str(value)):
            return str(value)
        return super().convert(value, param, ctx)


class Option(click.Option):
    """An option with a panel of the help that lists it."""

    def __init__(self, *names: Any, panel: str = "Running", **arguments: Any) -> None:
        super().__init__(*names, **arguments)
        self.panel = panel


def command_line() -> "Invocation":
    """Return the command that runs; without a text inside another program."""
    from hytas.cli.main import STARTED
    from hytas.run.pace import Invocation

    context = click.get_current_context(silent=True)
    text = None if context is None else context.find_object(str)
    return Invocation(text or "", STARTED)


def with_display(work: Callable[..., Any], config: "RunConfig", *given: Any, **options: Any) -> Any:
    """Call `work` with a configuration, its data and a display of all that happens."""
    from hytas.run.display import DetailedDisplay

    with DetailedDisplay() as console:
        return work(config, config.load_scene(), *given, report=console, **options)


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator for several options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


PATH = click.Path(path_type=Path)
path_option = functools.partial(click.option, type=PATH)


def count_option(
    *names: str, default: int, text: str, least: int = 1
) -> Callable[[Command], Command]:
    """Return an option of a whole number, `least` or more."""
    kind = click.IntRange(least)
    return click.option(*names, type=kind, default=default, show_default=True, help=text)


model_argument = click.argument("model", type=PATH)
scene_argument = click.argument("scene", type=PATH)
resample_option = click.option(
    "--resample",
    is_flag=True,
    help="Take the scene to the model's bands, by wavelength: for another sensor.",
)
provider_option = click.option(
    "--provider", default="auto", show_default=True, help="auto, cpu or cuda."
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
    from hytas.plugins import load_plugins

    in_file = ctx.get_parameter_source("plugins") is click.core.ParameterSource.DEFAULT_MAP
    if values and in_file:
        rule = "is code, which a file of options does not bring"
        raise InputError("plugins", values[0], rule, "read it, then name it with `plugins`")
    return load_plugins(values or ())


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


def _read_untrusted(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from hytas.data.read.untrusted import untrusted

        ctx.with_resource(untrusted())


untrusted_option = click.option(
    "--untrusted",
    cls=Option,
    panel="Scene",
    is_flag=True,
    expose_value=False,
    callback=_read_untrusted,
    help="Read files of unknown origin in a child process, with limits of memory and time.",
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
    "slurm:partition=NAME,time=MINUTES,... (docs/budget-and-time.md). The result is the same.  "
    "[default: one process a core; on a GPU one to score, and to train as many as it has room for]",
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
    """Refuse parameters of the running command that were given."""
    for name in names:
        if is_given(name):
            value = click.get_current_context().params[name]
            raise InputError(name, value, why)


json_option = click.option(
    "--json", "as_json", cls=Option, is_flag=True, help="Print the result as JSON."
)


PANELS = (
    *("Most used", "Scene", "Labels", "Split", "Budget and search", "Race", "Training", "Map"),
    "Running",
)
"""Sections of a help, in their order."""
SETTINGS = {
    declared.name: declared
    for owner in (RunConfig, SplitSettings)
    for declared in settings_of(owner).values()
}
"""Settings of a run by the names that users know."""
_TYPES = {int: click.INT, float: click.FLOAT}
_NAME = re.compile(r"`([a-z_]+)`")


def setting_option(name: str, **changes: Any) -> Callable[[Command], Command]:
    """Return the option of a setting, as a decorator.

    Args:
        changes: arguments of `click.option` that replace the setting's; and `usual`, which says
            what holds without the option.
    """
    declared = SETTINGS[name]
    usual = changes.pop("usual", declared.facts.usual)
    given = _arguments(declared) | changes
    example = f" Example: {declared.facts.example}." if declared.facts.example else ""
    several = " Repeatable." if declared.many else ""
    default = f"  [default: {usual}]" if usual and given["default"] is None else ""
    option = name.replace("_", "-")
    return click.option(
        f"--{option}/--no-{option}" if declared.kinds == (bool,) else f"--{option}",
        cls=Option,
        panel=PANELS[0] if declared.facts.most_used else declared.facts.panel,
        **(given | {"help": with_options(f"{given['help']}{several}{example}{default}")}),
    )


def _arguments(declared: Setting) -> dict[str, Any]:
    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        return None if value is None else declared.checked(value)

    arguments: dict[str, Any] = {
        "help": declared.facts.help,
        "default": declared.default,
        "callback": check,
        "metavar": declared.facts.metavar,
    }
    if declared.kinds == (bool,):
        return arguments | {"is_flag": True}
    if declared.many:
        default = [declared.default] if isinstance(declared.default, str) else None
        arguments |= {"default": default, "multiple": True}
    kind = _TYPES.get(declared.kinds[0]) if len(declared.kinds) == 1 else None
    rule, choice = declared.facts.rule, None
    if isinstance(rule, OneOf):
        choice = (click.Choice if rule.others is None else OpenChoice)(rule.names)
    shown = arguments["default"] is not None
    return arguments | {"type": choice or kind or click.STRING, "show_default": shown}


def with_options(text: str) -> str:
    """Return a help with the option in place of a setting in backticks."""

    def option(match: re.Match[str]) -> str:
        name = match[1]
        return f"--{name.replace('_', '-')}" if name in SETTINGS else match[0]

    return _NAME.sub(option, text)


def setting_options(
    *groups: str, more: Iterable[str] = (), **changes: dict[str, Any]
) -> Callable[[Command], Command]:
    """Return the options of groups of settings, as a decorator.

    Args:
        groups: names in `hytas.run.config.SETTING_GROUPS`.
        changes: for `setting_option`, by the name of a setting.
    """
    declared = [one for group in groups for one in settings_of(SETTING_GROUPS[group]).values()]
    names = [one.name for one in declared if one.facts.option]
    return together(*(setting_option(name, **changes.get(name, {})) for name in (*names, *more)))


class PanelCommand(click.Command):
    """A command whose help lists its options in `PANELS`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each panel."""
        for title, records in records_by_panel(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)


def records_by_panel(
    command: click.Command, ctx: click.Context
) -> dict[str, list[tuple[str, str]]]:
    """Return panel -> option and help of its parameters, in the order of `PANELS`."""
    panels: dict[str, list[tuple[str, str]]] = {title: [] for title in PANELS}
    for parameter in command.get_params(ctx):
        if (record := parameter.get_help_record(ctx)) is not None:
            usual = PANELS[-1] if "--help" in parameter.opts else PANELS[0]
            panels[getattr(parameter, "panel", usual)].append(record)
    return {title: records for title, records in panels.items() if records}


def recipe_option(help_text: str) -> Callable[[Command], Command]:
    """Return --recipe, which may be repeated: settings and presets, for `recipe_of`."""
    return click.option(
        "--recipe",
        cls=Option,
        panel="Training",
        multiple=True,
        metavar="NAME=VALUE",
        help=help_text,
    )


training_options = together(
    click.option(
        "--epochs",
        cls=Option,
        panel="Training",
        type=int,
        help="Epochs of the final training; for a search, 0 stops before it.  [default: "
        "1500 steps or by --effort, and at most 200 epochs]",
    ),
    recipe_option(
        "Setting of the race and the final training, such as mixup=0.4 or class_weights=1; "
        "or a preset of augmentation: plain, unwhitened (plain, with pixels not whitened), "
        "light, full, images or images-light; or the recipe of a paper: hytas-paper, "
        "autoformer-paper or s3-paper. Repeatable: of several presets, the race finds "
        "the best.  [default: full, plain and unwhitened; for images images-light and images; "
        "without a race, the first]"
    ),
)


def recipe_of(
    usual: "Recipe", presets: str, settings: Sequence[str], epochs: int | None
) -> tuple["Recipe", str]:
    """Return the recipe `usual` and the presets, changed by the values of --recipe and --epochs."""
    from hytas.train import PRESETS, usual_settings

    named = [setting.strip() for setting in settings if setting.strip() in PRESETS]
    presets = ",".join(dict.fromkeys(named)) or presets
    settings = [setting for setting in settings if setting.strip() not in PRESETS]
    recipe = usual.changed(settings)
    parts = [*presets.split(","), *usual_settings(recipe, settings)]
    presets = ",".join(dict.fromkeys(filter(None, parts)))
    if epochs is None:
        return recipe, presets
    if epochs < 0:
        raise InputError("epochs", epochs, "must be 0 or more")
    names = [setting.partition("=")[0].strip() for setting in settings]
    for name in ("steps", "epochs"):
        if name in names:
            rule = f"`recipe` {name}=... also sets the length"
            raise InputError("epochs", epochs, rule, "give one of them")
    return recipe.with_epochs(epochs), presets


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
