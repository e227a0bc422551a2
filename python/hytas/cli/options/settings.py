"""Options that are made from the settings of a run, and the panels of their help."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from hytas.cli.options.common import Command, OpenChoice, Option, together
from hytas.data.splits.settings import SplitSettings
from hytas.run.config import GROUPS, RunConfig
from hytas.settings import OneOf, Setting, settings_of

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
        groups: names in `hytas.run.config.GROUPS`.
        changes: for `setting_option`, by the name of a setting.
    """
    declared = [one for group in groups for one in settings_of(GROUPS[group]).values()]
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
