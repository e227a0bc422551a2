"""An estimator that searches, trains and exports, with the conventions of scikit-learn."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hytas.data import CubePixels, Scene, SplitSettings, as_spectra, scene_from_arrays
from hytas.data.data_array import is_data_array
from hytas.data.labels.names import GivenNames
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.scene import probability_rows
from hytas.errors import InputError
from hytas.estimator.arguments import (
    DEVICES,
    Array,
    Given,
    by,
    check_types,
    given_cube,
    label_map,
    names_by_id,
    seed_of,
)
from hytas.estimator.messages import python_arguments
from hytas.estimator.persistence import format_of, keep, run_folder, write_format, write_onnx
from hytas.proxies import parse_proxies
from hytas.run import EFFORTS, RunConfig, run_pipeline
from hytas.run.display import Display
from hytas.run.progress import SILENT, Report
from hytas.spaces import DEFAULT_SPACE, parse_budget
from hytas.train import Recipe


class HSIClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Search, train and export a transformer for a labelled cube, as `hytas-search` does.

    A sample is a pixel with its neighbours. So the input is the whole cube (H, W, bands), and the
    target is a label map (H, W) with 0 for unlabelled pixels. `fit` trains on every labelled pixel
    that it gets. Score on other pixels, best on pixels that are not neighbours of these:
    `hytas.BlockSplit` gives such pixels to `cross_val_score` and `GridSearchCV`.

    Args:
        budget: limits of the search, such as "500K-params" or "2M-params,3ms-latency@table.json".
        proxy: proxies that score candidates; the first one ranks them.
        space: search space.
        strategy: how the engine selects candidates.
        effort: "quick", "normal" or "thorough": how long to search and train. It decides
            `population`, `generations`, `finalists` and the recipe's steps where they are None.
        population: candidates in a generation.
        generations: number of generations.
        finalists: candidates that race at the end of the search. 1 takes the proxy's first choice.
            None means 16, or 1 if `validation_fraction` leaves no pixels to rank on.
        patch_size: side of the patch around a pixel; odd.
        band_group: neighbouring bands in a token, if the space has no gene for it.
        bands: bands to start from, such as "1-103,110-148"; None for all.
        scaling: "standard" or "minmax".
        nodata: the no-data value of the cube, or None.
        class_names: names of classes by id, for the exported model and its maps: a mapping, a text
            such as "1=corn,2=soy", or a CSV file of ids and names; None for "class 1" and so on.
        validation_fraction: share of the labelled pixels that the race ranks on. The final training
            uses these pixels, too.
        epochs: of the final training; None takes the recipe's number of steps.
        recipe: `hytas.Recipe` of the race and the final training; None for the default.
        smooth: whether class probabilities are smoothed by a guided filter: "guided", "none", or
            "auto", as the pixels held out for validation say.
        self_training: whether the model goes on with pixels of the cube that have no label: "none",
            or "auto", likewise. Then it has seen spectra of the pixels that it is tested on.
        random_state: seed of search, proxies and training; None draws one.
        device: "auto", "cpu" or "cuda".
        work_dir: folder that keeps the runs, one for each scene and set of settings. There a `fit`
            that was killed goes on, and a finished one is read. None uses a temporary folder, which
            is removed with the estimator.
        verbose: whether the progress is shown, on standard error or below the cell of a notebook.

    Attributes:
        classes_: (C,) class ids, in the labels' type.
        n_features_in_: bands of the cube.
        architecture_: the winner, a plain mapping.
        outcome_: `hytas.Outcome` of the run. Its accuracy is on the pixels that `fit` got.
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
        effort: str = "normal",
        population: int | None = None,
        generations: int | None = None,
        finalists: int | None = None,
        patch_size: int = 7,
        band_group: int = 3,
        bands: str | None = None,
        scaling: str = "standard",
        nodata: float | None = None,
        class_names: GivenNames | None = None,
        validation_fraction: float = 0.2,
        epochs: int | None = None,
        recipe: Recipe | None = None,
        smooth: str = "auto",
        self_training: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        work_dir: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.budget = budget
        self.proxy = proxy
        self.space = space
        self.strategy = strategy
        self.effort = effort
        self.population = population
        self.generations = generations
        self.finalists = finalists
        self.patch_size = patch_size
        self.band_group = band_group
        self.bands = bands
        self.scaling = scaling
        self.nodata = nodata
        self.class_names = class_names
        self.validation_fraction = validation_fraction
        self.epochs = epochs
        self.recipe = recipe
        self.smooth = smooth
        self.self_training = self_training
        self.random_state = random_state
        self.device = device
        self.work_dir = work_dir
        self.verbose = verbose

    def fit(self, cube: Any, labels: Any, groups: Any = None) -> Self:
        """Search for the best architecture under the budget, train it, and export and check it.

        Args:
            cube: (H, W, bands), raw values of the sensor, of any real type; or an
                `xarray.DataArray` with the dimensions y, x and band, whose wavelengths, bad bands
                and no-data value are taken, too; or the pixels of `hytas.BlockSplit.samples`.
                or spectra (n, bands) that are no pixels. `predict` and `score` accept all of these
                as well.
            labels: (H, W) class ids, 0 unlabelled, also as a `DataArray`; or (n,), one id for each
                of these pixels or spectra.
            groups: (n,) group of each of the spectra; none is divided between training and
                validation.

        Raises:
            InputError: arrays that are not a scene, or settings that do not fit the scene.
            ExportError: the exported file gives other results than torch.
            OSError: the work folder cannot be written.
        """
        check_types(self)
        if isinstance(cube, CubePixels):
            labels, cube = cube.label_map(labels), cube.cube
        with python_arguments(rows=True):
            scene, labels = self._given_scene(cube, labels, groups)
        # The caller of `fit` has split already: all pixels train, and the file is checked on them.
        scene = replace(scene, train=scene.labels, test=scene.labels)
        seed = seed_of(self.random_state)
        with python_arguments():
            config = self._config(seed)
        folder, forget = run_folder(self, self.work_dir, config, scene)
        display: AbstractContextManager[Report] = Display() if self.verbose else nullcontext(SILENT)
        try:
            with python_arguments(rows=True), display as report:
                # All labelled pixels are trained on, so there is nothing to compare on.
                outcome = run_pipeline(
                    config, scene, folder, device=self.device, report=report, references=False
                )
        except BaseException:  # an earlier fit stays
            forget()
            raise
        getattr(self, "_forget", keep)()
        self._forget = forget
        self._scene: Scene | None = scene
        self._content = (folder / "model.onnx").read_bytes()
        self._deployed: DeployedModel | None = None
        self.classes_ = np.asarray(scene.class_ids, dtype=labels.dtype)
        self.n_features_in_ = scene.bands
        self.architecture_, self.outcome_ = outcome.architecture, outcome
        self.run_dir_, self.seed_ = folder, seed
        return self

    def _given_scene(self, cube: Any, labels: Any, groups: Any) -> tuple[Scene, Array]:
        # What is wrong with an array is said of the scene.
        spectra = not is_data_array(cube) and np.ndim(cube) == 2 and np.ndim(labels) == 1
        if groups is not None and not (spectra and np.shape(groups) == np.shape(labels)):
            raise InputError("groups", rule="must be one for each of the spectra (n, bands)")
        if spectra:
            cube, labels = np.asarray(cube)[:, None], np.asarray(labels)[:, None]
        given = given_cube(cube) if is_data_array(cube) else Given(np.asarray(cube))
        labels, note = label_map(labels, given)
        facts: dict[str, Any] = {} if note is None else {"notes": [note]}
        if given.array is not None:
            names = ("wavelengths", "fwhm", "bad_bands", "nodata")
            facts |= {name: getattr(given.array, name) for name in names}
        if self.nodata is not None:
            facts["nodata"] = self.nodata
        if self.class_names is not None:
            facts["class_names"] = names_by_id(self.class_names)
        scene = scene_from_arrays(given.cube, labels, name="cube", bands=self.bands, **facts)
        return as_spectra(scene, groups) if spectra else scene, labels

    def predict(self, cube: Any, unknown: float | None = None) -> Any:
        """Return the class ids (H, W) of a cube of the same sensor, in the type of the labels.

        The id is 0 if the pixel holds no data (every band NaN, infinite or `nodata`). Of a
        `DataArray` they are a `DataArray` on the same pixels. Warns if the values are far from
        those of `fit`.

        Args:
            cube: (H, W, bands).
            unknown: the share of held-out pixels, 0.001 to 0.5, that would be unknown, too: ground
                of no class of the model gets id 0. None gives every pixel with data a class.

        Raises:
            NotFittedError: before `fit`.
            InputError: another band count, a cube smaller than a patch, values that the fitted
                cube's type cannot hold, or no score for unknown ground.
        """
        with python_arguments():
            model, given = self._model(), given_cube(cube)
            found = classify_scene(
                model,
                given.cube,
                nodata=given.nodata,
                wavelengths=given.wavelengths,
                unknown=unknown,
            ).labels
        return given.shaped(found.astype(self.classes_.dtype), "classes")

    def predict_proba(self, cube: Any) -> Any:
        """Return the probabilities (H, W, C) of `classes_`; NaN for a pixel without data.

        Of a `DataArray` they are a `DataArray` with the dimensions of its pixels and "class".

        Raises:
            NotFittedError: as in `predict`.
            InputError: as in `predict`.
        """
        with python_arguments():
            model, given = self._model(), given_cube(cube)
            model.check_scene(given.cube.shape[2], given.wavelengths)
            rows = probability_rows(model, given.cube, nodata=given.nodata)
            found = np.stack(list(rows))
        found[found.max(axis=2) == 0] = np.nan
        return given.shaped(found, "probability", self.classes_)

    def score(self, cube: Any, labels: Any, sample_weight: Array | None = None) -> float:
        """Return the overall accuracy: the share of labelled pixels whose class is predicted.

        Args:
            cube: (H, W, bands).
            labels: (H, W) class ids, 0 unlabelled.
            sample_weight: (H, W) weight of each pixel; None gives all the same weight.

        Raises:
            InputError: height or width differ, or no pixel is labelled; and as `predict`.
        """
        if isinstance(cube, CubePixels) or np.ndim(cube) == 2:
            return float(super().score(cube, labels, sample_weight))
        given = given_cube(cube)
        labels, _ = label_map(labels, given)
        if labels.shape != given.cube.shape[:2]:
            raise InputError(
                "labels",
                rule=f"{by(labels.shape)}, and the cube {by(given.cube.shape)}: height and width "
                "must agree",
            )
        labelled = labels != 0
        if not labelled.any():
            raise InputError("labels", rule="no pixel is labelled: all values are 0")
        weights = np.ones(labels.shape) if sample_weight is None else np.asarray(sample_weight)
        if weights.shape != labels.shape:
            raise InputError(
                "sample_weight",
                rule=f"{by(weights.shape)}, and the labels {by(labels.shape)}: height and width "
                "must agree",
            )
        hits = (np.asarray(self.predict(cube)) == labels)[labelled]
        return float(np.average(hits, weights=weights[labelled]))

    def export(
        self, path: str | Path, as_format: str | None = None, *, force: bool = False
    ) -> dict[str, Any]:
        """Write the fitted model as a file for other programs.

        Args:
            path: of the file, or of a folder for a file with the format's own name.
            as_format: a name in `hytas.export.FORMATS`, such as "onnx-scene" or "onnx-int8"; None
                chooses by the suffix (.onnx, .pt, .pt2).
            force: write a format of reduced precision even if it fails its check.

        Returns:
            `file`, `bytes`, and the figures of the format's check on the fitted pixels.

        Raises:
            NotFittedError: before `fit`.
            InputError: an unknown format; or another format than "onnx" after the estimator was
                pickled or its folder was removed, when weights or pixels are missing.
            ExportError: the format fails its check.
            OSError: the file cannot be written.
        """
        check_is_fitted(self)
        with python_arguments():
            name, path = format_of(Path(path), as_format)
            if name == "onnx":
                return write_onnx(path, self._content, self.outcome_)
            return write_format(path, name, self.run_dir_, self._scene, force=force)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: settings and model, without scene and open session."""
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
            raise InputError("recipe", self.recipe, "must be a hytas.Recipe, or None")
        if self.device not in DEVICES:
            raise InputError("device", self.device, f"must be one of {', '.join(DEVICES)}")
        if self.effort not in EFFORTS:  # before the recipe is taken from it
            raise InputError("effort", self.effort, f"must be one of {', '.join(EFFORTS)}")
        recipe = self.recipe or Recipe(steps=EFFORTS[self.effort].steps)
        recipe = recipe if self.epochs is None else recipe.with_epochs(self.epochs)
        if recipe.epochs == 0:
            raise InputError("epochs", 0, "must be 1 or more, or the model stays untrained")
        lengths: dict[str, Any] = {"population": self.population, "generations": self.generations}
        return RunConfig(
            budget=str(parse_budget(self.budget)),
            data="arrays in memory",
            space=self.space,
            proxy=",".join(str(spec) for spec in parse_proxies(self.proxy)),
            strategy=self.strategy,
            effort=self.effort,
            **lengths,
            finalists=self.finalists,
            seed=seed,
            split=SplitSettings("fixed", validation_fraction=self.validation_fraction),
            patch_size=self.patch_size,
            band_group=self.band_group,
            bands=self.bands,
            scaling=self.scaling,
            recipe=recipe,
            smooth=self.smooth,
            self_training=self.self_training,
        )

    def _model(self) -> DeployedModel:
        check_is_fitted(self)
        if self._deployed is None:
            self._deployed = DeployedModel.from_bytes(
                self._content, "the fitted model", self.device
            )
        return self._deployed
