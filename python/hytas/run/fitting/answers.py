"""What networks say of pixels that they were not trained on, as `calibration.json` holds it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hytas.run.fitting.smoothing import Judged
from hytas.run.prepared import Pixels
from hytas.train import LabelledPixels


@dataclass(frozen=True, eq=False)
class Answers:
    """What a network says of n pixels that it was not trained on.

    Attributes:
        logits: (n, C).
        judged: probabilities of some of them, with and without smoothing; None until the
            temperature is known, which takes the logits of all networks.
    """

    logits: NDArray[np.float32]
    judged: Judged | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        judged = None
        if self.judged is not None:
            judged = {name: each.tolist() for name, each in vars(self.judged).items()}
        return {"logits": self.logits.tolist(), "judged": judged}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], classes: int) -> Self:
        """Rebuild from the JSON form; C is `classes`."""
        logits = np.array(values["logits"], np.float32).reshape(-1, classes)
        if (judged := values["judged"]) is None:
            return cls(logits, None)
        return cls(
            logits,
            Judged(
                np.array(judged["targets"], np.int64),
                np.array(judged["raw"], np.float32).reshape(-1, classes),
                np.array(judged["smoothed"], np.float32).reshape(-1, classes),
            ),
        )


@dataclass(frozen=True, eq=False)
class Fold:
    """Held-out pixels, their true classes, and what the network of a fold says of them.

    `after` is what it says once it went on with unlabelled pixels; None if it did not.
    """

    pixels: Pixels
    targets: NDArray[np.int64]
    before: Answers
    after: Answers | None

    @property
    def said(self) -> list[Answers]:
        """What it says before, and after if it went on."""
        return [self.before, *([] if self.after is None else [self.after])]

    @property
    def is_judged(self) -> bool:
        """Whether all of its answers are judged."""
        return all(one.judged is not None for one in self.said)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        own = {name: getattr(self, name).tolist() for name in ("pixels", "targets")}
        after = None if self.after is None else self.after.to_dict()
        return {**own, **self.before.to_dict(), "after": after}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], classes: int) -> Self:
        """Rebuild from the JSON form; C is `classes`."""
        after = values.get("after")  # older files have none
        return cls(
            np.array(values["pixels"], np.int64),
            np.array(values["targets"], np.int64),
            Answers.from_dict(values, classes),
            None if after is None else Answers.from_dict(after, classes),
        )

    def is_of(self, held_out: LabelledPixels) -> bool:
        """Return whether these are whole answers for the held-out pixels."""
        return (
            np.array_equal(self.pixels, held_out.pixels)
            and np.array_equal(self.targets, held_out.targets)
            and all(_whole(one, (len(held_out), held_out.classes)) for one in self.said)
        )


def digest(folds: Sequence[dict[str, Any]]) -> str:
    """Return the checksum of folds in their JSON form."""
    return hashlib.sha256(json.dumps(folds, sort_keys=True).encode()).hexdigest()


def _whole(said: Answers, shape: tuple[int, int]) -> bool:
    judged = Judged.none(shape[1]) if said.judged is None else said.judged
    return (
        said.logits.shape == shape
        and len(judged.targets) == len(judged.raw) == len(judged.smoothed)
        and all(
            bool(np.isfinite(values).all()) for values in (said.logits, judged.raw, judged.smoothed)
        )
    )
