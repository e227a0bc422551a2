"""--config: the options of a command in a file, by the keys of config.json."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hytas.cli.options import SETTINGS, Option, PanelCommand, path_option
from hytas.data.splits.settings import OPTIONS
from hytas.errors import InputError
from hytas.files import parse_json
from hytas.run.config import SETTING_GROUPS
from hytas.settings import Setting, settings_of

if TYPE_CHECKING:
    from hytas.train import Recipe

MOST_BYTES = 2**20
_META = "hytas.config_file"
# Options of which one takes the place of the other.
_EXCLUSIVE = (("train_per_class", "train_fraction"),)
_NO_KEYS = ("config", "as_json", "budgets")


class ConfiguredCommand(PanelCommand):
    """A command whose options may come from a file; those of the command line win."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; drop options of the file that the command line excludes."""
        rest = super().parse_args(ctx, args)
        given = {name for name in ctx.params if _source(ctx, name) is ParameterSource.COMMANDLINE}
        dropped = {b for a, b in _EXCLUSIVE if a in given}
        dropped |= {a for a, b in _EXCLUSIVE if b in given}
        if "split" in given:  # another kind begins a split afresh
            dropped |= set(OPTIONS)
        for parameter in self.params:
            name = parameter.name
            if name in dropped and _source(ctx, name) is ParameterSource.DEFAULT_MAP:
                assert isinstance(ctx.default_map, dict)  # which the file filled
                del ctx.default_map[name]
                usual = parameter.get_default(ctx)
                # Some versions of click have a value of their own for "no default".
                ctx.params[name] = usual if isinstance(usual, bool | int | float | str) else None
        return rest


def _source(ctx: click.Context, name: str) -> ParameterSource | None:
    return ctx.get_parameter_source(name)


def _read(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    options = {str(one.name) for one in ctx.command.params} - set(_NO_KEYS) | {"budget"}
    defaults: dict[str, Any] = {}
    meta: dict[str, Any] = {"settings": {}}
    for name, value in _flat(_values(path), path).items():
        if name == "recipe":
            meta["recipe"] = _recipe(value, path)
        elif name not in options and name not in SETTINGS:
            near = difflib.get_close_matches(name, [*options, *SETTINGS], 1)
            hint = f"did you mean {near[0]}?" if near else ""
            raise InputError("config", path, f"has the unknown key {name!r}", hint)
        elif name not in options:
            meta["settings"] |= {} if value is None else {name: value}
        elif value is not None:
            defaults[name] = _words(name, value, path)
    repeated = {option.name for option in ctx.command.params if option.multiple} | {"budget"}
    for name in repeated & set(defaults):
        value = defaults[name]
        defaults[name] = value if isinstance(value, list) else [value]
    if "budget" in defaults:
        defaults["budgets"] = defaults.pop("budget")
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    ctx.meta[_META] = meta


config_option = path_option(
    "--config",
    cls=Option,
    panel="Most used",
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="TOML file of options, or the config.json of a run, which has the same keys; options on "
    "the command line win.",
)


def _words(name: str, value: Any, path: Path) -> str | list[str]:
    """Return a value as on the command line, which is refused there if it does not fit."""
    several = name == "budget" or (name in SETTINGS and SETTINGS[name].many)
    if isinstance(value, dict) or (isinstance(value, list) and not several):
        raise InputError("config", path, f"{name} must be one value, not {value!r}")
    return list(map(str, value)) if isinstance(value, list) else str(value)


def _values(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError("config", path, "no such file")
    if path.stat().st_size > MOST_BYTES:
        raise InputError("config", path, f"has more than {MOST_BYTES} bytes")
    if path.suffix.lower() == ".json":
        values = parse_json(path.read_bytes(), f"config: {path}")
        values = values.get("config", values) if isinstance(values, dict) else values
    else:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as error:  # ValueError: a number of 5000 digits, too
            hint = "texts need quotes, and a backslash in them is doubled"
            raise InputError("config", path, f"is not TOML ({error})", hint) from None
    if not isinstance(values, dict):
        raise InputError("config", path, "must hold keys and values")
    return values


def _flat(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the values of all tables by the names of their options; `recipe` stays a table."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if key == "recipe" or key not in SETTING_GROUPS or not isinstance(value, dict):
            flat[key.replace("-", "_")] = value
            continue
        settings: Mapping[str, Setting] = settings_of(SETTING_GROUPS[key])
        for name, part in value.items():
            if (field := name.replace("-", "_")) not in settings:
                near = difflib.get_close_matches(field, settings, 1) or settings
                rule = f"its table {key} has the unknown key {name!r}"
                raise InputError("config", path, rule, f"it has {', '.join(near)}")
            flat[settings[field].name] = part
    if isinstance(recipe := flat.get("recipe"), dict) and "presets" in recipe:
        flat |= {"presets": recipe["presets"]}
        flat["recipe"] = {name: part for name, part in recipe.items() if name != "presets"}
    return flat


def _recipe(values: Any, path: Path) -> list[str]:
    """Return the settings of a recipe, as --recipe takes them."""
    if not isinstance(values, dict):
        raise InputError("config", path, "recipe must be a table of settings")
    words = {True: "yes", False: "no"}
    return [
        f"{name}={words[value] if isinstance(value, bool) else value}"
        for name, value in values.items()
        if value is not None
    ]


def configured_recipe(usual: "Recipe") -> "Recipe":
    """Return the recipe of the file, which changes `usual`."""
    meta = click.get_current_context().meta.get(_META, {})
    return usual.changed(meta.get("recipe", ()))


def further_settings() -> dict[str, Any]:
    """Return the settings of a run that the file names and that are no options."""
    settings: dict[str, Any] = click.get_current_context().meta.get(_META, {}).get("settings", {})
    return settings
