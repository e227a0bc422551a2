"""The configuration of a run: all settings that decide its result."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hytas._engine import strategies
from hytas.data import (
    LabelledData,
    SplitSettings,
    check_patch_side,
    check_seed,
    holds_images,
    load_images,
    load_scenes,
    takes_split_options,
)
from hytas.data.labels.names import class_names_text, read_class_names
from hytas.data.labels.options import parse_unlabelled
from hytas.data.several import Files
from hytas.deploy.smoothing import METHODS
from hytas.errors import InputError
from hytas.plugins import load as load_plugins
from hytas.proxies import base_proxies, parse_proxies
from hytas.proxies.no_pass import NEEDS_SUPERNET
from hytas.race.rankings import find_ranking, usual_ranking
from hytas.run.scene_files import FIELDS, paired
from hytas.search.own import check_strategy
from hytas.settings import SCALE_BY, Listed, listed, plain_if_one, plain_numbers
from hytas.spaces import DEFAULT_SPACE
from hytas.supernet import SupernetSettings
from hytas.train import (
    USUAL_IMAGE_PRESETS,
    USUAL_PRESETS,
    Recipe,
    read_presets,
    recipes_of,
)

FRONT_STRATEGIES = tuple(name for name, facts in strategies().items() if facts["several_scores"])
"""The engine's strategies for a front; `pareto` uses the first, unless another is asked for."""
SUPERNET_STRATEGY = "supernet"
TUNED = ("all", "small")
"""Which weights of a model change: all; or biases, normalisations and the read-out alone."""
SELF_TRAINING = ("auto", "none")
OF_SCENES = (
    *(
        "labels",
        "test_data",
        "cube_key",
        "axes",
        "labels_key",
        "label_column",
        "group_column",
        "class_field",
        "labels_crs",
        "data_dir",
    ),
    "class_names",
    *("resample", "scale_by", "nodata", "unlabelled", "zero_is_a_class", "patch_size"),
    *("band_group", "self_training"),
)
"""Settings that images do not have."""
MOST = 10**9
"""Largest number of anything that a run counts; a larger number is a typing error."""


@dataclass(frozen=True)
class Effort:
    """Lengths of a run that one word stands for.

    Attributes:
        population, generations: of the search.
        finalists: of the race, for scenes.
        image_finalists: for images, whose trainings take longer.
        race_steps: optimiser steps of the race's first rung.
        steps: optimiser steps of the final training.
        about: the time that it takes, for people.
    """

    population: int
    generations: int
    finalists: int
    image_finalists: int
    race_steps: int
    steps: int
    about: str


EFFORTS = {
    "quick": Effort(20, 10, 6, 3, 30, 300, "2 minutes"),
    "normal": Effort(50, 20, 24, 8, 60, 1500, "5 to 15 minutes"),
    "thorough": Effort(50, 40, 48, 16, 60, 3000, "an hour"),
}
"""Name -> lengths; the times are those of scenes like Indian Pines on two CPU cores."""
OF_EFFORT: Any = None
"""Default of a setting that `effort` decides."""


@takes_split_options
@dataclass(frozen=True)
class RunConfig:
    """The settings of a run; `config.json` in its folder.

    The fields of `split` can be given directly: `RunConfig(split="blocks", block=8)`. With
    `dataclasses.replace` a single field changes only that field; a kind resets all others.

    Attributes:
        budget: canonical text; None for a run that trains a given architecture.
        data: the scene's file, or "synthetic"; several scenes are a sequence of files.
        labels: the file of its labels, if it is another file; of several scenes one for each.
        test_data: files of scenes that are never trained on, and are reported apart.
        test_labels: the files of their labels, one for each.
        resample: whether other scenes are taken to the bands of the first one.
        scale_by: "training" scales by the training pixels; "scene" scales every scene by its own
            pixels first, without a look at labels.
        cube_key: variable of the cube, if a file holds several.
        axes: order of the axes of the cube's array, such as "band,y,x"; None for what files say.
        labels_key: variable or variables of the labels, if a file holds several.
        label_column, group_column: columns of a table of spectra (`hytas.data.spectra`).
        class_field: field of the classes, if the labels are polygons or points.
        labels_crs: coordinate system of these, if their file names none.
        class_names: names of classes by their number in the file: a text such as "1=corn,2=soy", a
            CSV file, or a mapping. The configuration holds the text.
        data_dir: folder with the files of a scene that is known by name.
        space: search space.
        proxy: proxies; the first is the fitness, all are recorded.
        strategy: how the engine selects, a name of its `strategies()`; or "supernet", which
            trains a supernet in the kind that wins a short race (`run/supernets/strategy.py`).
        pareto: axes of the front to find, "score" and names of costs; None finds the best score.
        effort: name in `EFFORTS`, which decides the settings of length that are not given:
            population, generations, usual_finalists, race_steps, and the steps of the recipe.
        population: candidates in a generation.
        generations: number of generations.
        finalists: candidates that race at the end of the search. 1 takes the proxy's first choice.
            None means `usual_finalists`, or 1 if the split has no validation pixels.
        usual_finalists: number of finalists if `finalists` is None.
        race_steps: optimiser steps of the race's first rung.
        race_epochs: epochs of the race's first rung, instead of steps.
        seed: of the split, the search, the proxies and the final training.
        split: which pixels train, validate and test. The race ranks on the validation pixels. If
            these are few, it also ranks on other training pixels, in folds. Where test pixels lie
            in blocks or polygons of their own, the pixels of each fold do so, too.
        final_training_on: "all" trains the winner on training and validation pixels, for all its
            steps. "train" trains on training pixels, and validation pixels choose the best epoch.
        seeds: number of final trainings with different seeds, to report the spread. The first one
            is exported.
        resize: side to bring images to, in pixels; None leaves them as they are.
        skip_unreadable: leave out image files that cannot be read.
        patch_size: side of the patch of a scene.
        band_group: neighbouring bands in a token.
        bands: bands to start from, such as "1-103,110-148"; None for all.
        nodata: the no-data value; None uses the one that the file names.
        unlabelled: another label of unlabelled pixels, beside 0; or their colour in a picture, such
            as "#ffffff".
        zero_is_a_class: whether 0 is a class.
        scaling: standard or minmax.
        recipe: of the race and the final training, or of the supernet.
        presets: names of `hytas.train.PRESETS`, with commas between them. They change the recipe
            where it was not changed; a setting among them, such as "mixup=0.2", holds in all. The
            race finds out which of them to train by; without a race it is the first. Without a
            name they are the usual ones for a scene, or for images.
        supernet: file of a trained supernet, for the proxy "inherited".
        supernet_settings: how the run trains a supernet; None where it trains none.
        start: folder of a run whose trained model this one begins with (`hytas.run.start`).
        tune: which of its weights change: "all" or "small".
        plugins: files of Python, or names of installed plug-ins (`hytas.plugins`), that bring
            networks, proxies, rankings, strategies or readers; the configuration also holds the
            digest of each.
        ranking: what the race ranks finalists by, a name of `hytas.race.RANKINGS`; "auto" chooses
            by the kind of validation pixels.
        smooth: whether maps are smoothed: "guided", "none", or "auto", by validation pixels.
        self_training: whether the model goes on with pixels of the scene that have no label
            (`hytas.run.final.self_training`): "none", or "auto", by validation pixels.
    """

    budget: str | None = None
    data: str | Sequence[str] = "synthetic"
    labels: str | Sequence[str] | None = None
    test_data: Sequence[str] = ()
    test_labels: Sequence[str] = ()
    resample: bool = False
    scale_by: str = SCALE_BY[0]
    cube_key: str | None = None
    axes: str | None = None
    labels_key: str | None = None
    label_column: str | None = None
    group_column: str | None = None
    class_field: str | None = None
    labels_crs: str | None = None
    class_names: str | Path | Mapping[int | str, str] | None = None
    data_dir: str | None = None
    space: str = DEFAULT_SPACE
    proxy: str = "dss"
    strategy: str = "evolution"
    pareto: str | None = None
    effort: str = "normal"
    population: int = OF_EFFORT
    generations: int = OF_EFFORT
    finalists: int | None = None
    usual_finalists: int = OF_EFFORT
    race_steps: int = OF_EFFORT
    race_epochs: int | None = None
    seed: int = 0
    split: SplitSettings = field(default_factory=SplitSettings)
    final_training_on: str = "all"
    seeds: int = 1
    resize: int | None = None
    skip_unreadable: bool = False
    patch_size: int = 7
    band_group: int = 3
    bands: str | None = None
    nodata: float | None = None
    unlabelled: int | float | str | None = None
    zero_is_a_class: bool = False
    scaling: str = "standard"
    recipe: Recipe = OF_EFFORT
    supernet: str | None = None
    supernet_settings: SupernetSettings | None = None
    presets: str = ""
    smooth: str = "auto"
    self_training: str = SELF_TRAINING[0]
    start: str | None = None
    tune: str = TUNED[0]
    plugins: Sequence[str] = ()
    ranking: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "plugins", list(load_plugins(self.plugins)))
        self._fill_lengths()
        plain_numbers(self)
        if self.budget is not None and not isinstance(self.budget, str):
            raise InputError(f"budget {self.budget!r}: must be a text, such as '2M-params'")
        self._check_files()
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
        if self.unlabelled is not None:
            object.__setattr__(self, "unlabelled", parse_unlabelled(self.unlabelled).given)
        if self.class_names is not None:
            text = class_names_text(read_class_names(self.class_names))
            object.__setattr__(self, "class_names", text)
        self._check_supernet()
        names, settings = read_presets(self.presets)
        if not names:
            presets = ",".join([usual_presets(self.data), *settings])
            object.__setattr__(self, "presets", presets)
        if self.tune not in TUNED:
            raise InputError(f"tune {self.tune!r}: must be one of {', '.join(TUNED)}")
        if self.start is not None and self.recipe.whitened:
            raise InputError(
                "recipe whitened yes: a training that begins with a model keeps its embedding; "
                "must be no"
            )
        check_strategy(self.strategy, [*strategies(), SUPERNET_STRATEGY])
        if self.ranking != "auto":
            find_ranking(self.ranking)
        if self.final_training_on not in ("all", "train"):
            raise InputError(f"final training on {self.final_training_on!r}: must be all or train")
        if self.smooth not in ("auto", *METHODS):
            raise InputError(f"smooth {self.smooth!r}: must be auto, {' or '.join(METHODS)}")
        if self.self_training not in SELF_TRAINING:
            raise InputError(
                f"self training {self.self_training!r}: must be {' or '.join(SELF_TRAINING)}"
            )
        self._check_pareto()

    def _fill_lengths(self) -> None:
        """Give the settings of length that were left out the values of the effort."""
        if self.effort not in EFFORTS:
            rule = f"must be one of {', '.join(EFFORTS)}"
            raise InputError("effort", self.effort, rule)
        effort = EFFORTS[self.effort]
        images = self.usual_finalists is None and _are_images(self.data)
        values = {
            "population": effort.population,
            "generations": effort.generations,
            "usual_finalists": effort.image_finalists if images else effort.finalists,
            "race_steps": effort.race_steps,
            "recipe": Recipe(steps=effort.steps),
        }
        for name, value in values.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def _check_pareto(self) -> None:
        """Refuse axes that are no front, and a strategy that finds none."""
        axes = [] if self.pareto is None else [name.strip() for name in self.pareto.split(",")]
        if self.pareto is not None and (axes.count("score") != 1 or len(axes) < 2):
            raise InputError(f"pareto {self.pareto}: must name score and a cost: params,score")
        for name in axes:
            if axes.count(name) > 1:
                raise InputError(f"pareto {self.pareto}: names {name} twice")
        usual = (RunConfig.strategy, *FRONT_STRATEGIES)
        if axes and self.strategy not in usual:
            raise InputError(
                f"pareto {self.pareto}: needs the strategy "
                f"{' or '.join(FRONT_STRATEGIES)}; without "
                f"pareto, strategy {self.strategy} must be one of {', '.join(usual)}"
            )

    def _check_files(self) -> None:
        """Bring lists of files into one form, and refuse lists of other lengths."""
        for name in FIELDS:
            one = listed if name.startswith("test_") else plain_if_one
            object.__setattr__(self, name, one(getattr(self, name)))
        if not self.data:
            raise InputError("data: names no scene to learn from")
        if self.scale_by not in SCALE_BY:
            raise InputError(f"scale by {self.scale_by!r}: must be one of {', '.join(SCALE_BY)}")
        _ = self.files  # refuses lists of other lengths

    @property
    def files(self) -> tuple[list[Files], list[Files]]:
        """Return file and labels of each scene to learn from, and of each that only tests.

        Raises:
            InputError: there are more or fewer files of labels than scenes.
        """
        tested = paired(self.test_data, self.test_labels, "test-")
        return paired(self.data, self.labels), tested

    def _check_supernet(self) -> None:
        """Refuse a supernet that nothing scores with, and a score without one."""
        needed = any(spec.proxy.needs_supernet for spec in base_proxies(parse_proxies(self.proxy)))
        if needed and self.supernet is None and self.supernet_settings is None:
            raise InputError(NEEDS_SUPERNET)
        if self.supernet is not None and not needed:
            raise InputError(
                f"supernet {self.supernet}: only the proxy inherited scores with it, and the "
                f"proxy is {self.proxy}"
            )

    @property
    def minimised(self) -> tuple[str, ...]:
        """Return the costs of the Pareto front."""
        axes = [] if self.pareto is None else self.pareto.split(",")
        return tuple(name.strip() for name in axes if name.strip() != "score")

    def ranking_of(self, extrapolates: bool) -> str:
        """Return the name of what the race ranks by; validation pixels may `extrapolate`."""
        return usual_ranking(extrapolates) if self.ranking == "auto" else self.ranking

    @property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes that race: preset -> recipe."""
        return recipes_of(self.recipe, self.presets)

    @property
    def selection(self) -> str:
        """Return the engine's strategy."""
        if self.minimised and self.strategy not in FRONT_STRATEGIES:
            return FRONT_STRATEGIES[0]
        return RunConfig.strategy if self.strategy == SUPERNET_STRATEGY else self.strategy

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Rebuild from the JSON form; missing fields have their defaults.

        Raises:
            InputError: a field is unknown, or the recipe or the split is missing.
        """
        try:
            recipe, split = Recipe(**values["recipe"]), SplitSettings(**values["split"])
            given = {**values, "recipe": recipe, "split": split}
            if isinstance(settings := values.get("supernet_settings"), Mapping):
                given["supernet_settings"] = SupernetSettings(**settings)
            return cls(**given)
        except (KeyError, TypeError) as error:
            raise InputError(f"config.json: not a configuration of this hytas ({error})") from None

    def load_scene(self) -> LabelledData:
        """Read the scenes of `data` and `test_data` as one, or the images that `data` names.

        Raises:
            InputError: a file is missing or is not a scene, or scenes do not fit each other.
        """
        if (images := images_of(self.data)) is not None:
            self._check_images()
            return load_images(images, resize=self.resize, skip_unreadable=self.skip_unreadable)
        if self.resize is not None or self.skip_unreadable:
            name = "resize" if self.resize is not None else "skip unreadable"
            raise InputError(f"{name}: is for images, and {self.data} is a scene")
        return load_scenes(
            *self.files,
            resample=self.resample,
            scale_by=self.scale_by,
            cube_key=self.cube_key,
            axes=self.axes,
            labels_key=self.labels_key,
            data_dir=self.data_dir,
            bands=self.bands,
            nodata=self.nodata,
            unlabelled=self.unlabelled,
            zero_is_a_class=self.zero_is_a_class,
            class_field=self.class_field,
            labels_crs=self.labels_crs,
            class_names=self.class_names,
            label_column=self.label_column,
            group_column=self.group_column,
        )

    def _check_images(self) -> None:
        """Refuse settings that only scenes have."""
        for name in OF_SCENES:
            value = getattr(self, name)
            if value != getattr(RunConfig, name):
                title = name.replace("_", " ")
                shown = " ".join(listed(value)) if isinstance(value, list) else value
                raise InputError(
                    f"{title} {shown}: is for scenes, and {self.data} is a set of images"
                )

    def moved(self, **files: Sequence[str]) -> "RunConfig":
        """Return this configuration with other paths of its scenes; an empty list moves nothing.

        Raises:
            InputError: there are more or fewer files of labels than scenes.
        """
        given: dict[str, Any] = {name: paths for name, paths in files.items() if paths}
        if "data" in given:
            given["data_dir"] = None
        return replace(self, **given)

    @property
    def first_data(self) -> str:
        """Return the file or the name of the first scene."""
        return self.files[0][0][0]

    def with_epochs(self, epochs: int | None) -> "RunConfig":
        """Return this configuration with a number of epochs; None uses the recipe's steps."""
        return replace(self, recipe=self.recipe.with_epochs(epochs))

    def with_length_of(self, other: "RunConfig") -> "RunConfig":
        """Return this configuration with the steps and epochs of another recipe."""
        names = ("steps", "most_epochs", "epochs")
        length = {name: getattr(other.recipe, name) for name in names}
        return replace(self, recipe=replace(self.recipe, **length))

    def differences(self, other: "RunConfig", ignore: tuple[str, ...]) -> list[str]:
        """Return a text for each field that differs: "budget 2M-params (there 500K-params)"."""
        lines = []
        for name in (item.name for item in fields(self) if item.name not in ignore):
            mine, theirs = getattr(self, name), getattr(other, name)
            if name in ("recipe", "supernet_settings") and mine and theirs:
                title = name.removesuffix("_settings")
                found = _differences(asdict(mine), asdict(theirs))
                lines += [f"{title} {line.replace('_', ' ')}" for line in found]
            elif name == "split":
                differing = _differences(mine.options(), theirs.options())
                lines += [line.replace("_", " ") for line in differing]
            elif mine != theirs:
                lines.append(f"{name.replace('_', ' ')} {mine} (there {theirs})")
        return lines


def usual_presets(data: Listed) -> str:
    """Return the presets that race where none is named: those for images, or for scenes."""
    return ",".join(USUAL_IMAGE_PRESETS if _are_images(data) else USUAL_PRESETS)


def _are_images(data: Listed) -> bool:
    """Return whether data name a set of images; faults are reported when the data are read."""
    try:
        return images_of(data) is not None
    except (InputError, OSError):
        return False


def images_of(data: Listed) -> str | None:
    """Return what names a set of images; None for scenes.

    Raises:
        InputError: several are named, and one of them is a set of images.
    """
    named = listed(data)
    for one in named:
        if holds_images(one):
            if len(named) > 1:
                raise InputError(f"data {one}: a set of images cannot be learnt with other data")
            return one
    return None


def _differences(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} {own} (there {theirs[name]})" for name, own in mine.items() if own != theirs[name]
    ]
