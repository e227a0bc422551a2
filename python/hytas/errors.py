"""The exception for bad input, and functions that write an exception on one line."""

import unicodedata

_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class InputError(ValueError):
    """Bad input from the user; its one-line message names the argument, its value and the rule.

    The command line prints it as `error: <message>` and exits with status 2, without a traceback.
    Control characters, which names from files may hold, are escaped for the terminal.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(escaped(str(message)))


def check_unicode(argument: str, text: str) -> None:
    """Refuse text with lone surrogates, which bytes of a command line become that are not UTF-8.

    Raises:
        InputError: naming the argument.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{argument} {text!r}: must be Unicode, without lone surrogates") from None


def is_out_of_memory(failure: str) -> bool:
    """Return whether `one_line` of an error reports that Python, torch or a GPU lacks memory.

    Also whether a GPU lets no second process use it.
    """
    memory = ("MemoryError", "out of memory", "ALLOC_FAILED", "can't allocate memory")
    return any(words in failure for words in (*memory, "busy or unavailable"))


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
