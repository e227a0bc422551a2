"""Budgets: bounds on the costs of an architecture."""

import re
from collections.abc import Sequence

from hytas._engine import Budget
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
