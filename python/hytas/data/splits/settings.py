"""The settings of a split: its kind, and the numbers of training and validation pixels."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

from hytas.errors import InputError
from hytas.settings import plain_numbers

KINDS = ("auto", "fixed", "random", "blocks", "folds", "polygons", "groups")
MOST_BLOCK = 2**31 - 1  # pixels of a side; larger than any scene
Class = TypeVar("Class", bound=type[Any])


@dataclass(frozen=True)
class SplitSettings:
    """How to split the labelled pixels of any scene; each field is an option of the commands.

    The kinds are:

    - "fixed" uses the scene's own maps. It draws training pixels from the training map if their
      number is given.
    - "random" draws pixels of each class and tests on the others. It draws at most half of a class;
      for published counts, all but one pixel if necessary.
    - "blocks" deals square blocks to two sides with a guard band, so that no training patch
      contains a test pixel.
    - "folds" deals blocks to `folds` parts; part number `fold` tests.
    - "polygons" deals the polygons that label the scene, each as a whole, with the same guard band.
    - "groups", of a table of spectra, deals its groups to `folds` parts, of which the first tests.
      In a table "folds" does the same, and part number `fold` tests.
    - "auto" is "fixed" if the scene has maps, and "random" for a scene that is known by name, as in
      its published split. It is "polygons" if these label the scene and leave two classes on both
      sides. Otherwise it is "blocks". If these leave a class on one side only, and
      blocks of half or a quarter of the side do not, it uses the smaller ones. If no size
      separates the scene, it is "random".

    Attributes:
        kind: one of the above.
        train_per_class: pixels of each class, validation pixels included; None means the published
            number for a named scene, else 50.
        train_fraction: share of the labelled pixels of each class (for "fixed", of the training
            map), instead of a number.
        validation_fraction: share of the training pixels of each class, at least one pixel if the
            class has 3 or more; 0 means none. For blocks and folds these pixels lie at one end of
            the class, so that they resemble ground without training pixels.
        block: side of the blocks, in pixels.
        folds: number of parts that blocks are dealt to.
        fold: the part that tests, from 0.

    Raises:
        InputError: the kind is unknown, a number is out of its range, or two exclude each other.
    """

    kind: str = "auto"
    train_per_class: int | None = None
    train_fraction: float | None = None
    validation_fraction: float = 0.2
    block: int = 16
    folds: int = 5
    fold: int = 0

    def __post_init__(self) -> None:
        plain_numbers(self)
        if self.kind not in KINDS:
            raise InputError("split", self.kind, f"is not one of {', '.join(KINDS)}")
        if self.train_per_class is not None and self.train_per_class < 1:
            raise InputError("train_per_class", self.train_per_class, "must be at least 1")
        if self.train_fraction is not None and not 0 < self.train_fraction < 1:
            raise InputError("train_fraction", self.train_fraction, "must be in (0, 1)")
        if self.train_fraction is not None and self.train_per_class is not None:
            raise InputError(
                "train_fraction",
                self.train_fraction,
                f"and `train_per_class` {self.train_per_class} exclude each other",
            )
        if not 0 <= self.validation_fraction < 1:
            raise InputError("validation_fraction", self.validation_fraction, "must be in [0, 1)")
        if self.block < 1:
            raise InputError("block", self.block, "must be at least 1")
        if self.block > MOST_BLOCK:
            raise InputError("block", self.block, f"must be at most {MOST_BLOCK}")
        if self.folds < 2:
            raise InputError("folds", self.folds, "must be at least 2")
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
OPTIONS = {
    "split" if item.name == "kind" else item.name: item.name for item in fields(SplitSettings)
}


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
