"""Tables of learning curves: all that a race may ask for on one task, and the test, kept apart."""

import base64
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from hytas.errors import InputError
from hytas.files import atomic_write, parse_json
from hytas.race import Racer, RaceTask
from hytas.race.plan import Trial
from hytas.race.results import TrialKey
from hytas.search import Evaluation, Training
from hytas.train import Recipe

FORMAT = 2
TABLE, TEST = ".curves.gz", ".test.json"
"""What the names of the two files of a task end with."""


class Snapshot(NamedTuple):
    """A training as it was after some steps.

    Attributes:
        before: steps from which on the learning rate falls; None if it stays at its peak.
    """

    training: Training
    before: int | None


@dataclass(frozen=True)
class TableTask(RaceTask):
    """The task of a race whose trainings are in a table.

    Attributes:
        own_recipes: number of a network -> names of the recipes that it was trained by.
    """

    own_recipes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def recipes_for(self, architecture: Mapping[str, Any]) -> list[str]:
        """Return the recipes that a network was trained by."""
        return list(self.own_recipes.get(json.dumps(architecture, sort_keys=True), ()))


@dataclass(frozen=True)
class CurveTable:
    """Learning curves on one task, without a label of a test pixel.

    Attributes:
        name, sensor: of the task.
        facts: how it was made, JSON-ready.
        held_out: number of held-out pixels of each fold.
        trained: number of training pixels of the first fold.
        candidates: all that the search scored, the best first.
        networks: number of a candidate -> names of the recipes that it was trained by.
        linear: networks in closed form.
        recipes: name -> recipe of the final training.
        snapshots: of each network, recipe and fold.
        decided: key of a racer -> "members" and "smoothing" by held-out pixels.
    """

    name: str
    sensor: str
    facts: Mapping[str, Any]
    held_out: Sequence[int]
    trained: int
    candidates: Sequence[Evaluation]
    networks: Mapping[int, Sequence[str]]
    linear: Sequence[Evaluation]
    recipes: Mapping[str, Recipe]
    snapshots: Sequence[Snapshot]
    decided: Mapping[TrialKey, Mapping[str, Any]]

    @property
    def trained_candidates(self) -> list[Evaluation]:
        """The candidates that were trained, the best by the search first."""
        return [one for one in self.candidates if one.id in self.networks]

    @cached_property
    def task(self) -> TableTask:
        """The task of the race."""
        folds = [(np.arange(self.trained), np.arange(held)) for held in self.held_out]
        own = {
            json.dumps(one.architecture, sort_keys=True): self.networks[one.id]
            for one in self.trained_candidates
        }
        facts = self.facts
        return TableTask(
            None,  # type: ignore[arg-type] # nothing is trained
            folds[: facts["folds"]],
            self.recipes,
            facts["seed"],
            facts["ranking"],
            further=folds[facts["folds"] :],
            linear=self.linear,
            finalists=facts["finalists"],
            steps=facts["steps"],
            own_recipes=own,
        )

    @cached_property
    def _by_racer(self) -> dict[tuple[TrialKey, int], list[Snapshot]]:
        rows: dict[tuple[TrialKey, int], list[Snapshot]] = {}
        for one in self.snapshots:
            key = (one.training.id, one.training.recipe), one.training.fold
            rows.setdefault(key, []).append(one)
        return rows

    def training(self, trial: Trial) -> Training:
        """Return the training of a trial, or that of the nearest length with such a schedule."""
        rows, rung = self._by_racer[trial.racer.key, trial.fold], trial.rung
        falls = rung.before is not None
        rows = [one for one in rows if (one.before is not None) == falls] or rows
        exact = [
            one for one in rows if (one.training.steps, one.before) == (rung.steps, rung.before)
        ]
        near = min(exact or rows, key=lambda one: abs(math.log(one.training.steps / rung.steps)))
        return replace(near.training, steps=rung.steps)

    def save(self, path: Path) -> None:
        """Write the table to a file."""
        values = {
            **{name: getattr(self, name) for name in _PLAIN},
            "format": FORMAT,
            "candidates": [_packed(one) for one in self.candidates],
            "networks": {str(number): list(names) for number, names in self.networks.items()},
            "linear": [_packed(one) for one in self.linear],
            "recipes": {name: one.to_dict() for name, one in self.recipes.items()},
            "snapshots": [[one.before, _packed(one.training)] for one in self.snapshots],
            "decided": {name_of(key): dict(one) for key, one in self.decided.items()},
        }
        content = json.dumps(values, allow_nan=False).encode()
        with atomic_write(path) as file:
            file.write_bytes(gzip.compress(content, mtime=0))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a table.

        Raises:
            InputError: the file is none of this version.
        """
        try:
            values = parse_json(gzip.decompress(Path(path).read_bytes()), path)
            if values.pop("format") != FORMAT:
                raise ValueError
            return cls(
                **{name: values[name] for name in _PLAIN},
                candidates=[_record(Evaluation, one) for one in values["candidates"]],
                networks={int(number): one for number, one in values["networks"].items()},
                linear=[_record(Evaluation, one) for one in values["linear"]],
                recipes={name: Recipe(**one) for name, one in values["recipes"].items()},
                snapshots=[Snapshot(_record(Training, one), at) for at, one in values["snapshots"]],
                decided={key_of_name(name): one for name, one in values["decided"].items()},
            )
        except (OSError, EOFError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(path, rule="is no table of learning curves of this hytas") from None


_PLAIN = ("name", "sensor", "facts", "held_out", "trained")
CurveRecord = TypeVar("CurveRecord", Evaluation, Training)


class FinalFigures(NamedTuple):
    """What networks and methods reach on test pixels; no plan reads it.

    Attributes:
        racers: key of a racer -> figures of its final training: OA and AA "raw", "smoothed" and
            "shipped", as held-out pixels decide.
        methods: name of a reference method -> OA and AA "raw" and "smoothed".
    """

    racers: Mapping[TrialKey, Mapping[str, float]]
    methods: Mapping[str, Mapping[str, float]]

    def regret(self, racer: Racer) -> float:
        """Return by how much the map of a racer is below that of the best one."""
        best = max(one["shipped OA"] for one in self.racers.values())
        return best - self.racers[racer.key]["shipped OA"]

    def save(self, path: Path) -> None:
        """Write the figures as JSON."""
        racers = {name_of(key): dict(one) for key, one in self.racers.items()}
        with atomic_write(path) as file:
            file.write_text(json.dumps({"racers": racers, "methods": self.methods}, indent=1))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the figures.

        Raises:
            InputError: the file is none of them.
        """
        try:
            values = parse_json(Path(path).read_bytes(), path)
            racers = {key_of_name(name): one for name, one in values["racers"].items()}
            return cls(racers, values["methods"])
        except (OSError, AttributeError, KeyError, TypeError) as error:
            raise InputError(path, rule=f"has no figures of a test ({error})") from None


def name_of(key: TrialKey) -> str:
    """Return the name of a racer in a file."""
    return f"{key[0]} {key[1]}"


def key_of_name(name: str) -> TrialKey:
    """Return the key of a racer by its name in a file."""
    number, _, recipe = name.partition(" ")
    return int(number), recipe


def _packed(record: Evaluation | Training) -> dict[str, Any]:
    """Return a record for JSON: bytes as base 64, and no NaN."""
    values = asdict(record)
    for name, value in values.items():
        if isinstance(value, bytes):
            values[name] = base64.b64encode(value).decode()
        elif name in ("scores", "figures"):
            values[name] = {k: v if math.isfinite(v) else None for k, v in value.items()}
    return values


def _record(kind: type[CurveRecord], values: dict[str, Any]) -> CurveRecord:
    """Return the record whose `_packed` form this is."""
    for each in fields(kind):
        value = values[each.name]
        if each.type is bytes:
            values[each.name] = base64.b64decode(value)
        elif each.name in ("scores", "figures"):
            values[each.name] = {k: math.nan if v is None else v for k, v in value.items()}
    return kind(**values)
