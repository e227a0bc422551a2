"""All that decides the result of a run, as one value."""

import math
from collections.abc import Mapping
from dataclasses import InitVar, asdict, dataclass, field, fields, replace
from typing import Any

from hytas._engine import strategies
from hytas.data import (
    Scene,
    SplitSettings,
    check_patch_side,
    check_seed,
    load_scene,
    takes_split_options,
)
from hytas.deploy.smoothing import METHODS
from hytas.errors import InputError
from hytas.proxies import parse_proxies
from hytas.settings import plain_numbers
from hytas.spaces import DEFAULT_SPACE
from hytas.train import Recipe

FRONT_STRATEGIES = tuple(name for name, facts in strategies().items() if facts["several_scores"])
"""The engine's strategies for a front; `pareto` takes the first, unless another is asked for."""
MOST = 10**9
"""Of whatever a run counts; more is a typing error."""


@takes_split_options
@dataclass(frozen=True)
class RunConfig:
    """What a run was asked to do; `config.json` in its folder.

    The parts of `split` may be given by themselves: `RunConfig(split="blocks", block=8)`. With
    `dataclasses.replace` a part alone changes that part, and a kind begins a split afresh.

    Attributes:
        budget: canonical text; None for a run that trains a given architecture.
        data: the scene's file, or "synthetic".
        labels: the file of its labels, where they have one of their own.
        cube_key: variable of the cube, where a file holds several.
        labels_key: variable or variables of the labels, likewise.
        data_dir: folder of the files of a scene known by name.
        space: search space.
        proxy: proxies; the first is the fitness, all are recorded.
        strategy: how the engine selects, a name of its `strategies()`.
        pareto: axes of the front to find, "score" and names of costs; None finds the best score.
        population: architectures a generation.
        generations: generations.
        finalists: architectures that race at the end of the search; 1 takes the proxy's best, None
            is `usual_finalists`, or 1 where the split has no validation pixels to rank on.
        usual_finalists: so many, where they are not asked for.
        race_steps: optimiser steps of the race's first rung.
        race_epochs: passes over the training pixels in its first rung, instead.
        seed: of the split, the search, the proxies and the final training.
        split: which pixels train, validate and test. The race ranks on the validation pixels;
            where these are few, on as many others in turn.
        final_training_on: "all" trains the winner on training and validation pixels, for all its
            steps; "train" keeps the validation pixels apart, and the best epoch by them.
        seeds: final trainings, each with a seed of its own, to report the spread; the first one
            ships.
        patch_size: side of the patch.
        band_group: neighbouring bands in a token.
        bands: bands to start from, as "1-103,110-148"; None for all.
        nodata: the value that stands for no data; None is the file's own, if it names one.
        unlabelled: the label that marks unlabelled pixels, as 0 does.
        zero_is_a_class: whether 0 labels a class.
        scaling: standard or minmax.
        recipe: of the race and the final training.
        smooth: whether maps are smoothed: "guided", "none", or "auto", by validation pixels.
        retrain_on: old name of `final_training_on`.
    """

    budget: str | None = None
    data: str = "synthetic"
    labels: str | None = None
    cube_key: str | None = None
    labels_key: str | None = None
    data_dir: str | None = None
    space: str = DEFAULT_SPACE
    proxy: str = "dss"
    strategy: str = "evolution"
    pareto: str | None = None
    population: int = 50
    generations: int = 20
    finalists: int | None = None
    usual_finalists: int = 16
    race_steps: int = 100
    race_epochs: int | None = None
    seed: int = 0
    split: SplitSettings = field(default_factory=SplitSettings)
    final_training_on: str = "all"
    seeds: int = 1
    patch_size: int = 7
    band_group: int = 3
    bands: str | None = None
    nodata: float | None = None
    unlabelled: int | None = None
    zero_is_a_class: bool = False
    scaling: str = "standard"
    recipe: Recipe = field(default_factory=Recipe)
    smooth: str = "auto"
    retrain_on: InitVar[str | None] = None

    def __post_init__(self, retrain_on: str | None) -> None:
        if retrain_on is not None:
            object.__setattr__(self, "final_training_on", retrain_on)
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
        if self.nodata is not None and not math.isfinite(self.nodata):
            raise InputError(f"nodata {self.nodata:g}: must be a finite number or None")
        parse_proxies(self.proxy)
        if self.strategy not in strategies():
            raise InputError(
                f"strategy {self.strategy!r}: must be one of {', '.join(strategies())}"
            )
        if self.final_training_on not in ("all", "train"):
            raise InputError(f"final training on {self.final_training_on!r}: must be all or train")
        if self.smooth not in ("auto", *METHODS):
            raise InputError(f"smooth {self.smooth!r}: must be auto, {' or '.join(METHODS)}")
        axes = [] if self.pareto is None else [name.strip() for name in self.pareto.split(",")]
        if self.pareto is not None and (axes.count("score") != 1 or len(axes) < 2):
            raise InputError(f"pareto {self.pareto}: must name score and a cost, as params,score")
        for name in axes:
            if axes.count(name) > 1:
                raise InputError(f"pareto {self.pareto}: names {name} twice")
        usual = (RunConfig.strategy, *FRONT_STRATEGIES)
        if axes and self.strategy not in usual:
            raise InputError(
                f"pareto {self.pareto}: selects by {', '.join(FRONT_STRATEGIES)}; strategy "
                f"{self.strategy} must be one of {', '.join(usual)}"
            )

    @property
    def minimised(self) -> tuple[str, ...]:
        """The costs of the Pareto front."""
        axes = [] if self.pareto is None else self.pareto.split(",")
        return tuple(name.strip() for name in axes if name.strip() != "score")

    @property
    def selection(self) -> str:
        """The engine's strategy."""
        if self.minimised and self.strategy not in FRONT_STRATEGIES:
            return FRONT_STRATEGIES[0]
        return self.strategy

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Rebuild from the JSON form; what it does not say is as by default.

        Raises:
            InputError: a field is unknown, the recipe is missing, or the run had the strategy
                "predictor", which is no longer there.
        """
        if values.get("strategy") == "predictor":
            raise InputError(
                "config.json: strategy predictor: hytas no longer has it; choose another folder "
                "and another strategy"
            )
        try:
            given = {**values, "recipe": Recipe(**values["recipe"])}
            given.pop("learn_from", None)  # of that strategy alone, and empty for all others
            if isinstance(split := values.get("split"), Mapping):
                given["split"] = SplitSettings(**split)  # older runs have its parts side by side
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
            zero_is_a_class=self.zero_is_a_class,
        )

    def with_epochs(self, epochs: int | None) -> "RunConfig":
        """This configuration with the epochs of its recipe given; None takes the recipe's steps."""
        return replace(self, recipe=self.recipe.with_epochs(epochs))

    def with_length_of(self, other: "RunConfig") -> "RunConfig":
        """This configuration with the steps and epochs of another one's recipe."""
        names = ("steps", "most_epochs", "epochs")
        length = {name: getattr(other.recipe, name) for name in names}
        return replace(self, recipe=replace(self.recipe, **length))

    def differences(self, other: "RunConfig", ignore: tuple[str, ...]) -> list[str]:
        """Lines such as "budget 2M-params (there 500K-params)", for the fields that differ."""
        lines = []
        for name in (item.name for item in fields(self) if item.name not in ignore):
            mine, theirs = getattr(self, name), getattr(other, name)
            if name == "recipe":
                lines += [f"recipe {line}" for line in _differences(asdict(mine), asdict(theirs))]
            elif name == "split":
                found = _differences(mine.options(), theirs.options())
                lines += [line.replace("_", " ") for line in found]
            elif mine != theirs:
                lines.append(f"{name.replace('_', ' ')} {mine} (there {theirs})")
        return lines


def _differences(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} {own} (there {theirs[name]})" for name, own in mine.items() if own != theirs[name]
    ]
