"""The settings of a split: its kind, and the numbers of training and validation pixels."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from hytas.errors import InputError
from hytas.settings import OneOf, check_settings, setting, settings_of, that

KINDS = ("auto", "fixed", "random", "blocks", "folds", "polygons", "groups")
MOST_BLOCK = 2**31 - 1  # pixels of a side; larger than any scene
Class = TypeVar("Class", bound=type[Any])
_AT_LEAST_1 = that(lambda number: number >= 1, "must be at least 1")


def _block(name: str, value: int) -> int:
    _AT_LEAST_1(name, value)
    return int(that(lambda side: side <= MOST_BLOCK, f"must be at most {MOST_BLOCK}")(name, value))


@dataclass(frozen=True)
class SplitSettings:
    """Settings of a split of labelled pixels; each field is an option of the commands.

    The kinds are:

    - "fixed" uses the scene's own maps. It draws training pixels from the training map if their
      number is given.
    - "random" draws pixels of each class and tests on the others. It draws at most half of a class;
      for published counts, all but one pixel if necessary.
    - "blocks" deals square blocks to two sides with a guard band, so that no training patch
      contains a test pixel.
    - "folds" deals blocks to `folds` parts; part number `fold` tests.
    - "polygons" deals the polygons that label the scene, each as a whole, with the same guard band.
    - "groups", of a table of spectra, deals its groups to `folds` parts, of which `fold` tests.
      In a table "folds" does the same, and part number `fold` tests.
    - "auto" is "fixed" if the scene has maps, and "random" for a scene that is known by name, as in
      its published split. It is "polygons" if these label the scene and leave two classes on both
      sides. Otherwise it is "blocks". If these leave a class on one side only, and
      blocks of half or a quarter of the side do not, it uses the smaller ones. If no size
      separates the scene, it is "random".

    Raises:
        InputError: the kind is unknown, a number is out of its range, or two exclude each other.
    """

    kind: str = setting(
        KINDS[0],
        "How to choose training pixels: the file's own maps (fixed), a draw from each class "
        "(random), or whole blocks or polygons with a guard band (blocks, folds, polygons). auto "
        "means fixed if the file has maps, random for a scene that is known by name, polygons if "
        "these are the labels, else blocks.",
        "Split",
        most_used=True,
        name="split",
        rule=OneOf(KINDS),
    )
    train_per_class: int | None = setting(
        None,
        "Training pixels per class, validation pixels included. A random split takes at most half "
        "of a class.",
        "Split",
        usual="the published number for a scene that is known by name, else 50; all pixels of "
        "fixed maps",
        rule=_AT_LEAST_1,
    )
    train_fraction: float | None = setting(
        None,
        "Share of each class to train on, instead of a number. A random split takes at most half "
        "of a class.",
        "Split",
        rule=that(lambda share: 0 < share < 1, "must be in (0, 1)"),
    )
    validation_fraction: float = setting(
        0.2,
        "Share of the training pixels of each class that is held out for validation; 0 means none. "
        "If these are few, the race validates in folds.",
        "Split",
        rule=that(lambda share: 0 <= share < 1, "must be in [0, 1)"),
        estimator=True,
    )
    block: int = setting(16, "Side of a block, in pixels.", "Split", rule=_block)
    folds: int = setting(
        5, "Folds of blocks.", "Split", rule=that(lambda folds: folds >= 2, "must be at least 2")
    )
    fold: int = setting(0, "The fold to test on, from 0.", "Split")

    def __post_init__(self) -> None:
        check_settings(self)
        if self.train_fraction is not None and self.train_per_class is not None:
            rule = f"and `train_per_class` {self.train_per_class} exclude each other"
            raise InputError("train_fraction", self.train_fraction, rule)
        if self.fold != 0 and self.kind != "folds":
            raise InputError("fold", self.fold, f"is only for the split 'folds', not {self.kind!r}")
        if not 0 <= self.fold < self.folds:
            raise InputError("fold", self.fold, f"must be 0 to {self.folds - 1}")

    def options(self) -> dict[str, Any]:
        """Return the settings by the names of their options; `kind` has the name `split`."""
        return {option: getattr(self, name) for option, name in OPTIONS.items()}

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings for values of `options()`; missing ones have their defaults.

        Raises:
            InputError: as for the settings.
        """
        return cls(**{OPTIONS[option]: value for option, value in values.items()})


# Name of an option -> field. For users the kind has the name `split`.
OPTIONS = {declared.name: field for field, declared in settings_of(SplitSettings).items()}


def takes_split_options(settings: Class) -> Class:
    """Let a dataclass with a field `split` accept the fields of the split as well.

    `C(split="blocks", block=8)` means `C(split=SplitSettings("blocks", block=8))`. With
    `dataclasses.replace` a single field changes only that field; a kind resets all others.
    """
    plain = settings.__init__

    @functools.wraps(plain)
    def init(self: Any, *positional: Any, **values: Any) -> None:
        given = {name: values.pop(name) for name in OPTIONS if name in values}
        split = given.pop("split", None)
        if isinstance(split, SplitSettings):
            values["split"] = replace(split, **given)
        elif split is not None or given:
            kind = {} if split is None else {"split": split}
            values["split"] = SplitSettings.from_options({**kind, **given})
        plain(self, *positional, **values)

    settings.__init__ = init
    return settings
