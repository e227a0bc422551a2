"""--config and --write-config: the options of a command in a file, by the keys of config.json."""

import difflib
import json
import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hytas.cli.options.scene import UnlabelledType
from hytas.errors import InputError
from hytas.files import check_folder, parse_json, write_text

if TYPE_CHECKING:
    from hytas.run import RunConfig
    from hytas.train import Recipe

MOST_BYTES = 2**20
_META = "hytas.config_file"
# Options of which one takes the place of the other.
_EXCLUSIVE = (("race_steps", "race_epochs"), ("train_per_class", "train_fraction"))
_HIDDEN = ("config", "write_config", "as_json", "budgets")


class ConfiguredCommand(click.Command):
    """A command whose options may come from a file; those of the command line win."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, then leave out of the file's what the command line excludes."""
        rest = super().parse_args(ctx, args)
        from hytas.data.splits.settings import OPTIONS  # not for --help

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


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --config, which sets defaults, and --write-config, which the command gets."""
    for option in (
        click.option(
            "--write-config",
            type=click.Path(path_type=Path),
            help="Write all settings into this TOML file, and stop.",
        ),
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=_read,
            help="TOML file of options, with the keys of a run's config.json; options given "
            "beside it win.",
        ),
    ):
        command = option(command)
    return command


def _read(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    values = _values(path)
    keys = {p.name for p in ctx.command.params if p.name not in _HIDDEN} | {"budget"}
    repeated = {p.name for p in ctx.command.params if isinstance(p, click.Option) and p.multiple}
    defaults: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    for key, value in _flat(values, path).items():
        name = key.replace("-", "_")
        if value is None and name in (*keys, *_no_options(keys)):
            continue
        if name == "recipe":
            meta["recipe"] = _recipe(value, path)
        elif name not in keys and name in (further := _no_options(keys)):
            meta.setdefault("settings", {})[name] = _like(further[name], name, value)
        elif name not in keys:
            near = difflib.get_close_matches(name, keys, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"config: {path} has the unknown key {key!r}{hint}")
        elif isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"config: {path}: {key} must be finite, not {value!r}")
        elif name in repeated:
            defaults[name] = value if isinstance(value, list) else [value]
        elif isinstance(value, dict | list) and name != "budget":
            raise InputError(f"config: {path}: {key} must be one value, not {value!r}")
        else:
            defaults[name] = value
    _check_types(ctx.command.params, defaults, path)
    if "budget" in defaults:
        budget = defaults.pop("budget")
        defaults["budgets"] = budget if isinstance(budget, list) else [budget]
    if defaults.get("race_epochs") is not None:
        defaults.pop("race_steps", None)
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    ctx.meta[_META] = meta


_TYPES: dict[type[click.ParamType[Any]], tuple[type, ...]] = {
    click.types.BoolParamType: (bool,),
    click.types.IntParamType: (int,),
    click.types.FloatParamType: (int, float),
    UnlabelledType: (int, str),
}
"""Type of an option -> types of its value in a file. Other options take text."""


def _check_types(options: Iterable[click.Parameter], values: Mapping[str, Any], path: Path) -> None:
    """Refuse values that click would turn into others, such as the seed 1.5 into 1."""
    for option in options:
        found = next((t for kind, t in _TYPES.items() if isinstance(option.type, kind)), (str,))
        name = "budget" if option.name == "budgets" else option.name
        given = values.get(str(name), [])
        for value in given if isinstance(given, list) else [given]:
            if not isinstance(value, found) or (isinstance(value, bool) and bool not in found):
                kinds = " or ".join(_WORDS[kind] for kind in found)
                raise InputError(f"config: {path}: {name} {value!r}: must be {kinds}")


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _values(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"config: no such file: {path}")
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"config: {path} has more than {MOST_BYTES} bytes")
    if path.suffix.lower() == ".json":
        values = parse_json(path.read_bytes(), f"config: {path}")
        values = values.get("config", values) if isinstance(values, dict) else values
    else:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # ValueError: a number of 5000 digits, too
            raise InputError(f"config: {path} is not TOML ({error})") from None
    if not isinstance(values, dict):
        raise InputError(f"config: {path} must hold keys and values")
    return values


def _flat(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The values with the parts of a table `split` by the names of their options."""
    from hytas.data.splits.settings import OPTIONS

    split = values.get("split")
    if not isinstance(split, dict):
        return dict(values)
    names = {field: option for option, field in OPTIONS.items()}
    for key in split:
        if key not in names:
            raise InputError(
                f"config: {path}: split has the unknown key {key!r}, must be one of "
                f"{', '.join(names)}"
            )
    parts = {names[key]: value for key, value in split.items()}
    return {**{k: v for k, v in values.items() if k != "split"}, **parts}


def _recipe(values: Any, path: Path) -> list[str]:
    """Settings of a recipe, as --recipe takes them."""
    if not isinstance(values, dict):
        raise InputError(f"config: {path}: recipe must be a table of settings")
    words = {True: "yes", False: "no"}
    return [
        f"{name}={words[value] if isinstance(value, bool) else value}"
        for name, value in values.items()
        if value is not None
    ]


def configured_recipe(usual: "Recipe") -> "Recipe":
    """Return the recipe of the file, which changes `usual`.

    Raises:
        InputError: a setting is none.
    """
    meta = click.get_current_context().meta.get(_META, {})
    return usual.changed(meta.get("recipe", ()))


def further_settings() -> dict[str, Any]:
    """Return the settings of a run that the file names and that are no options."""
    found: dict[str, Any] = click.get_current_context().meta.get(_META, {}).get("settings", {})
    return found


def _no_options(keys: Collection[str]) -> dict[str, Any]:
    """The settings of a run that have no option, with their usual values."""
    from hytas.run import RunConfig

    usual = RunConfig().to_dict()
    return {name: value for name, value in usual.items() if name not in keys}


def _like(usual: Any, name: str, value: Any) -> Any:
    if type(value) is not type(usual):
        raise InputError(f"config: {name} {value!r}: must be of the kind of {usual!r}")
    return value


def write_config(path: Path, config: "RunConfig", **further: str | None) -> None:
    """Write a configuration as a TOML file that --config reads.

    Args:
        path: the file.
        config: what it says.
        further: other options of the command; None leaves one out.

    Raises:
        InputError: its folder is not there, or it does not end in .toml: it might be a scene.
        OSError: it cannot be written.
    """
    if path.suffix.lower() != ".toml":
        raise InputError(f"--write-config {path}: must end in .toml")
    check_folder(path, f"--write-config {path}")
    values = {**config.to_dict(), **further}
    if values.get("race_epochs") is not None:
        del values["race_steps"]
    tables = {name: values.pop(name) for name in ("split", "recipe")}
    lines = _lines(values)
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_lines(table)]
    write_text(path, "\n".join(lines) + "\n")


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)
