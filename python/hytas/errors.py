"""The exception for bad input, a warning, and functions that raise or write exceptions."""

import importlib
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Self

_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_UNSET: Any = object()
# In a rule or a hint, a name in backticks is an argument: `labels_key`.
_ARGUMENT = re.compile(r"`([a-z][a-z0-9_]*)`")


class InputError(ValueError):
    """Bad input from the user: an argument, its value, the rule that it breaks, and what to do.

    The text of the exception names arguments as Python does: `budget='2M': must ...`. The command
    line renders the same fields with its options (`render`), prints them as `error: <message>` and
    exits with status 2, without a traceback. Control characters, which names from files may hold,
    are escaped for the terminal.

    Attributes:
        argument: the argument's name in Python, such as "labels_key"; or, if nothing else is
            given, the whole message.
        value: what was given; None if the message does not show it.
        rule: what a valid value is, or what is wrong with this one.
        hint: what to do, or "". Rule and hint name other arguments in backticks:
            "name one with `cube_key`".
        code, case: of the finding (`hytas.data.findings`) that refuses the input; "" for other
            rules.
    """

    code = case = ""

    def __init__(
        self, argument: object = "", value: Any = _UNSET, rule: str = "", hint: str = ""
    ) -> None:
        self.argument, self.rule, self.hint = str(argument), rule, hint
        self.value = None if value is _UNSET else value
        self._has_value = value is not _UNSET
        super().__init__(escaped(self._text(_python_subject, str)))

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the error with other names for the arguments that `names` has."""

        def name(match: re.Match[str]) -> str:
            return f"`{names.get(match[1], match[1])}`"

        if not self.rule:
            return self
        argument = names.get(self.argument, self.argument)
        value = self.value if self._has_value else _UNSET
        return type(self)(
            argument, value, _ARGUMENT.sub(name, self.rule), _ARGUMENT.sub(name, self.hint)
        )

    def hinted(self, more: str) -> Self:
        """Return the error with one more hint."""
        value = self.value if self._has_value else _UNSET
        hint = "; ".join(part for part in (self.hint, more) if part)
        error = type(self)(self.argument, value, self.rule, hint)
        error.code, error.case = self.code, self.case
        return error

    def render(self, option: Callable[[str], str]) -> str:
        """Return the message with `option(name)` in place of each argument's name."""

        def subject(argument: str, value: Any, has_value: bool) -> str:
            return f"{option(argument)} {value}" if has_value else option(argument)

        return escaped(self._text(subject, option))

    def _text(self, subject: Callable[[str, Any, bool], str], name: Callable[[str], str]) -> str:
        if not self.rule:
            return self.argument
        said = "; ".join(part for part in (self.rule, self.hint) if part)
        said = arguments_named(said, name)
        if not self.argument:
            return said
        return f"{subject(self.argument, self.value, self._has_value)}: {said}"


def arguments_named(text: str, name: Callable[[str], str]) -> str:
    """Return a text with `name(argument)` for each argument in backticks."""
    return _ARGUMENT.sub(lambda match: name(match[1]), text)


def _python_subject(argument: str, value: Any, has_value: bool) -> str:
    if not has_value:
        return argument
    return f"{argument}={value if isinstance(value, (int, float)) else repr(str(value))}"


def reason_of(error: BaseException) -> str:
    """Return what an error says inside a longer message: argument and value in plain words."""
    return error.render(str) if isinstance(error, InputError) else str(error)


def check_unicode(argument: str, text: str) -> None:
    """Refuse text with lone surrogates, which bytes of a command line become that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{argument} {text!r}: must be Unicode, without lone surrogates") from None


class SlowerWarning(RuntimeWarning):
    """Work goes on, and takes longer than it might; a run says it once."""


SLOWER: ContextVar[list[str] | None] = ContextVar("reasons of slower work", default=None)
"""In a worker, a list for the driver, which warns."""


def warn_of_slower_work(reason: str) -> None:
    """Give a `SlowerWarning`, in the process that a user sees."""
    if (reasons := SLOWER.get()) is None:
        warnings.warn(reason, SlowerWarning, stacklevel=3)
    else:
        reasons.append(reason)


def library(module: str, argument: str, purpose: str, package: str = "") -> Any:
    """Return a module of another package, imported now.

    Args:
        module: its name, such as "rasterio.warp".
        argument: of the user's, which needs the package, for the message.
        purpose: of the package, such as "a GeoTIFF".
        package: its name for pip, if it differs.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = package or module.partition(".")[0]
        raise InputError(
            argument, rule=f"{purpose} needs the package {package}", hint=f"pip install {package}"
        ) from None


def is_out_of_memory(failure: str) -> bool:
    """Return whether `one_line` of an error reports that Python, torch or a GPU lacks memory.

    Also whether a GPU lets no second process use it.
    """
    memory = ("MemoryError", "out of memory", "ALLOC_FAILED", "can't allocate memory")
    others = ("busy or unavailable", "could not create a primitive")  # the latter by oneDNN
    return any(words in failure for words in (*memory, *others))


def one_line(error: BaseException) -> str:
    """Return an exception on one line: its class and message, or only the message of bad input."""
    text = " ".join(str(error).split())
    return (text if isinstance(error, InputError) else f"{type(error).__name__}: {text}")[:300]


def escaped(text: str) -> str:
    """Return `text` on one line, with escapes for all characters that control a terminal.

    These are control characters, ends of lines, marks for the direction of writing, and lone
    surrogates. Names in files may hold any of them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign.encode("unicode_escape").decode() if unicodedata.category(sign) in _CONTROLS else sign
        for sign in text
    )
