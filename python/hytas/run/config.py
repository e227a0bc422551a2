"""All that decides the result of a run, as one value."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from hytas._engine import strategies
from hytas.data import (
    Scene,
    check_patch_side,
    check_seed,
    check_split_settings,
    load_scene,
)
from hytas.errors import InputError
from hytas.proxies import parse_proxies
from hytas.settings import plain_numbers
from hytas.train import Recipe

PREDICTOR = "predictor"
"""The strategy "evolution" of the engine, and a regressor that proposes finalists."""
PARETO = "nsga2"
"""The engine's strategy for a front."""
MOST = 10**9
"""Of whatever a run counts; more is a typing error."""


@dataclass(frozen=True)
class RunConfig:
    """What a run was asked to do; `config.json` in its folder.

    Attributes:
        budget: canonical text; None for a run that trains a given architecture.
        data: the scene's file, or "synthetic".
        labels: the file of its labels, where they have one of their own.
        cube_key: variable of the cube, where a file holds several.
        labels_key: variable or variables of the labels, likewise.
        data_dir: folder of the files of a scene known by name.
        space: search space.
        proxy: proxies; the first is the fitness, all are recorded.
        strategy: the engine's selection; "predictor" is "evolution", and lets a regressor fitted on
            the finalists trained so far propose the others.
        learn_from: folders of earlier runs that the predictor is fitted on too.
        pareto: axes of the front to find, "score" and names of costs; None finds the best score.
        population: architectures a generation.
        generations: generations.
        finalists: architectures that race at the end of the search; 1 takes the proxy's best, None
            is `usual_finalists`, or 1 where the split has no validation pixels to rank on.
        usual_finalists: so many, where they are not asked for.
        race_steps: optimiser steps of the race's first round.
        race_epochs: passes over the training pixels of its first round, instead.
        seed: of the split, the search, the proxies and the retraining.
        split: auto, fixed, random, blocks or folds.
        train_per_class: training pixels a class of a random split; None takes 50, or the published
            number of a scene known by name.
        train_fraction: share of each class to train on, instead.
        block: side of the blocks of a spatially disjoint split, in pixels.
        folds: number of folds of blocks.
        fold: the fold that is tested on.
        validation_fraction: share of the training pixels that the race ranks on; where these are
            few, as many others in turn.
        retrain_on: "all" retrains the winner on training and validation pixels, for all its steps;
            "train" keeps the validation pixels apart, and the best epoch by them.
        seeds: retrainings of the winner, each with a seed of its own, to report the spread; the
            first one ships.
        patch_size: side of the patch.
        band_group: neighbouring bands in a token.
        bands: bands to start from, as "1-103,110-148"; None for all.
        nodata: the value that stands for no data; None is the file's own, if it names one.
        unlabelled: the label that marks unlabelled pixels, as 0 does.
        scaling: standard or minmax.
        recipe: of the retraining.
    """

    budget: str | None = None
    data: str = "synthetic"
    labels: str | None = None
    cube_key: str | None = None
    labels_key: str | None = None
    data_dir: str | None = None
    space: str = "hytas-wide"
    proxy: str = "dss"
    strategy: str = "evolution"
    learn_from: tuple[str, ...] = ()
    pareto: str | None = None
    population: int = 50
    generations: int = 20
    finalists: int | None = None
    usual_finalists: int = 16
    race_steps: int = 100
    race_epochs: int | None = None
    seed: int = 0
    split: str = "auto"
    train_per_class: int | None = None
    train_fraction: float | None = None
    block: int = 16
    folds: int = 5
    fold: int = 0
    validation_fraction: float = 0.2
    retrain_on: str = "all"
    seeds: int = 1
    patch_size: int = 7
    band_group: int = 3
    bands: str | None = None
    nodata: float | None = None
    unlabelled: int | None = None
    scaling: str = "standard"
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        plain_numbers(self)
        for name in (
            "population",
            "generations",
            "finalists",
            "usual_finalists",
            "race_steps",
            "race_epochs",
            "seeds",
        ):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST:
                rule = "1 or more" if value < 1 else f"at most {MOST}"
                raise InputError(f"{name.replace('_', ' ')} {value}: must be {rule}")
        check_seed(self.seed)
        check_seed(self.seed + self.seeds - 1)
        if self.band_group < 1 or self.band_group % 2 == 0:
            raise InputError(f"band group {self.band_group}: must be odd and 1 or more")
        check_patch_side(self.patch_size)
        check_split_settings(
            self.split,
            self.train_per_class,
            self.train_fraction,
            self.validation_fraction,
            (self.block, self.folds, self.fold),
        )
        if self.nodata is not None and not math.isfinite(self.nodata):
            raise InputError(f"nodata {self.nodata:g}: must be a finite number or None")
        parse_proxies(self.proxy)
        known = (*strategies(), PREDICTOR)
        if self.strategy not in known:
            raise InputError(f"strategy {self.strategy!r}: must be one of {', '.join(known)}")
        if self.retrain_on not in ("all", "train"):
            raise InputError(f"retrain on {self.retrain_on!r}: must be all or train")
        if self.learn_from and not self.predicts:
            raise InputError(
                f"learn from {self.learn_from[0]}: is for the strategy predictor, "
                f"not {self.strategy}"
            )
        for folder in self.learn_from:
            if self.learn_from.count(folder) > 1:
                raise InputError(f"learn from {folder}: is named twice")
        if self.predicts and self.finalists == 1:
            raise InputError(
                "finalists 1: strategy predictor learns from finalists; must be 2 or more, and 4 "
                "for it to propose one without earlier runs"
            )
        axes = [] if self.pareto is None else [name.strip() for name in self.pareto.split(",")]
        if self.pareto is not None and (axes.count("score") != 1 or len(axes) < 2):
            raise InputError(f"pareto {self.pareto}: must name score and a cost, as params,score")
        for name in axes:
            if axes.count(name) > 1:
                raise InputError(f"pareto {self.pareto}: names {name} twice")
        if axes and self.strategy not in (usual := ("evolution", PARETO, PREDICTOR)):
            raise InputError(
                f"pareto {self.pareto}: selects by {PARETO}; strategy {self.strategy} must be one "
                f"of {', '.join(usual)}"
            )

    @property
    def minimised(self) -> tuple[str, ...]:
        """The costs of the Pareto front."""
        axes = [] if self.pareto is None else self.pareto.split(",")
        return tuple(name.strip() for name in axes if name.strip() != "score")

    @property
    def predicts(self) -> bool:
        """Whether a regressor proposes finalists."""
        return self.strategy == PREDICTOR

    @property
    def selection(self) -> str:
        """The engine's strategy."""
        if self.minimised:
            return PARETO
        return "evolution" if self.predicts else self.strategy

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Rebuild from the JSON form; what it does not say is as by default.

        Raises:
            InputError: a field is unknown, or the recipe is missing.
        """
        try:
            given = {**values, "recipe": Recipe(**values["recipe"])}
            given["learn_from"] = tuple(values.get("learn_from", ()))
            return cls(**given)
        except (KeyError, TypeError) as error:
            raise InputError(f"config.json: not a configuration of this hytas ({error})") from None

    def load_scene(self) -> Scene:
        """The scene that `data` and its companions name.

        Raises:
            InputError: there is none, or its file is not a scene.
        """
        return load_scene(
            self.data,
            self.labels,
            cube_key=self.cube_key,
            labels_key=self.labels_key,
            data_dir=self.data_dir,
            bands=self.bands,
            nodata=self.nodata,
            unlabelled=self.unlabelled,
        )

    def with_epochs(self, epochs: int | None) -> "RunConfig":
        """This configuration with the epochs of its recipe given; None takes the recipe's steps."""
        return replace(self, recipe=self.recipe.with_epochs(epochs))

    def with_length_of(self, other: "RunConfig") -> "RunConfig":
        """This configuration with the steps and epochs of another one's retraining."""
        names = ("steps", "most_epochs", "epochs")
        length = {name: getattr(other.recipe, name) for name in names}
        return replace(self, recipe=replace(self.recipe, **length))

    def differences(self, other: "RunConfig", ignore: tuple[str, ...]) -> list[str]:
        """Lines such as "budget 2M-params (there 500K-params)", for the fields that differ."""
        lines = []
        for name in (item.name for item in fields(self) if item.name not in ignore):
            mine, theirs = getattr(self, name), getattr(other, name)
            if name == "recipe":
                lines += [f"recipe {line}" for line in _differences(mine, theirs)]
            elif mine != theirs:
                lines.append(f"{name.replace('_', ' ')} {mine} (there {theirs})")
        return lines


def _differences(mine: Recipe, theirs: Recipe) -> list[str]:
    pairs = (
        (item.name, getattr(mine, item.name), getattr(theirs, item.name)) for item in fields(mine)
    )
    return [f"{name} {own} (there {other})" for name, own, other in pairs if own != other]
