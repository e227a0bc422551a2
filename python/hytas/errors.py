"""The one exception that stands for bad input, and any exception in one line."""

import unicodedata

_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class InputError(ValueError):
    """Bad input from the user; its one-line message names the argument, its value and the rule.

    The command line prints it as `error: <message>` and exits with status 2, without a traceback.
    What names of files hold of controls is escaped, for a message may end on a terminal.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(escaped(str(message)))


def is_out_of_memory(failure: str) -> bool:
    """Whether `one_line` of an error says that memory was short: Python's, torch's or a GPU's."""
    words = ("MemoryError", "out of memory", "ALLOC_FAILED", "can't allocate memory")
    return any(word in failure for word in words)


def one_line(error: BaseException) -> str:
    """An exception as a reason: its kind and the beginning of what it says; of bad input, that."""
    text = " ".join(str(error).split())
    return (text if isinstance(error, InputError) else f"{type(error).__name__}: {text}")[:300]


def escaped(text: str) -> str:
    """`text` as one line that moves no cursor: what a terminal obeys is written as an escape.

    These are controls, ends of lines, marks that turn the direction of writing, and half
    characters. Names in files may hold any of them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign.encode("unicode_escape").decode() if unicodedata.category(sign) in _CONTROLS else sign
        for sign in text
    )
