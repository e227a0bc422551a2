"""The settings of a run, in groups. `RunConfig` holds them all."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hytas._engine import mutation_presets, strategies
from hytas.data.options import class_names_text, parse_unlabelled, read_class_names
from hytas.data.patches import check_patch_side
from hytas.data.preprocessing import SCALINGS
from hytas.data.splits.make import check_seed
from hytas.data.splits.validation import MOST_FOLDS
from hytas.deploy.smoothing import SMOOTHINGS
from hytas.errors import InputError
from hytas.settings import (
    LARGEST_COUNT,
    SCALE_BY,
    TARGETS,
    OneOf,
    Rule,
    as_tuple,
    checked_count,
    plain_if_one,
    setting,
    that,
)
from hytas.supernet.settings import SupernetSettings

FRONT_STRATEGIES = tuple(name for name, facts in strategies().items() if facts["several_scores"])
"""The engine's strategies for a front; `pareto` uses the first, unless another one is set."""


class Effort(NamedTuple):
    """Lengths of a run that one word stands for.

    Attributes:
        image_finalists: for images, whose trainings take longer.
        race_steps: optimiser steps of the race's first rung.
        finalist_bytes: activations of a finalist, at most. They tell how long a training takes: a
            step of 64 samples 0.3 s a megabyte on one core (52 networks, 65 to 2151 bands, within a
            factor of 3).
        held_out_folds: least folds that hold out pixels, if there are as many.
        self_training: "auto" or "none".
    """

    population: int
    generations: int
    finalists: int
    image_finalists: int
    race_steps: int
    steps: int
    finalist_bytes: int
    held_out_folds: int = MOST_FOLDS
    self_training: str = "auto"


EFFORTS = {
    "quick": Effort(20, 10, 6, 3, 60, 500, 200_000, 2, "none"),
    "normal": Effort(50, 20, 24, 8, 60, 1500, 700_000),
    "thorough": Effort(50, 40, 48, 16, 60, 3000, 1_500_000),
}
"""Name -> lengths. With 100K-params on two CPU cores, Indian Pines takes 2, 4, 60 minutes."""
TRACKERS = ("tensorboard", "mlflow")
OF_EFFORT: Any = None
"""Default of a setting that `effort` decides."""
OF_DATA: Any = None
"""Default of a setting that the kind of the data decides: a scene, or images."""
OWN_PROXY = "params"
"""Default proxy of a plug-in's networks: any network has parameters, not all have attention."""


def _by(form: Callable[[Any], Any]) -> Rule:
    """Return the rule of a value whose plain form `form` returns."""
    return lambda name, value: form(value)


_SEVERAL = _by(as_tuple)
_AT_MOST = that(lambda value: 0 <= value <= LARGEST_COUNT, f"must be 0 to {LARGEST_COUNT}")


def _nodata(name: str, value: float) -> float | None:
    if math.isinf(value):
        hint = "infinite values always mean no data"
        raise InputError(name, value, "must be finite, or NaN for none", hint)
    return None if math.isnan(value) else value


def _patch_side(name: str, value: int) -> int:
    check_patch_side(value)
    return value


def _trackers(name: str, value: Any) -> Any:
    names = as_tuple(value)
    for one in names:
        if one not in TRACKERS:
            raise InputError(name, one, f"must be one of {', '.join(TRACKERS)}")
    return tuple(dict.fromkeys(names))


def _seed(name: str, value: int) -> int:
    check_seed(value)
    return value


def _strategy(name: str) -> None:
    from hytas.search.strategies import check_strategy_name

    check_strategy_name(name)


def _ranking(name: str) -> None:
    from hytas.race.rankings import find_ranking

    find_ranking(name)


def _target(name: str) -> None:
    from hytas.export.target import target_format

    target_format(name)


# `setting` with what the settings of a group have in common.
_scene = partial(setting, panel="Scene", only="scenes")
_labels = partial(setting, panel="Labels", only="scenes")
_search = partial(setting, panel="Budget and search")
_race = partial(setting, panel="Race")
_training = partial(setting, panel="Training")
_running = partial(setting, panel="Running")


@dataclass(frozen=True)
class DataSettings:
    """Which scenes or images, and how to read, cut and scale them."""

    data: str | Sequence[str] = setting(
        "synthetic",
        "Scene: a file (MATLAB, ENVI, GeoTIFF, HDF5, NetCDF, NumPy), a name such as indian_pines, "
        "or `synthetic`. Several scenes are trained on together. Or a table of spectra (CSV, "
        "Parquet, array; docs/scenes.md). Or images: a folder with one folder a class, a .npz "
        "file, `digits` or `textures`.",
        "Scene",
        most_used=True,
        rule=_by(plain_if_one),
    )
    labels: str | Sequence[str] | None = _labels(
        None,
        "File of the label map, if it is another file; or of polygons or points (GeoJSON, "
        "GeoPackage, Shapefile, CSV, ENVI ROI). Of several scenes, one for each, in order. Of one "
        "scene also two: a training and a test map.",
        most_used=True,
        rule=_by(plain_if_one),
    )
    test_data: Sequence[str] = _scene(
        (), "Scenes that are never trained on, and are reported separately.", rule=_SEVERAL
    )
    test_labels: Sequence[str] = setting(
        (),
        "Files of their labels, if these are other files; one for each, in order.",
        "Labels",
        rule=_SEVERAL,
    )
    resample: bool = _scene(
        False, "Take other scenes to the bands of the first one, by wavelength."
    )
    scale_by: str = _scene(
        SCALE_BY[0],
        "Scale by the training pixels; or first scale each scene by its own pixels, without "
        "labels, so that the model suits other scenes.",
        rule=OneOf(SCALE_BY),
    )
    data_dir: str | None = _scene(None, "Folder with the files of a scene that is known by name.")
    cube_key: str | None = _scene(None, "Variable that holds the cube, if several could.")
    axes: str | None = _scene(
        None,
        "Order of the axes of the cube's array.",
        example="band,y,x",
        usual="what the file says",
    )
    labels_key: str | None = _labels(
        None, "Variable that holds the label map; `TRAIN,TEST` for a fixed split."
    )
    label_column: str | None = _labels(
        None, "Column, or variable, of the labels of a table of spectra."
    )
    group_column: str | None = _labels(
        None, "Column, or variable, of its groups, such as fields: none lies on two sides."
    )
    band_columns: str | None = _labels(
        None,
        "Columns of a table that are bands, as `b1,b2,b7` or `b1:b200`.",
        usual="those whose names are wavelengths or numbered, else all columns of numbers",
    )
    target_column: Sequence[str] = _labels(
        (),
        "Columns of continuous targets of a table of spectra, in place of labels: their values are "
        "predicted, not classes.",
        rule=_SEVERAL,
        example="carbon",
    )
    value_field: Sequence[str] = _labels(
        (),
        "Fields of continuous targets, if `labels` names polygons or points.",
        rule=_SEVERAL,
        example="carbon",
    )
    task: str = _labels(
        "auto",
        "Whether labels are classes, or values to predict, such as a raster of carbon; auto takes "
        "them for classes unless columns or fields of values are named.",
        rule=OneOf(("auto", "classes", "values")),
    )
    units: Sequence[str] = _labels((), "Units of the targets, in their order.", rule=_SEVERAL)
    fractions: bool = _labels(
        False, "The targets are shares of a sample that sum to one, such as cover fractions."
    )
    class_field: str | None = _labels(
        None, "Field of the classes, if `labels` names polygons or points."
    )
    labels_crs: str | None = _labels(
        None,
        "Coordinate system of the polygons or points, if their file names none.",
        example="EPSG:32632",
    )
    unlabelled: int | float | str | None = _labels(
        None,
        "Another label of unlabelled pixels, besides 0; or their colour in a picture.",
        rule=_by(lambda value: parse_unlabelled(value).given),
        example="#ffffff",
        metavar="NUMBER OR COLOUR",
    )
    zero_is_a_class: bool = _labels(
        False, "0 is a class, as in a map of 0 and 1. Class ids are then one more than the labels."
    )
    class_names: str | Path | Mapping[int | str, str] | None = setting(
        None,
        "Names of classes by their number in the file, or a CSV file of numbers and names.",
        "Labels",
        rule=_by(lambda value: class_names_text(read_class_names(value))),
        example="1=corn,2=soy",
        estimator=True,
        only="scenes",
    )
    nodata: float | None = _scene(
        None,
        "No-data value of the cube.",
        rule=_nodata,
        usual="the file's own, if it names one",
        estimator=True,
    )
    resize: int | None = setting(
        None, "Side to bring images to, in pixels.", "Scene", only="images"
    )
    skip_unreadable: bool = setting(
        False, "Leave out image files that cannot be read.", "Scene", only="images"
    )
    patch_size: int = _scene(7, "Side of a patch; odd.", rule=_patch_side, estimator=True)
    band_group: int = _scene(
        3,
        "Neighbouring bands in one token; an odd number.",
        rule=that(lambda bands: bands >= 1 and bands % 2 == 1, "must be odd and 1 or more"),
        estimator=True,
    )
    bands: str | None = setting(
        None,
        "Bands to use, by their numbers or their wavelengths. Dead bands are always dropped.",
        "Scene",
        example="1-103,110-148 or 400-1340nm,1460-1790nm",
        estimator=True,
    )
    scaling: str = setting(
        SCALINGS[0],
        "Scaling of each band, fitted on the training pixels.",
        "Scene",
        rule=OneOf(SCALINGS),
        estimator=True,
    )


@dataclass(frozen=True)
class SearchSettings:
    """Under which budget, where, by which scores and for how long to search."""

    budget: str | None = _search(
        None,
        "What the model may cost; several limits with commas between them.",
        most_used=True,
        example="2M-params, 1.5M..2M-params or 500M-macs",
        option=False,  # the commands have their own, which repeats
    )
    space: str = _search(
        OF_DATA,
        "Search space: a built-in one, or a file. `hytas` is the paper's space, with one token for "
        "each band.",
        usual="hytas-wide; for images autoformer-mini",
        estimator=True,
    )
    control: str | None = _search(
        None,
        "Another space in which the same search and trainings are done, in the folder `control` of "
        "the run; its figures are reported next to those of `space`. For an evolved space, the one "
        "that it comes from. The run takes as long again.",
        example="hytas-wide",
    )
    proxy: str = _search(
        OF_DATA,
        "Training-free score. With several, all are recorded and the first one leads the search.",
        usual=f"dss; {OWN_PROXY} for networks of a plug-in",
        estimator=True,
    )
    effort: str = _search(
        "normal",
        "How long to search and train; other settings of length win over it. On two CPU cores, "
        "with 100K-params on Indian Pines, quick takes 2 to 3 minutes, normal 4, thorough an hour.",
        most_used=True,
        rule=OneOf(tuple(EFFORTS)),
        estimator=True,
    )
    minutes: float | None = _search(
        None,
        "About how long the whole run takes, from start to report. Search, race and trainings are "
        "shortened to fit; search and race end with their best when their time is over, and "
        "trainings keep to the length that they were given. The run never does more than `effort`, "
        "`population`, `finalists` and other settings of length allow.",
        rule=that(lambda value: 1 <= value <= LARGEST_COUNT, f"must be 1 to {LARGEST_COUNT}"),
        usual="no limit; with it `effort` is thorough",
        estimator=True,
    )
    population: int = _search(
        OF_EFFORT,
        "Candidates in a generation.",
        rule=checked_count,
        usual="by `effort`",
        estimator=True,
    )
    generations: int = _search(
        OF_EFFORT, "Number of generations.", rule=checked_count, usual="by `effort`", estimator=True
    )
    strategy: str = _search(
        "evolution",
        "How the engine selects. "
        + " ".join(f"{name}: {facts['about']}." for name, facts in strategies().items()),
        rule=OneOf(tuple(strategies()), _strategy),
        estimator=True,
    )
    evolution: str = _search(
        "autoformer",
        "Rates of mutation as published, of depth, of other global genes and of genes of layers: "
        "autoformer .4, .4, .2; s3 .2, .2, .4; hytas .2 each.",
        rule=OneOf(tuple(mutation_presets())),
    )
    parents: int = _search(10, "Best candidates that are mutated and crossed.", rule=checked_count)
    mutation: int | None = _search(
        None, "Children of a generation by mutation.", rule=_AT_MOST, usual="half of `population`"
    )
    crossover: int | None = _search(
        None, "Children of a generation by crossover.", rule=_AT_MOST, usual="half of `population`"
    )
    start_with: Sequence[str] = _search(
        (),
        "Files of known architectures that are candidates, too, and race, such as the "
        "architecture.json of a run with a smaller budget.",
        rule=_SEVERAL,
    )
    pareto: str | None = _search(
        None,
        "Also find a Pareto front over these axes: with score one of all candidates, by the proxy; "
        "with accuracy one of finalists, which race for it.",
        example="params,accuracy",
        estimator=True,
    )
    supernet: str | None = _search(None, "File of a trained supernet, for the proxy `inherited`.")
    supernet_settings: SupernetSettings | None = setting(
        None, "How the run trains a supernet; None where it trains none.", option=False
    )
    plugins: Sequence[str] = setting(
        (),
        "Python files, or names of installed plug-ins, that bring networks, proxies, rankings, "
        "strategies or readers (docs/extending.md). The configuration also holds their digests.",
        option=False,  # the commands have their own, which loads them first
        estimator=True,
    )
    seed: int = _running(0, "Seed of all random numbers.", rule=_seed)


@dataclass(frozen=True)
class RaceSettings:
    """How finalists race: brief trainings, ranked on validation pixels."""

    finalists: int | None = _race(
        None,
        "Number of candidates that race: they are trained briefly and ranked on validation pixels. "
        "1 takes the proxy's first choice, without a race.",
        rule=checked_count,
        usual="by `effort`; 1 if the split has no validation pixels",
        estimator=True,
    )
    usual_finalists: int = setting(
        OF_EFFORT, "Number of finalists if `finalists` is None.", rule=checked_count, option=False
    )
    race_steps: int = _race(
        OF_EFFORT,
        "Optimiser steps of the race's first rung. Each rung keeps half of the finalists and "
        "trains twice as long; the last one takes all folds.",
        rule=checked_count,
        usual="by `effort`",
        estimator=True,
    )
    held_out_folds: int = setting(
        OF_EFFORT,
        "Folds that hold out pixels in turn, to rank finalists and to decide on smoothing and "
        "confidence. More are taken if these hold out few pixels.",
        rule=checked_count,
        option=False,
    )
    ranking: str = _race(
        "auto",
        "What the race ranks finalists by; auto is the mean probability of the true class, or "
        "RMSE of values.",
        rule=OneOf(("auto", "accuracy", "probability"), _ranking),
        estimator=True,
    )
    prefer: str = _race(
        "accurate",
        "Which finalist wins of those that held-out pixels cannot tell from the best one: the most "
        "accurate, or the smallest.",
        rule=OneOf(("accurate", "small")),
        estimator=True,
    )
    target: str | None = _race(
        None,
        "Format that the model ships in. Finalists of the last rung are converted to it before "
        "they are ranked, so the winner is the best there; the run also writes its file. int8: "
        "8-bit products; fp16: half floats; w8: weights of 8 bits.",
        rule=OneOf(TARGETS, _target),
    )


@dataclass(frozen=True)
class FinalSettings:
    """How the winner is trained, and what follows."""

    final_training_on: str = _training(
        "all",
        "Pixels of the final training: all labelled pixels that are not for testing (all), or the "
        "training pixels only (train). With train, validation pixels choose the best epoch.",
        rule=OneOf(("all", "train")),
        estimator=True,
    )
    seeds: int = _training(
        1,
        "Number of final trainings, for mean and standard deviation. The first is exported.",
        most_used=True,
        rule=checked_count,
        estimator=True,
    )
    self_training: str | None = _training(
        OF_EFFORT,
        "Train the winner further with pixels of the scene that have no label, as validation "
        "pixels decide in a spatially disjoint split (auto); or not (none). No label of a test "
        "pixel is read.",
        rule=OneOf(("auto", "none")),
        usual="auto; with `effort` quick none",
        estimator=True,
        only="scenes",
    )
    class_prior: str = _training(
        "labels",
        "Class shares that the model assumes: those of the labels (labels); or those of pixels "
        "around the labels, test pixels among them, where these lie among labelled ones and "
        "validation pixels allow it (auto).",
        rule=OneOf(("labels", "auto")),
        only="scenes",
    )
    smooth: str = setting(
        "auto",
        "Smooth class probabilities by a guided filter, which removes speckle from the map "
        "(guided); or not (none); or as validation pixels decide (auto).",
        "Map",
        rule=OneOf(("auto", *SMOOTHINGS)),
        estimator=True,
    )
    track: Sequence[str] = _running(
        (),
        "Write the events of the run for TensorBoard, or log them with MLflow "
        "(docs/budget-and-time.md): tensorboard, mlflow.",
        rule=_trackers,
        estimator=True,
    )
    start: str | None = setting(
        None, "Folder of a run whose trained model this one begins with.", option=False
    )
    teacher: str | None = _training(
        None,
        "Folder of a run whose model teaches the winner: the loss is also that of the class which "
        "it predicts for each augmented sample. The recipe's `distillation` is the weight.",
    )
    tune: str = _training(
        "all",
        "Weights of that model that change: all; or biases, normalisations and the read-out alone, "
        "which gives a small update.",
        rule=OneOf(("all", "small")),
        option=False,
    )
