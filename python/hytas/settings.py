"""Settings: fields of a dataclass that carry their rule, help, panel and example.

A setting is declared once, with `setting`. The options of the commands, the keys of TOML files, the
parameters of `HSIClassifier`, `config.json` and the tables of the docs are made from it.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from hytas.errors import InputError

Listed = str | Sequence[str] | None
"""One text, several, or none."""
SCALE_BY = ("training", "scene")
"""What scales a scene: statistics of the training pixels, or first of all its own."""
TARGETS = ("int8", "fp16", "w8")
"""Short names of the export formats `onnx-NAME` that a race can score finalists in."""
LARGEST_COUNT = 10**9
"""Largest number of anything that is counted; a larger number is a typing error."""
Rule = Callable[[str, Any], Any]
"""(name, value) -> the value in its plain form; raises `InputError`."""
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@dataclass(frozen=True)
class OneOf:
    """The rule of a setting with a few names as values.

    Attributes:
        others: checks another value, which a plug-in may bring; None where none can.
    """

    names: tuple[str, ...]
    others: Callable[[str], object] | None = None

    def __call__(self, name: str, value: Any) -> Any:
        if value not in self.names and self.others is not None:
            self.others(value)
        elif value not in self.names:
            raise InputError(name, value, f"must be one of {', '.join(self.names)}")
        return value


def that(fits: Callable[[Any], bool], rule: str) -> Rule:
    """Return the rule that `fits` checks and `rule` words: "must be odd"."""

    def check(name: str, value: Any) -> Any:
        if not fits(value):
            raise InputError(name, value, rule)
        return value

    return check


def checked_count(name: str, value: int) -> int:
    """Check a number of things: 1 to `LARGEST_COUNT`."""
    if not 1 <= value <= LARGEST_COUNT:
        raise InputError(
            name, value, f"must be {'1 or more' if value < 1 else f'at most {LARGEST_COUNT}'}"
        )
    return value


@dataclass(frozen=True)
class FieldFacts:
    """What the metadata of a field say.

    Attributes:
        help: what it means, for all users. Other settings are named in backticks: `labels`.
        panel: the section of the help that lists its option.
        most_used: whether the help lists it first.
        rule: what a valid value is, beyond its type; also brings a value into its plain form.
        example: a value, for the docs.
        usual: in words, what holds where the default is None.
        metavar: what the help calls its value.
        name: its name for users, if the field has another one.
        only: "scenes" or "images", if only these have it.
        option: whether the commands have an option for it.
        estimator: whether it is also a parameter of `HSIClassifier`.
    """

    help: str
    panel: str = ""
    most_used: bool = False
    rule: Rule | None = None
    example: str | None = None
    usual: str | None = None
    metavar: str | None = None
    name: str | None = None
    only: str = ""
    option: bool = True
    estimator: bool = False


def setting(default: Any, text: str, panel: str = "", **facts: Any) -> Any:
    """Return a dataclass field that is a setting.

    Args:
        default: its default; None also for a value that is decided later.
        text: its help.
        facts: the other attributes of `Facts`.
    """
    return field(default=default, metadata={"setting": FieldFacts(text, panel, **facts)})


@dataclass(frozen=True)
class Setting:
    """A declared setting.

    Attributes:
        name: for users.
        kinds: types of its values, or of the parts of a sequence.
        optional: whether it may be None.
        many: whether it takes a sequence of values.
    """

    name: str
    facts: FieldFacts
    default: Any
    kinds: tuple[type, ...]
    optional: bool
    many: bool

    @property
    def words(self) -> str:
        """Return its types in words: "a whole number"."""
        kinds = [kind for kind in self.kinds if not (kind is int and float in self.kinds)]
        return " or ".join(_WORDS.get(kind, f"a {kind.__name__}") for kind in kinds)

    def fits(self, value: Any) -> bool:
        """Return whether a value, or a part of a sequence, has one of the types."""
        kinds = (*self.kinds, int) if float in self.kinds else self.kinds
        return isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds)

    def checked(self, value: Any) -> Any:
        """Return a value in its plain form."""
        if getattr(value, "ndim", None) == 0:
            value = value.item()  # of numpy; JSON needs Python's numbers
        if value is None and self.optional:
            return None
        if str in self.kinds and Path not in self.kinds:
            value = _with_texts(value)
        parts = value if self.many and isinstance(value, list | tuple) else (value,)
        for part in parts:
            if not (self.fits(part) or (self.many and part is None)):
                rule = f"must be {self.words}{', or None' if self.optional else ''}"
                raise InputError(self.name, part, rule)
        return value if self.facts.rule is None else self.facts.rule(self.name, value)


def _with_texts(value: Any) -> Any:
    """Return a value with texts in the place of paths."""
    if isinstance(value, list | tuple):
        return type(value)(map(_with_texts, value))
    return str(value) if isinstance(value, Path) else value


_OF_CLASS: dict[type, Mapping[str, Setting]] = {}


def settings_of(owner: Any) -> Mapping[str, Setting]:
    """Return field -> setting for the fields of a dataclass that are settings."""
    if owner not in _OF_CLASS:
        hints = get_type_hints(owner)
        _OF_CLASS[owner] = {
            one.name: _declared(one.name, one.metadata["setting"], one.default, hints[one.name])
            for one in fields(owner)
            if "setting" in one.metadata
        }
    return _OF_CLASS[owner]


def _declared(name: str, facts: FieldFacts, default: Any, hint: Any) -> Setting:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    many = any(get_origin(part) is Sequence for part in parts)
    kinds = [get_args(part)[0] if get_origin(part) is Sequence else part for part in parts]
    plain = tuple(dict.fromkeys(get_origin(kind) or kind for kind in kinds))
    optional = type(None) in plain or default in (None, MISSING)
    plain = tuple(kind for kind in plain if kind is not type(None))
    return Setting(facts.name or name, facts, default, plain, optional, many)


def check_settings(owner: Any, within: str | None = None) -> None:
    """Bring all settings of a frozen dataclass into their plain forms.

    Args:
        within: the argument that holds these settings: "recipe" makes `recipe='mixup=3': must ...`.
    """
    for name, declared in settings_of(type(owner)).items():
        try:
            object.__setattr__(owner, name, declared.checked(getattr(owner, name)))
        except InputError as error:
            if within is None:
                raise
            value = f"{error.argument}={error.value}"
            raise InputError(within, value, error.rule, error.hint) from None


def as_tuple(value: Listed) -> tuple[str, ...]:
    """Return one text, several or none as a tuple."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def plain_if_one(value: Listed) -> str | tuple[str, ...] | None:
    """Return several texts as a tuple, one as it is, and None for none."""
    texts = as_tuple(value)
    return texts if len(texts) > 1 else (texts[0] if texts else None)


def setting_text(value: Any) -> str:
    """Write the value of a setting for the user: "not set", "yes", "a.tif, b.tif", "0.2"."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "not set", True: "yes", False: "no"}[value]
    return f"{value:.12g}" if isinstance(value, float) else str(value)
