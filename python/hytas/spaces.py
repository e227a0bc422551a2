"""Search spaces by name or file, with the latency tables that a budget names."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hytas._engine import Budget, SearchSpace, builtin_spaces
from hytas.errors import InputError


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
    space: str = "hytas",
    budget: str | Sequence[str] | Budget = (),
    variables: Mapping[str, int] | None = None,
) -> tuple[SearchSpace, Budget]:
    """The space that has every cost its budget names.

    Args:
        space: the name of a built-in space, or the path of a space file (JSON, docs/engine.md).
        budget: as `parse_budget` takes it, or already parsed. The table of a bound such as
            `3ms-latency@table.json` is read from that path.
        variables: values of the space's variables; those left out have the file's defaults.

    Raises:
        InputError: an unknown space, a file that is not a space or a table, a wrong variable.
        OSError: a file cannot be read.
    """
    bounds = budget if isinstance(budget, Budget) else parse_budget(budget)
    known = space in builtin_spaces()
    is_file = not known and (space.endswith(".json") or Path(space).is_file())
    try:
        if is_file:
            opened = SearchSpace.parse(_read(space), variables or {})
        else:
            opened = SearchSpace.builtin(space, variables or {})
        for table in bounds.tables:
            opened = opened.with_table(table, _read(table))
    except UnicodeDecodeError:
        raise InputError(f"{space}: is not a JSON file: it is not UTF-8 text") from None
    except ValueError as error:
        raise InputError(f"{space}: {error}" if is_file else str(error)) from None
    return opened, bounds


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
