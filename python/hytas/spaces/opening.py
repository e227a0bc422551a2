"""Open a search space by name or by file, with the latency tables that a budget names."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from hytas._engine import Budget, SearchSpace, builtin_space_text, builtin_spaces
from hytas.errors import InputError, check_unicode
from hytas.files import parse_json
from hytas.plugins import fill
from hytas.spaces.budgets import is_space_file, parse_budget, read_text

OWN: dict[str, str] = {}
"""Name of a plug-in's space -> text of its file, TOML or JSON."""
fill("space", OWN, built_in=builtin_spaces())


def open_space(
    space: str,
    budget: str | Sequence[str] | Budget = (),
    variables: Mapping[str, int] | None = None,
    *,
    offered: Mapping[str, int] | None = None,
) -> tuple[SearchSpace, Budget]:
    """Return the space, with every cost that its budget names, and the budget.

    Args:
        space: the name of a built-in space, or the path of a space file (docs/research.md): TOML
            when its name ends in .toml, else JSON.
        budget: as `parse_budget` takes it, or already parsed. The table of a bound such as
            `3ms-latency@table.json` is read from that path.
        variables: values of the space's variables; those left out have the file's defaults.
        offered: values of variables that the space need not have, such as those of a scene.

    Raises:
        InputError: an unknown space, a file that is not a space or a table, a wrong variable.
        OSError: a file cannot be read.
    """
    for name in (space, *(variables or {})):
        check_unicode("space", name)
    bounds = budget if isinstance(budget, Budget) else parse_budget(budget)
    is_file = is_space_file(space)
    try:
        text = space_text(space)
        values = dict(variables or {})
        if offered:
            names = _variables(text)
            values = {name: value for name, value in offered.items() if name in names} | values
        opened = _parsed(text, tuple(values.items()))
        for table in bounds.tables:
            opened = opened.with_table(table, read_text(table, "latency table"))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{space}: {error}" if is_file else str(error)) from None
    return opened, bounds


def open_for_genes(space: str) -> SearchSpace:
    """Return a space whose costs do not matter: variables without a default are at their least."""
    variables = _variables(space_text(space))
    needed = {
        name: facts.get("minimum", 1) for name, facts in variables.items() if "default" not in facts
    }
    return open_space(space, variables=needed)[0]


@lru_cache(maxsize=16)
def _parsed(text: str, variables: tuple[tuple[str, int], ...]) -> SearchSpace:
    """Return a space; to compute the costs of all combinations takes a part of a second."""
    return SearchSpace.parse(text, dict(variables))


@lru_cache(maxsize=16)
def builtin_space(name: str, variables: tuple[tuple[str, int], ...]) -> SearchSpace | None:
    """Return the built-in space of that name, None where there is none.

    Args:
        variables: names and values; those that the space does not have are left out.
    """
    if name not in builtin_spaces():
        return None
    return open_space(name, offered=dict(variables))[0]


def space_name(space: str) -> str:
    """Return the name of a built-in space, or the one inside a space file."""
    if not is_space_file(space):
        return space
    return open_space(space)[0].name


def space_text(space: str) -> str:
    """Return the JSON text of a built-in space, of a plug-in's space, or of a space file.

    Raises:
        ValueError: an unknown space, or a file that is not TOML.
    """
    if space in OWN:
        return _json(OWN[space], is_toml=not OWN[space].lstrip().startswith("{"))
    if is_space_file(space):
        return _json(read_text(space, "space"), is_toml=space.endswith(".toml"))
    return builtin_space_text(space)


def with_values(space: str, values: Mapping[str, Sequence[Any]], about: str = "") -> str:
    """Return the text of a space file: a space with other values of some genes.

    The gene's weights in a draw over choices are kept for values that it had.

    Args:
        space: name of a built-in space, or path of a space file.
        values: gene -> all values that it shall have.
        about: takes the place of the space's description, if there is one.
    """
    parsed = parse_json(space_text(space), space)
    genes = {gene["name"]: gene for gene in parsed["genes"]}
    for name, wanted in values.items():
        if name not in genes:
            raise InputError("space", space, f"has no gene {name!r}")
        gene = genes[name]
        weights = dict(zip(map(json.dumps, gene["values"]), gene.pop("weights", []), strict=False))
        kept = [weights.get(json.dumps(value)) for value in wanted]
        gene["values"] = list(wanted)
        if weights and all(weight is not None for weight in kept):
            gene["weights"] = kept
    if about:
        parsed["about"] = about
    return json.dumps(parsed, indent=1) + "\n"


def _variables(text: str) -> dict[str, Any]:
    """Return the variables of a space, some of which may have no default."""
    values = parse_json(text.encode(), "space file")
    variables = values.get("variables") if isinstance(values, dict) else None
    return variables if isinstance(variables, dict) else {}


def _json(text: str, is_toml: bool) -> str:
    """Return the text of a space as JSON, so that the engine checks TOML and JSON alike."""
    if not is_toml:
        return text
    import tomllib

    try:
        return json.dumps(tomllib.loads(text, parse_float=_exact), allow_nan=False, default=_refuse)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"space file: not valid TOML: {error}") from None
    except RecursionError:
        raise ValueError("space file: not valid TOML: its values are nested too deeply") from None


def _exact(number: str) -> float:
    """Return a float that JSON writes as the same decimal."""
    value = float(number)
    if not Decimal(number).is_finite() or Decimal(repr(value)) != Decimal(number):
        raise ValueError(f"space file: number {number}: must be finite, of at most 15 digits")
    return value


def _refuse(value: Any) -> None:
    raise ValueError(f"space file: {value}: a space has no dates or times")
