"""The whole road as an estimator with the conventions of scikit-learn."""

import hashlib
import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hytas.data import CubePixels, PatchReader, Scene, SplitSettings, holds_data, scene_from_arrays
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.scene import chosen_smoothing, smoothed_rows
from hytas.errors import InputError
from hytas.export import FORMATS, Evidence, check_formats, export_file
from hytas.files import atomic_write
from hytas.models import SensorModel
from hytas.proxies import parse_proxies
from hytas.run import RunConfig, run_pipeline
from hytas.run.report import Lines, Report, Silent
from hytas.run.weights import load_weights
from hytas.spaces import DEFAULT_SPACE, file_digests, parse_budget
from hytas.train import Recipe

Array = npt.NDArray[Any]
DEVICES = ("auto", "cpu", "cuda")
PROBA_ROWS = 16
"""Rows of a cube that are read at a time for smoothed probabilities."""
_OPTION = re.compile(r"--([a-z][a-z-]*)")
_OF_ROWS = ("patch size", "smaller than", "single class", "at least 2 classes", "no pixel")
_ROWS = (
    "; a cube cannot be cut into rows: for cross_val_score or GridSearchCV give "
    "hytas.BlockSplit.samples(cube, labels) and cv=hytas.BlockSplit()"
)
_REAL = (int, float, np.integer, np.floating)
# Names of settings, the types they may have, and the rule in words.
_KINDS: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
    (("budget", "proxy", "space", "strategy", "scaling", "smooth"), (str,), "text"),
    (("bands",), (str, type(None)), "text such as 1-103,110-148, or None"),
    (
        ("population", "generations", "patch_size", "band_group"),
        (int, np.integer),
        "a whole number",
    ),
    (("finalists", "epochs"), (int, np.integer, type(None)), "a whole number, or None"),
    (("validation_fraction",), _REAL, "a number"),
    (("nodata",), (*_REAL, type(None)), "a number, or None"),
)
# How a file's name ends -> the first format whose files end so.
_SUFFIXES: dict[str, str] = {}
for _name, _entry in FORMATS.items():
    _SUFFIXES.setdefault(Path(_entry.file).suffix, _name)


class HSIClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Search, train and export a transformer for a labelled cube, as `hytas-search` does.

    A sample is a pixel with its neighbours, so the input is the whole cube (H, W, bands) and the
    target a label map (H, W), 0 for 'unlabelled'. Every labelled pixel given to `fit` is trained
    on; score on pixels that were not given, for neighbours share patches.

    Args:
        budget: of the search, such as "500K-params" or "2M-params,3ms-latency@table.json".
        proxy: proxies that score architectures; the first ranks them.
        space: search space.
        strategy: the engine's selection.
        population: architectures a generation.
        generations: generations.
        finalists: architectures that race at the end of the search; 1 takes the proxy's best, None
            is 16, or 1 where `validation_fraction` leaves none to rank on.
        patch_size: side of the patch around a pixel; odd.
        band_group: neighbouring bands in a token, where the space has no gene for it.
        bands: bands to start from, as "1-103,110-148"; None for all.
        scaling: "standard" or "minmax".
        nodata: the value that stands for no data in the cube, or None.
        validation_fraction: share of the labelled pixels that the race ranks on; the last training
            has them too.
        epochs: of the final training; None takes the recipe's number of steps.
        recipe: of race and final training, a `hytas.Recipe`; None for the default.
        smooth: whether class probabilities are smoothed by a guided filter: "guided", "none", or
            "auto", as the pixels held out for validation say.
        random_state: seed of search, proxies and training; None draws one.
        device: "auto", "cpu" or "cuda".
        work_dir: folder that keeps the runs, one a scene and setting: a `fit` that was killed goes
            on there, and one that was finished is read. None works in a folder that goes with
            the estimator.
        verbose: whether the progress is printed to standard error.

    Attributes:
        classes_: (C,) class ids, in the labels' type.
        n_features_in_: bands of the cube.
        architecture_: the winner, a plain mapping.
        outcome_: `hytas.Outcome` of the run. Its accuracy is that of the pixels fitted on.
        run_dir_: folder of the run.
        seed_: the seed used.
    """

    def __init__(
        self,
        budget: str = "500K-params",
        proxy: str = "dss",
        *,
        space: str = DEFAULT_SPACE,
        strategy: str = "evolution",
        population: int = 50,
        generations: int = 20,
        finalists: int | None = None,
        patch_size: int = 7,
        band_group: int = 3,
        bands: str | None = None,
        scaling: str = "standard",
        nodata: float | None = None,
        validation_fraction: float = 0.2,
        epochs: int | None = None,
        recipe: Recipe | None = None,
        smooth: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        work_dir: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.budget = budget
        self.proxy = proxy
        self.space = space
        self.strategy = strategy
        self.population = population
        self.generations = generations
        self.finalists = finalists
        self.patch_size = patch_size
        self.band_group = band_group
        self.bands = bands
        self.scaling = scaling
        self.nodata = nodata
        self.validation_fraction = validation_fraction
        self.epochs = epochs
        self.recipe = recipe
        self.smooth = smooth
        self.random_state = random_state
        self.device = device
        self.work_dir = work_dir
        self.verbose = verbose

    def fit(self, cube: Array | CubePixels, labels: Array) -> Self:
        """Search the budget for the best architecture, train it, export it and check the file.

        Args:
            cube: (H, W, bands), as the sensor gives it, any real type; or pixels of
                `hytas.BlockSplit.samples`, which `predict` and `score` take as well.
            labels: (H, W) class ids, 0 unlabelled; or (n,), one for each of these pixels.

        Raises:
            InputError: arrays that are no scene, or settings that do not fit it.
            ExportError: the exported file computes something else than torch.
            OSError: the work folder cannot be written.
        """
        self._check_kinds()
        if isinstance(cube, CubePixels):
            labels, cube = cube.label_map(labels), cube.cube
        cube, labels = np.asarray(cube), np.asarray(labels)
        with _in_python():
            scene = scene_from_arrays(
                cube, labels, name="cube", nodata=self.nodata, bands=self.bands
            )
        # Whoever calls `fit` has split already: all pixels train, and the file is checked on them.
        scene = replace(scene, train=scene.labels, test=scene.labels)
        seed = _seed(self.random_state)
        config = self._config(seed)
        folder, forget = self._folder(config, scene)
        report: Report = Lines() if self.verbose else Silent()
        try:
            with _in_python():
                outcome = run_pipeline(config, scene, folder, device=self.device, report=report)
        except BaseException:  # what was fitted before stays
            forget()
            raise
        getattr(self, "_forget", _nothing)()
        self._forget = forget
        self._scene: Scene | None = scene
        self._content = (folder / "model.onnx").read_bytes()
        self._deployed: DeployedModel | None = None
        self.classes_ = np.asarray(scene.class_ids, dtype=labels.dtype)
        self.n_features_in_ = scene.bands
        self.architecture_, self.outcome_ = outcome.architecture, outcome
        self.run_dir_, self.seed_ = folder, seed
        return self

    def predict(self, cube: Array) -> Array:
        """Class ids (H, W) of a cube of the same sensor, in the type of the labels.

        0 where the cube holds no data (every band NaN, infinite or `nodata`).

        Raises:
            NotFittedError: before `fit`.
            InputError: another band count, a cube smaller than a patch, or values that the fitted
                cube's type cannot hold.
        """
        pixels, cube = _parts(cube)
        found = classify_scene(self._model(), cube).labels.astype(self.classes_.dtype)
        return found if pixels is None else found.ravel()[pixels]

    def predict_proba(self, cube: Array) -> npt.NDArray[np.float32]:
        """Probabilities (H, W, C) of the classes `classes_`; NaN where the cube holds no data.

        Raises:
            NotFittedError: as in `predict`.
            InputError: as in `predict`.
        """
        model, (pixels, cube) = self._model(), _parts(cube)
        model.check_scene(cube.shape[2], name="the cube")
        fitting = model.fit_dtype(cube)
        if (smoothing := chosen_smoothing(model, None)) is not None:
            rows = list(smoothed_rows(model, smoothing, fitting, None, PROBA_ROWS))
            answers = np.stack(rows)
            answers[answers.max(axis=2) == 0] = np.nan
            return answers if pixels is None else answers.reshape(-1, answers.shape[2])[pixels]
        read = PatchReader(fitting, model.card.patch_size)
        answers = np.full((*cube.shape[:2], len(self.classes_)), np.nan, np.float32)
        width = cube.shape[1]
        for row, valid in enumerate(holds_data(fitting, model.card.nodata, model.card.kept_bands)):
            columns = np.flatnonzero(valid)
            answers[row, columns] = model.predict_patches(read(row * width + columns))
        return answers if pixels is None else answers.reshape(-1, answers.shape[2])[pixels]

    def score(self, cube: Array, labels: Array, sample_weight: Array | None = None) -> float:
        """Share of the labelled pixels (`labels` not 0) whose class is predicted: OA.

        Args:
            cube: (H, W, bands).
            labels: (H, W) class ids, 0 unlabelled.
            sample_weight: (H, W) weight of each pixel; None counts all alike.

        Raises:
            InputError: height or width differ, or no pixel is labelled; and as `predict`.
        """
        if isinstance(cube, CubePixels):
            return float(super().score(cube, labels, sample_weight))
        cube, labels = _cube(cube), np.asarray(labels)
        if labels.shape != cube.shape[:2]:
            raise InputError(
                f"labels: {_by(labels.shape)} and the cube {_by(cube.shape)}: height and width "
                "must agree"
            )
        labelled = labels != 0
        if not labelled.any():
            raise InputError("labels: no pixel is labelled: all values are 0")
        weights = np.ones(labels.shape) if sample_weight is None else np.asarray(sample_weight)
        if weights.shape != labels.shape:
            raise InputError(
                f"sample_weight: {_by(weights.shape)} and the labels {_by(labels.shape)}: height "
                "and width must agree"
            )
        hits = (self.predict(cube) == labels)[labelled]
        return float(np.average(hits, weights=weights[labelled]))

    def export(
        self, path: str | Path, as_format: str | None = None, *, force: bool = False
    ) -> dict[str, Any]:
        """Write the fitted model as a file that other programs run.

        Args:
            path: of the file, or a folder, which gets the format's own file name.
            as_format: a name in `hytas.export.FORMATS`, such as "onnx-scene" or "onnx-int8"; None
                tells it from the suffix (.onnx, .pt, .pt2).
            force: write a format of reduced precision that fails its check, marked.

        Returns:
            `file`, `bytes`, and the figures that the format was judged by on the fitted pixels.

        Raises:
            NotFittedError: before `fit`.
            InputError: an unknown format, or one other than "onnx" of an estimator that was
                pickled, or whose folder is gone: it lacks the weights or the pixels to check them.
            ExportError: the format fails its check.
            OSError: the file cannot be written.
        """
        check_is_fitted(self)
        name, path = _format_of(Path(path), as_format)
        if name == "onnx":  # checked on every labelled pixel when it was fitted
            with atomic_write(path) as temporary:
                temporary.write_bytes(self._content)
            assert self.outcome_.metrics is not None  # a run with epochs ends with figures
            parity = self.outcome_.metrics["parity"]
            found = {"pixels": parity["pixels"], **parity["formats"]["onnx"]}
            return {"file": str(path), "bytes": len(self._content), **found}
        weights = self.run_dir_ / "weights.safetensors"
        if self._scene is None or not weights.exists():
            raise InputError(
                f"format: {name} needs the scene and the run's folder, {self.run_dir_}, which an "
                "estimator lacks after pickling, or once its folder is removed; only onnx can be "
                "written"
            )
        trained = load_weights(weights)
        evidence = _evidence(trained.sensor_model(), self._scene, trained.card.patch_size)
        return export_file(path, trained.card, name, evidence, force=force)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: settings and model, without the scene and the open session."""
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_scene", "_deployed"):
            if name in state:
                state[name] = None
        state.pop("_forget", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.input_tags.allow_nan = True
        return tags

    def _config(self, seed: int) -> RunConfig:
        if not isinstance(self.recipe, Recipe | None):
            raise InputError(f"recipe: {self.recipe!r} must be a hytas.Recipe, or None")
        if self.device not in DEVICES:
            raise InputError(f"device: {self.device!r} must be one of {', '.join(DEVICES)}")
        recipe = self.recipe or Recipe()
        recipe = recipe if self.epochs is None else recipe.with_epochs(self.epochs)
        if recipe.epochs == 0:
            raise InputError("epochs: 0 would leave the model untrained; must be 1 or more")
        return RunConfig(
            budget=str(parse_budget(self.budget)),
            data="arrays in memory",
            space=self.space,
            proxy=",".join(str(spec) for spec in parse_proxies(self.proxy)),
            strategy=self.strategy,
            population=self.population,
            generations=self.generations,
            finalists=self.finalists,
            seed=seed,
            split=SplitSettings("fixed", validation_fraction=self.validation_fraction),
            patch_size=self.patch_size,
            band_group=self.band_group,
            bands=self.bands,
            scaling=self.scaling,
            recipe=recipe,
            smooth=self.smooth,
        )

    def _check_kinds(self) -> None:
        """Refuse settings of another type than theirs, which would fail far from here."""
        for names, kinds, rule in _KINDS:
            for name in names:
                value = getattr(self, name)
                if not isinstance(value, kinds) or isinstance(value, bool):
                    raise InputError(f"{name}: {value!r} must be {rule}")

    def _folder(self, config: RunConfig, scene: Scene) -> tuple[Path, Callable[[], object]]:
        """The folder of a run, and what removes it, if it goes with the estimator."""
        if self.work_dir is not None:
            return Path(self.work_dir) / _digest(config, scene), _nothing
        folder = tempfile.mkdtemp(prefix="hytas-")
        forget = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder) / "run", forget

    def _model(self) -> DeployedModel:
        check_is_fitted(self)
        if self._deployed is None:
            self._deployed = DeployedModel.from_bytes(
                self._content, "the fitted model", self.device
            )
        return self._deployed


def _nothing() -> None:
    """A folder that the user named stays."""


def _seed(state: int | np.random.RandomState | None) -> int:
    """The seed that scikit-learn's `random_state` stands for."""
    if not isinstance(state, int | np.integer | np.random.RandomState | None):
        raise InputError(f"random_state: {state!r} must be a whole number, a RandomState or None")
    if isinstance(state, int | np.integer):
        if state < 0:
            raise InputError(f"random_state: {state} must be 0 or more")
        return int(state)
    return int(check_random_state(state).randint(2**31 - 1))


def _digest(config: RunConfig, scene: Scene) -> str:
    """A name for the run of one scene and setting."""
    files = file_digests(config.space, config.budget)
    parts = [config.to_dict(), scene.fingerprint, *([files] if files else [])]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cube(cube: Array) -> Array:
    cube = np.asarray(cube)
    if cube.ndim != 3 or cube.dtype.kind not in "iufb":
        raise InputError(
            f"cube: {_by(cube.shape)} {cube.dtype}: three axes (height, width, bands) of real "
            "numbers needed"
        )
    return cube


def _parts(cube: Any) -> tuple[Array | None, Array]:
    """The pixels asked for, None for all, and the cube."""
    if isinstance(cube, CubePixels):
        return cube.pixels, _cube(cube.cube)
    return None, _cube(cube)


@contextmanager
def _in_python() -> Iterator[None]:
    """Name arguments of the estimator where a message names options of the command line."""
    try:
        yield
    except InputError as error:
        text = _OPTION.sub(lambda found: _named(found[1]), str(error))
        if any(word in text for word in _OF_ROWS):
            text += _ROWS
        if text == str(error):
            raise
        raise type(error)(text) from None


def _named(option: str) -> str:
    name = option.replace("-", "_")
    return {"out": "work_dir", "unlabelled": "labels: set them to 0:"}.get(name, name)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _format_of(path: Path, as_format: str | None) -> tuple[str, Path]:
    """The format's name and the file to write."""
    name = as_format if as_format is not None else _SUFFIXES.get(path.suffix.lower())
    if name is None and path.is_dir():
        name = "onnx"
    if name is None:
        raise InputError(
            f"path: {path} must end in one of {', '.join(_SUFFIXES)}, or name a format of "
            f"{', '.join(FORMATS)}"
        )
    check_formats([name])
    return name, path / FORMATS[name].file if path.is_dir() else path


def _evidence(model: SensorModel, scene: Scene, patch_size: int) -> Evidence:
    pixels = np.flatnonzero(scene.labels)
    return Evidence(model, scene.cube, patch_size, pixels, scene.targets(pixels))
