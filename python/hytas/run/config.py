"""The configuration of a run: all settings that decide its result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hytas.data import (
    LabelledData,
    SplitSettings,
    holds_images,
    load_images,
    load_scenes,
    takes_split_options,
)
from hytas.data.several import Files
from hytas.data.splits.make import check_seed
from hytas.errors import InputError
from hytas.plugins import brings, load_plugins
from hytas.proxies import base_proxies, parse_proxies
from hytas.proxies.no_pass import needs_supernet
from hytas.run.settings import (
    EFFORTS,
    FRONT_STRATEGIES,
    OF_EFFORT,
    OWN_PROXY,
    DataSettings,
    FinalSettings,
    RaceSettings,
    SearchSettings,
)
from hytas.settings import Listed, as_tuple, check_settings, setting, setting_text, settings_of
from hytas.spaces import DEFAULT_SPACE, IMAGE_SPACE, with_files
from hytas.spaces.opening import space_name
from hytas.supernet.settings import SupernetSettings
from hytas.tasks import PredictionTask
from hytas.train.presets import (
    USUAL_IMAGE_PRESETS,
    USUAL_PRESETS,
    USUAL_VALUE_PRESETS,
    read_presets,
    recipes_of,
)
from hytas.train.recipe import Recipe

SETTING_GROUPS: Mapping[str, type] = {
    "data": DataSettings,
    "split": SplitSettings,
    "search": SearchSettings,
    "race": RaceSettings,
    "recipe": Recipe,
    "final": FinalSettings,
}
"""The groups of settings; tables of `config.json` and of TOML files."""


@takes_split_options
@dataclass(frozen=True)
class RunConfig(FinalSettings, RaceSettings, SearchSettings, DataSettings):
    """The settings of a run, in six groups; `config.json` in its folder.

    Those of data, search, race and final training are fields, which `hytas.run.settings` declares.
    The fields of `split` can be given directly: `RunConfig(split="blocks", block=8)`. With
    `dataclasses.replace` a single field changes only that field; a kind resets all others.

    Attributes:
        split: which pixels train, validate and test. The race ranks on the validation pixels. If
            these are few, it also ranks on other training pixels, in folds. Where test pixels lie
            in blocks or polygons of their own, the pixels of each fold do so, too.
        recipe: of the race and the final training, or of the supernet.
    """

    split: SplitSettings = field(default_factory=SplitSettings)
    recipe: Recipe = OF_EFFORT
    presets: str = setting(
        "",
        "Names of `hytas.train.PRESETS`, with commas between them. They change the recipe where it "
        "was not changed; a setting among them, such as mixup=0.2, holds in all. The race finds "
        "out which of them to train by; without a race it is the first.",
        usual="the usual ones for a scene, or for images",
        option=False,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "plugins", list(load_plugins(self.plugins)))
        for name in ("data", "effort", "presets"):  # which decide others
            declared = settings_of(RunConfig)[name]
            object.__setattr__(self, name, declared.checked(getattr(self, name)))
        self._fill()
        check_settings(self)
        check_seed(self.seed, self.seeds)
        if not self.data:
            raise InputError("data", rule="names no scene to train on")
        _ = self.files  # refuses lists of other lengths
        self._check_supernet()
        if self.start is not None and self.recipe.whitened:
            rule = "a training that begins with a model keeps its embedding: must be no"
            raise InputError("recipe", "whitened=yes", rule)
        if self.start is None and self.tune != RunConfig.tune:
            raise InputError("tune", self.tune, "is for a training that begins with a model")
        self._check_pareto()
        self._check_minutes()
        if self.mutation == self.crossover == 0:
            raise InputError("mutation", 0, "and `crossover` 0 leave no children")

    def _fill(self) -> None:
        """Give settings that were left out the values of the effort, or of the kind of data."""
        names = as_tuple(self.data)
        images = bool(names) and _are_images(names)
        effort = EFFORTS.get(self.effort, EFFORTS["normal"])  # another one is refused later
        values = {
            "space": IMAGE_SPACE if images else DEFAULT_SPACE,
            "proxy": OWN_PROXY if brings("network", str(self.space)) else "dss",
            "population": effort.population,
            "generations": effort.generations,
            "usual_finalists": effort.image_finalists if images else effort.finalists,
            "race_steps": effort.race_steps,
            "recipe": Recipe(steps=effort.steps),
            "held_out_folds": effort.held_out_folds,
            "self_training": None if images else effort.self_training,
        }
        for name, value in values.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        proxies = ",".join(map(str, parse_proxies(self.proxy)))
        object.__setattr__(self, "proxy", proxies)
        # It was filled before the data were given.
        if images and self.self_training == effort.self_training:
            object.__setattr__(self, "self_training", None)
        presets, settings = read_presets(self.presets)
        if not presets:
            usual = USUAL_IMAGE_PRESETS if images else USUAL_PRESETS
            if self.predicts_values:
                usual = USUAL_VALUE_PRESETS
            object.__setattr__(self, "presets", ",".join([*usual, *settings]))

    @cached_property
    def space_name(self) -> str:
        """The name of the space, which a file may bring."""
        return space_name(self.space)

    @property
    def predicts_values(self) -> bool:
        """Whether the labels are continuous targets."""
        return self.task == "values" or bool(self.target_column) or bool(self.value_field)

    def _check_minutes(self) -> None:
        """Refuse settings that fix what `minutes` decides."""
        if self.minutes is None:
            return
        if self.recipe.epochs:
            rule = "`minutes` decides how long is trained"
            raise InputError("epochs", self.recipe.epochs, rule, "give one of them")

    def _check_pareto(self) -> None:
        """Refuse axes that are no front, and a strategy that finds none."""
        axes = [] if self.pareto is None else [name.strip() for name in self.pareto.split(",")]
        values = axes.count("score") + axes.count("accuracy")
        if self.pareto is not None and (values != 1 or len(axes) < 2):
            rule = "must name a cost, and score or accuracy"
            raise InputError("pareto", self.pareto, rule, "params,accuracy")
        if not axes and self.strategy in FRONT_STRATEGIES:
            hint = "name its axes with `pareto`"
            raise InputError("strategy", self.strategy, "finds a front", hint)
        for name in axes:
            if axes.count(name) > 1:
                raise InputError("pareto", self.pareto, f"names {name} twice")
        if axes and self.strategy not in (usual := (RunConfig.strategy, *FRONT_STRATEGIES)):
            rule = f"does not go with `strategy` {self.strategy}"
            raise InputError("pareto", self.pareto, rule, f"leave it, or take {' or '.join(usual)}")

    @property
    def files(self) -> tuple[list[Files], list[Files]]:
        """Return file and labels of each scene to train on, and of each that only tests.

        Raises:
            InputError: there are more or fewer files of labels than scenes.
        """
        tested = _paired(self.test_data, self.test_labels, "test_")
        return _paired(self.data, self.labels), tested

    def _check_supernet(self) -> None:
        needed = any(spec.proxy.needs_supernet for spec in base_proxies(parse_proxies(self.proxy)))
        if needed and self.supernet is None and self.supernet_settings is None:
            raise needs_supernet()
        if self.supernet is not None and not needed:
            rule = f"only the proxy inherited scores with it, and `proxy` is {self.proxy}"
            raise InputError("supernet", self.supernet, rule)

    @property
    def minimised(self) -> tuple[str, ...]:
        """Return the costs of the Pareto front."""
        axes = [] if self.pareto is None else self.pareto.split(",")
        names = (name.strip() for name in axes)
        return tuple(name for name in names if name not in ("score", "accuracy"))

    @property
    def trained_front(self) -> tuple[str, ...]:
        """Return the costs of a front of trained finalists; () for none."""
        trained = "accuracy" in [name.strip() for name in (self.pareto or "").split(",")]
        return self.minimised if trained else ()

    def ranking_of(self, task: PredictionTask) -> str:
        """Return the name of what the race ranks by."""
        return task.ranking if self.ranking == "auto" else self.ranking

    @property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes that race: preset -> recipe."""
        return recipes_of(self.recipe, self.presets)

    @property
    def operators(self) -> dict[str, Any]:
        """Return the settings of the engine's `Evolution` for mutation and crossover."""
        half = self.population // 2
        mutation = self.population - half if self.mutation is None else self.mutation
        crossover = half if self.crossover is None else self.crossover
        settings: dict[str, Any] = {"mutation": self.evolution, "parents": self.parents}
        if (self.mutation, self.crossover) != (None, None):
            share = mutation / (mutation + crossover)
            settings |= {"offspring": mutation + crossover, "mutation_share": share}
        return settings

    @property
    def selection(self) -> str:
        """Return the engine's strategy."""
        if self.minimised and self.strategy not in FRONT_STRATEGIES:
            return FRONT_STRATEGIES[0]
        return self.strategy

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: a table for each of `SETTING_GROUPS`."""
        values = asdict(self)
        tables = {
            group: {name: values[name] for name in settings_of(owner) if name in values}
            for group, owner in SETTING_GROUPS.items()
        }
        tables["split"] = values["split"]
        tables["recipe"] = {"presets": self.presets, **values["recipe"]}
        return tables

    @classmethod
    def from_dict(cls, tables: Mapping[str, Mapping[str, Any]]) -> "RunConfig":
        """Rebuild from the JSON form; missing settings have their defaults.

        Raises:
            InputError: a setting is unknown, or a table is missing.
        """
        try:
            recipe = dict(tables["recipe"])
            recipe.pop("alignment", None)  # of version 0.2.0
            values: dict[str, Any] = {"presets": recipe.pop("presets", "")}
            for group in ("data", "search", "race", "final"):
                values |= tables[group]
            values.pop("race_epochs", None)  # of version 0.2.0
            if isinstance(supernet := values.get("supernet_settings"), Mapping):
                named = {name: supernet[name] for name in supernet if name != "soft_labels"}
                values["supernet_settings"] = SupernetSettings(**named)
            split = SplitSettings(**tables["split"])
            return cls(recipe=Recipe(**recipe), split=split, **values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            rule = f"is not a configuration of this hytas ({error})"
            raise InputError("config.json", rule=rule) from None

    def load_scene(self) -> LabelledData:
        """Read the scenes of `data` and `test_data` as one, or the images that `data` names.

        Raises:
            InputError: a file is missing or is not a scene, or scenes do not fit each other.
        """
        images = images_path(self.data)
        self._check_kind("scenes" if images is None else "images")
        if images is not None:
            return load_images(images, resize=self.resize, skip_unreadable=self.skip_unreadable)
        if self.resample and isinstance(self.data, str) and not self.test_data:
            rule = "takes other scenes to the bands of the first"
            raise InputError("resample", rule=rule, hint=f"only {self.data} is given")
        names = (
            *("resample", "scale_by", "cube_key", "axes", "labels_key", "data_dir", "bands"),
            *("nodata", "unlabelled", "zero_is_a_class", "class_field", "labels_crs"),
            *("class_names", "label_column", "group_column", "target_column", "units"),
            *("fractions", "value_field", "task", "band_columns"),
        )
        return load_scenes(*self.files, **{name: getattr(self, name) for name in names})

    def _check_kind(self, kind: str) -> None:
        """Refuse settings that the other kind of data has."""
        data = f"{self.data} is {'a scene' if kind == 'scenes' else 'a set of images'}"
        for owner in (self, *self.recipes.values()):
            for name, declared in settings_of(type(owner)).items():
                value = getattr(owner, name)
                if declared.facts.only in ("", kind) or value == declared.default:
                    continue
                shown = " ".join(value) if isinstance(value, tuple) else value
                given = (name, shown) if owner is self else ("recipe", f"{name}={shown}")
                raise InputError(*given, f"is for {declared.facts.only}, and {data}")

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

    def differences(self, other: "RunConfig", ignore: Collection[str]) -> list[str]:
        """Return a text for each setting that differs: "budget 2M-params (there 500K-params)".

        Args:
            ignore: names of settings or of groups, such as "recipe steps" or "recipe".
        """
        mine, theirs = self._named(), other._named()
        return [
            f"{name.replace('_', ' ')} {setting_text(mine.get(name))} "
            f"(there {setting_text(theirs.get(name))})"
            for name in dict.fromkeys([*mine, *theirs])
            if not {name, name.split()[0]} & set(ignore) and mine.get(name) != theirs.get(name)
        ]

    def _named(self) -> dict[str, Any]:
        """Return all settings by name; files have their names alone, because they may move."""
        named = {name: getattr(self, name) for name in settings_of(RunConfig)}
        named["space"], named["budget"] = with_files(
            self.space, self.budget, lambda path: Path(path).name
        )
        for name in ("supernet", "start", "teacher"):
            named[name] = named[name] and Path(named[name]).name
        named["start_with"] = tuple(Path(one).name for one in self.start_with)
        named["plugins"] = tuple(sorted({Path(one).name for one in self.plugins}))
        named |= self.split.options()
        named |= {f"recipe {name}": value for name, value in asdict(self.recipe).items()}
        if self.supernet_settings is not None:
            del named["supernet_settings"]
            settings = asdict(self.supernet_settings)
            named |= {f"supernet {name}": value for name, value in settings.items()}
        return named


def _paired(data: Listed, labels: Listed, kind: str = "") -> list[Files]:
    """Return the file of each scene with that of its labels, or None.

    Args:
        labels: files of their labels, in the same order; or none at all. Two files for a single
            scene that trains are its training and its test map.
        kind: what the names of the settings begin with: "" or "test_".
    """
    scenes, maps = as_tuple(data), as_tuple(labels)
    if (len(scenes), len(maps), kind) == (1, 2, ""):
        return [(scenes[0], tuple(maps))]
    if maps and len(maps) != len(scenes):
        number = "1 scene" if len(scenes) == 1 else f"{len(scenes)} scenes"
        hint = f"give one for each `{kind}data`, in the same order"
        if not kind:
            hint += "; of a single scene, a training and a test map"
        raise InputError(f"{kind}labels", rule=f"{len(maps)} given for {number}", hint=hint)
    return list(zip(scenes, maps or (None,) * len(scenes), strict=True))


def usual_preset(data: Listed) -> str:
    """Return the preset that trains where none is named: that for images, or for scenes."""
    return (USUAL_IMAGE_PRESETS if _are_images(data) else USUAL_PRESETS)[0]


def _are_images(data: Listed) -> bool:
    """Return whether data name a set of images; faults are reported when the data are read."""
    try:
        return images_path(data) is not None
    except (InputError, OSError):
        return False


def images_path(data: Listed) -> str | None:
    """Return what names a set of images; None for scenes."""
    named = as_tuple(data)
    for one in named:
        if holds_images(one):
            if len(named) > 1:
                rule = "is a set of images, which cannot be trained on with other data"
                raise InputError("data", one, rule)
            return one
    return None
