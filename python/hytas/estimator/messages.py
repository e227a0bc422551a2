"""Messages that name arguments of `HSIClassifier`, not options of the command line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hytas.errors import InputError

# A piece of a message -> what to write in its place. The first that matches is used.
_PHRASES = (
    (re.compile(r"say --unlabelled \S+"), "set them to 0 in labels"),
    (re.compile(r"say --zero-is-a-class"), "add 1 to all labels"),
    (re.compile(r"use --force"), "use force=True"),
    (re.compile(r"give --supernet FILE.*"), "choose another proxy"),
    (re.compile(r"`hytas (?:search|train)[^`]*`"), "`fit`"),
    (re.compile(r"`hytas export[^`]*`"), "`export`"),
)
_OPTION = re.compile(r"--([a-z][a-z-]*)")
# What a message calls the wrong value, at its beginning -> the argument.
_ARGUMENTS = {
    "patch size": "patch_size",
    "band group": "band_group",
    "validation fraction": "validation_fraction",
    "train fraction": "train_fraction",
    "data": "cube",
    "scene": "cube",
    "patches": "cube",
    "provider": "device",
    "supernet": "proxy",
    "out": "work_dir",
}
_SUBJECT = re.compile(rf"^({'|'.join(_ARGUMENTS)})(?=[: ])")
# Rules that a table of rows breaks, when scikit-learn cuts a cube into such rows.
_OF_ROWS = ("patch size", "smaller than", "single class", "at least 2 classes", "no pixel")
_ROWS = (
    "; a cube cannot be cut into rows: for cross_val_score or GridSearchCV give "
    "hytas.BlockSplit.samples(cube, labels) and cv=hytas.BlockSplit()"
)


def python_message(text: str) -> str:
    """Return a message with the names of Python arguments in place of command-line options."""
    for pattern, words in _PHRASES:
        text = pattern.sub(words, text)
    text = _OPTION.sub(lambda found: _argument(found[1].replace("-", "_")), text)
    return _SUBJECT.sub(lambda found: _ARGUMENTS[found[1]], text)


def _argument(option: str) -> str:
    return _ARGUMENTS.get(option, option)


@contextmanager
def python_arguments(*, rows: bool = False) -> Iterator[None]:
    """Translate the messages of `InputError` with `python_message`.

    Args:
        rows: also say that a cube cannot be cut into rows, if the error looks like that.
    """
    try:
        yield
    except InputError as error:
        if error.rule:
            raise _in_python(error, rows) from None
        text = python_message(str(error))
        if rows and any(words in str(error) for words in _OF_ROWS):
            text += _ROWS
        if text == str(error):
            raise
        raise type(error)(text) from None


def _in_python(error: InputError, rows: bool) -> InputError:
    """Return an error with the estimator's names of arguments."""
    error = error.renamed({name.replace(" ", "_"): own for name, own in _ARGUMENTS.items()})
    if rows and any(words in error.rule for words in _OF_ROWS):
        error = error.hinted(_ROWS.removeprefix("; "))
    return error
