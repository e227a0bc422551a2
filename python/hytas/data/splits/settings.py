"""What is asked of a split: its kind, and how many pixels train and validate."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

from hytas.errors import InputError
from hytas.settings import plain_numbers

KINDS = ("auto", "fixed", "random", "blocks", "folds", "polygons")
MOST_BLOCK = 2**31 - 1  # pixels of a side: beyond any scene
Class = TypeVar("Class", bound=type[Any])


@dataclass(frozen=True)
class SplitSettings:
    """How to split the labelled pixels of any scene; the command line has an option a field.

    Attributes:
        kind: "fixed" takes the scene's own maps, or draws the training pixels asked for from its
            training map; "random" draws pixels of each class, at most half of it (all but one, if
            need be, for published counts), and tests on the rest; "blocks" deals square blocks to
            two sides and leaves a guard band, so that no training patch contains a test pixel;
            "folds" does so with `folds` parts, of which number `fold` tests; "polygons" deals the
            polygons that label the scene, each as a whole, with the same guard band; "auto" is
            "fixed" where the scene has maps, "random" for a scene known by name, whose published
            split that is, "polygons" where these label the scene and part it, and else "blocks":
            half or a quarter as large where blocks of the size asked for leave a class on one side
            only and smaller ones do not, and "random" where no size parts the scene.
        train_per_class: pixels a class, validation pixels included; None is what was published for
            a named scene, else 50.
        train_fraction: pixels a class, as a fraction of its labelled pixels (of "fixed", of those
            in the training map); instead of the above.
        validation_fraction: of the training pixels of each class, at least one where it has 3 or
            more; 0 takes none. Of blocks and folds they are those at one end of the class, so
            that what is chosen on them is chosen for ground that was not trained on, too.
        block: side of the blocks, in pixels.
        folds: parts that the blocks are dealt to.
        fold: the part that tests, from 0.

    Raises:
        InputError: an unknown kind, a number out of its range, or two that exclude each other.
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
            raise InputError(f"split: {self.kind!r} is not one of {', '.join(KINDS)}")
        if self.train_per_class is not None and self.train_per_class < 1:
            raise InputError(f"train per class: {self.train_per_class} must be at least 1")
        if self.train_fraction is not None and not 0 < self.train_fraction < 1:
            raise InputError(f"train fraction: {self.train_fraction} must be in (0, 1)")
        if self.train_fraction is not None and self.train_per_class is not None:
            raise InputError(
                f"train fraction: {self.train_fraction} and {self.train_per_class} per class "
                "exclude each other"
            )
        if not 0 <= self.validation_fraction < 1:
            raise InputError(f"validation fraction: {self.validation_fraction} must be in [0, 1)")
        if self.block < 1:
            raise InputError(f"block: {self.block} must be at least 1")
        if self.block > MOST_BLOCK:
            raise InputError(f"block: {self.block} must be at most {MOST_BLOCK}")
        if self.folds < 2:
            raise InputError(f"folds: {self.folds} must be at least 2")
        if self.fold != 0 and self.kind != "folds":
            raise InputError(f"fold {self.fold}: is for the split folds, not {self.kind}")
        if not 0 <= self.fold < self.folds:
            raise InputError(f"fold: {self.fold} must be 0 to {self.folds - 1}")

    def options(self) -> dict[str, Any]:
        """Return the settings by the names of their options, where `kind` is called `split`."""
        return {option: getattr(self, name) for option, name in OPTIONS.items()}

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings of `options()`; those left out have their defaults.

        Raises:
            InputError: as for the settings.
        """
        return cls(**{OPTIONS[option]: value for option, value in values.items()})


# The name of an option -> the field. `split` alone says which kind, wherever a user meets it.
OPTIONS = {
    "split" if item.name == "kind" else item.name: item.name for item in fields(SplitSettings)
}


def takes_split_options(settings: Class) -> Class:
    """Let a dataclass with a field `split` take its parts by name as well.

    `C(split="blocks", block=8)` is `C(split=SplitSettings("blocks", block=8))`. With
    `dataclasses.replace`, a part alone changes that part, and a kind begins a split afresh.
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
