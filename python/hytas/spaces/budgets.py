"""Budgets, and the files that a search space and a budget name: space files, latency tables."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from hytas._engine import Budget, builtin_spaces
from hytas.errors import InputError, check_unicode


def parse_budget(budget: str | Sequence[str]) -> Budget:
    """Return the budget of one or more texts; an empty sequence bounds nothing.

    Raises:
        InputError: a text is not a budget; the message gives the rule and an example.
    """
    for text in [budget] if isinstance(budget, str) else budget:
        check_unicode("budget", text)
    try:
        return Budget.parse(budget)
    except ValueError as error:
        raise _refusal(str(error)) from None


def _refusal(text: str) -> InputError:
    """Return the error of the engine's "budget 'TEXT': RULE; HINT", or of another text."""
    parts = re.fullmatch(r"budget '(.*?)': (.*); (write .*)", text, re.DOTALL)
    return InputError("budget", *parts.groups()) if parts else InputError(text)


def is_space_file(space: str) -> bool:
    """Tell whether a space is named by a path, not by the name of a built-in space."""
    if space in builtin_spaces():
        return False
    return space.endswith((".json", ".toml")) or Path(space).is_file()


def with_files(
    space: str, budget: str | None, rename: Callable[[str], str]
) -> tuple[str, str | None]:
    """Return space and budget with the paths of space file and latency tables renamed."""
    if is_space_file(space):
        space = rename(space)
    if budget is None:
        return space, None
    terms = (term.strip().partition("@") for term in budget.split(","))
    return space, ",".join(cost + at + (rename(path) if at else "") for cost, at, path in terms)


def file_digests(space: str, budget: str | None, *further: str | None) -> dict[str, str]:
    """Return path -> sha256, in hex, of the space file, the latency tables of a budget, and
    further files.

    Raises:
        InputError: the text is not a budget.
        OSError: a file cannot be read.
    """
    tables = parse_budget(budget).tables if budget else []
    named = [path for path in further if path is not None]
    paths = [*([space] if is_space_file(space) else []), *tables, *named]
    return {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths}


def read_text(path: str, what: str) -> str:
    """Return the text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(what, rule=f"no such file: {path}") from None
    except UnicodeDecodeError:
        raise InputError(path, rule="is not a text file: it is not UTF-8") from None
