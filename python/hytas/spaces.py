"""Search spaces by name or file, with the latency tables that a budget names."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from hytas._engine import Budget, SearchSpace, builtin_space_text, builtin_spaces
from hytas.errors import InputError

PAPER_SPACE = "hytas"
"""The space of an architecture that names none, as in the tables of HyTAS."""


def space_of(architecture: Mapping[str, Any]) -> str:
    """The name of the space that an architecture is of."""
    return str(architecture.get("space", PAPER_SPACE))


def mlp_width(embed_dim: int, mlp_ratio: float) -> int:
    """Hidden units of an MLP, floor(embed_dim * mlp_ratio), as the engine counts them.

    The ratio is the decimal that it is written as: 100 * 2.3 are 230 units, which floats make 229.
    """
    return int(embed_dim * Fraction(str(mlp_ratio)))


def parse_budget(budget: str | Sequence[str]) -> Budget:
    """A budget from one or more texts; an empty sequence is no bound.

    Raises:
        InputError: a text is not a budget; the message gives the rule and an example.
    """
    try:
        return Budget.parse(budget)
    except ValueError as error:
        raise InputError(str(error)) from None


def open_space(
    space: str = PAPER_SPACE,
    budget: str | Sequence[str] | Budget = (),
    variables: Mapping[str, int] | None = None,
    *,
    offered: Mapping[str, int] | None = None,
) -> tuple[SearchSpace, Budget]:
    """The space that has every cost its budget names.

    Args:
        space: the name of a built-in space, or the path of a space file (docs/engine.md): TOML
            when its name ends in .toml, else JSON.
        budget: as `parse_budget` takes it, or already parsed. The table of a bound such as
            `3ms-latency@table.json` is read from that path.
        variables: values of the space's variables; those left out have the file's defaults.
        offered: values of variables that the space need not have, such as those of a scene.

    Raises:
        InputError: an unknown space, a file that is not a space or a table, a wrong variable.
        OSError: a file cannot be read.
    """
    bounds = budget if isinstance(budget, Budget) else parse_budget(budget)
    is_file = is_space_file(space)
    try:
        text = _read_space(space) if is_file else builtin_space_text(space)
        values = dict(variables or {})
        if offered:
            known = SearchSpace.parse(text, {}).variables
            values = {name: value for name, value in offered.items() if name in known} | values
        opened = SearchSpace.parse(text, values)
        for table in bounds.tables:
            opened = opened.with_table(table, _read(table, "latency table"))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{space}: {error}" if is_file else str(error)) from None
    return opened, bounds


def is_space_file(space: str) -> bool:
    """Whether a space is named by a path; the name of a built-in space is none."""
    if space in builtin_spaces():
        return False
    return space.endswith((".json", ".toml")) or Path(space).is_file()


def with_files(
    space: str, budget: str | None, rename: Callable[[str], str]
) -> tuple[str, str | None]:
    """Space and budget, the path of a space file and those of latency tables renamed."""
    if is_space_file(space):
        space = rename(space)
    if budget is None:
        return space, None
    terms = (term.strip().partition("@") for term in budget.split(","))
    return space, ",".join(cost + at + (rename(path) if at else "") for cost, at, path in terms)


def file_digests(space: str, budget: str | None) -> dict[str, str]:
    """Path -> sha256, in hex, of the space file and of the latency tables of a budget.

    Raises:
        InputError: the budget is none.
        OSError: a file cannot be read.
    """
    tables = parse_budget(budget).tables if budget else []
    paths = [*([space] if is_space_file(space) else []), *tables]
    return {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths}


def _read(path: str, what: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{what}: no such file: {path}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a text file: it is not UTF-8") from None


def _read_space(path: str) -> str:
    """The file's text; TOML becomes JSON here, so that the engine checks both alike."""
    text = _read(path, "space")
    if not path.endswith(".toml"):
        return text
    import tomllib

    try:
        return json.dumps(tomllib.loads(text, parse_float=_exact), allow_nan=False, default=_refuse)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"space file: not valid TOML: {error}") from None
    except RecursionError:
        raise ValueError("space file: not valid TOML: its values are nested too deeply") from None


def _exact(number: str) -> float:
    """A float that JSON writes as the same decimal."""
    value = float(number)
    if not Decimal(number).is_finite() or Decimal(repr(value)) != Decimal(number):
        raise ValueError(f"space file: number {number}: must be finite, of at most 15 digits")
    return value


def _refuse(value: Any) -> None:
    raise ValueError(f"space file: {value}: a space has no dates or times")
