"""An estimator that searches, trains and exports, with the conventions of scikit-learn."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_feature_names, _get_feature_names, check_is_fitted

from hytas.data import Scene, SplitSettings, scene_from_arrays
from hytas.data.data_array import is_data_array
from hytas.data.limits import by
from hytas.data.options import read_class_names
from hytas.data.scene import unmasked
from hytas.data.spectra.table import as_spectra
from hytas.data.splits.cross_validation import CubePixels
from hytas.deploy import DeployedModel, classify_scene
from hytas.deploy.scene import probability_rows
from hytas.errors import InputError
from hytas.estimator.arguments import (
    SHARED,
    GivenCube,
    Parameters,
    checked,
    described,
    given_cube,
    label_map,
    labels_of_rows,
    names_by_id,
    python_arguments,
    seed_of,
    with_names,
)
from hytas.estimator.persistence import Persistent, file_format, fit_run, write_format, write_onnx
from hytas.run import EFFORTS, RunConfig
from hytas.run.display import Display
from hytas.run.progress import SILENT, Report
from hytas.spaces import parse_budget
from hytas.train import Recipe
from hytas.types import Array


class HSIClassifier(ClassifierMixin, Persistent, BaseEstimator, Parameters):  # type: ignore[misc]
    """Search, train and export a transformer for a labelled cube, as `hytas search` does.

    A sample is a pixel with its neighbours. So the input is the whole cube (H, W, bands), and the
    target is a label map (H, W) with 0 for unlabelled pixels. `fit` trains on every labelled pixel
    that it gets. Score on other pixels, best on pixels that are not neighbours of these:
    `hytas.BlockSplit` gives such pixels to `cross_val_score` and `GridSearchCV`.

    Its parameters are settings of a run; `help(HSIClassifier)` and docs/reference.md list them.

    Attributes:
        classes_: (C,) class ids, in the labels' type; of spectra their labels, also texts.
        n_features_in_: bands of the cube.
        feature_names_in_: (bands,) names of the columns, if `fit` got a `pandas.DataFrame`.
        architecture_: the winner, a plain mapping.
        outcome_: `hytas.Outcome` of the run. Its accuracy is on the pixels that `fit` got.
        run_dir_: folder of the run, a `pathlib.Path`.
        seed_: the seed used; drawn if `random_state` is None.
    """

    def fit(self, cube: Any, labels: Any, groups: Any = None) -> Self:
        """Search for the best architecture under the budget, train it, and export and check it.

        Args:
            cube: (H, W, bands), raw values of the sensor, of any real type; or an
                `xarray.DataArray` with the dimensions y, x and band, whose wavelengths, bad bands
                and no-data value are taken, too; or the pixels of `hytas.BlockSplit.samples`;
                or spectra (n, bands) that are no pixels. `predict` and `score` accept all of these
                as well.
            labels: (H, W) class ids, 0 unlabelled, also as a `DataArray`; or (n,), one id for each
                of these pixels. Of spectra each value is a class, also 0 or a text.
            groups: (n,) group of each of the spectra; none is divided between training and
                validation.

        Raises:
            InputError: arrays that are not a scene, or settings that do not fit the scene.
            ExportError: the exported file gives other results than torch.
            OSError: the work folder cannot be written.
        """
        settings, names = checked(self), _get_feature_names(with_names(cube))
        if isinstance(cube, CubePixels):
            labels, cube = cube.label_map(labels_of_rows(labels, len(cube))), cube.cube
        is_table = not is_data_array(cube) and np.ndim(cube) == 2
        if is_table and np.shape(labels) != np.shape(cube):  # else a cube without bands
            labels = labels_of_rows(labels, len(cube))
        with python_arguments(rows=not is_table):
            scene, values = self._given_scene(cube, labels, groups)
        # The caller of `fit` has split already: all pixels train, and the file is checked on them.
        scene = replace(scene, train=scene.labels, test=scene.labels)
        seed = seed_of(self.random_state)
        with python_arguments():
            config = self._config(settings, seed)
        display: AbstractContextManager[Report] = Display() if self.verbose else nullcontext(SILENT)
        with display as report:
            fit_run(self, config, scene, not is_table, report)
        self._scene: Scene | None = scene
        self._deployed: DeployedModel | None = None
        self.classes_ = values
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _given_scene(self, cube: Any, labels: Any, groups: Any) -> tuple[Scene, Array]:
        """Return the scene, and the user's value of each of its classes."""
        spectra = not is_data_array(cube) and np.ndim(cube) == 2 and np.ndim(labels) == 1
        if groups is not None and not (spectra and np.shape(groups) == np.shape(labels)):
            raise InputError("groups", rule="must be one for each of the spectra (n, bands)")
        values = np.zeros(0)
        if spectra:  # each value is a class, also 0
            cube, given_labels = unmasked("cube", cube)[:, None], unmasked("labels", labels)
            is_labelled = given_labels == given_labels  # not NaN
            values, numbers = np.unique(given_labels[is_labelled], return_inverse=True)
            if len(values) < 2:
                raise InputError("labels", rule="of spectra must hold two classes or more")
            labels = np.zeros((len(is_labelled), 1), np.int32)
            labels[is_labelled, 0] = numbers + 1
        given = given_cube(cube) if is_data_array(cube) else GivenCube(unmasked("cube", cube))
        labels, findings = label_map(labels, given)
        facts: dict[str, Any] = {"findings": list(findings)}
        if given.array is not None:
            names = ("wavelengths", "fwhm", "bad_bands")
            facts |= {name: getattr(given.array.facts, name) for name in names}
            facts["nodata"] = given.array.nodata
            facts["findings"] += given.array.findings
        if self.nodata is not None:
            facts["nodata"] = self.nodata
        if spectra:
            titles = {} if self.class_names is None else read_class_names(self.class_names)
            texts = [titles.get(text, text) for text in map(str, values)]
            facts["class_names"] = dict(enumerate(texts, start=1))
        elif self.class_names is not None:
            facts["class_names"] = names_by_id(self.class_names)
        scene = scene_from_arrays(given.cube, labels, name="cube", bands=self.bands, **facts)
        if spectra:
            return as_spectra(scene, groups), values[np.asarray(scene.class_ids) - 1]
        return scene, np.asarray(scene.class_ids, dtype=labels.dtype)

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
            ValueError: the columns of a `pandas.DataFrame` have other names than in `fit`, or
                another order.
            InputError: another band count, a cube smaller than a patch, values that the fitted
                cube's type cannot hold, or no score for unknown ground.
        """
        with python_arguments():
            model, given = self._model(), self._given(cube)
            classes = classify_scene(
                model,
                given.cube,
                nodata=given.nodata,
                wavelengths=given.wavelengths,
                smooth="none" if given.are_spectra else None,
                unknown=unknown,
            ).labels
            values = self._values(classes, model.card.class_ids)
        return given.shaped(values, "classes")

    def _values(self, classes: Array, ids: tuple[int, ...]) -> Array:
        """Return the user's values of the classes of a map; 0 or an empty text without a class."""
        missing, nothing = classes == 0, type(self.classes_[0])()
        if missing.any() and nothing in self.classes_:
            rule = f"{missing.sum()} spectra have no data or no class, and 0 is a class"
            raise InputError("cube", rule=rule)
        values = self.classes_[np.minimum(np.searchsorted(ids, classes), len(ids) - 1)]
        return np.where(missing, nothing, values)

    def predict_proba(self, cube: Any) -> Any:
        """Return the probabilities (H, W, C) of `classes_`; NaN for a pixel without data.

        Of a `DataArray` they are a `DataArray` with the dimensions of its pixels and "class".

        Raises:
            NotFittedError, ValueError, InputError: as in `predict`.
        """
        with python_arguments():
            model, given = self._model(), self._given(cube)
            model.check_scene(given.cube.shape[2], given.wavelengths)
            rows = probability_rows(
                model, given.cube, nodata=given.nodata, smooth="none" if given.are_spectra else None
            )
            probabilities = np.stack(list(rows))
        probabilities[probabilities.max(axis=2) == 0] = np.nan
        return given.shaped(probabilities, "probability", self.classes_)

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
            name, path = file_format(Path(path), as_format)
            if name == "onnx":
                return write_onnx(path, self._content, self.outcome_)
            return write_format(path, name, self.run_dir_, self._scene, force=force)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.input_tags.allow_nan = True
        return tags

    def _config(self, settings: Mapping[str, Any], seed: int) -> RunConfig:
        recipe = self.recipe or Recipe(steps=EFFORTS[self.effort].steps)
        recipe = recipe if self.epochs is None else recipe.with_epochs(self.epochs)
        if recipe.epochs == 0:
            raise InputError("recipe", "epochs=0", "must be 1 or more; else nothing is trained")
        # `_given_scene` takes the others.
        of_run = SHARED.keys() - {"class_names", "nodata"}
        return RunConfig(
            budget=str(parse_budget(self.budget)),
            data="arrays in memory",
            split=SplitSettings("fixed"),
            seed=seed,
            recipe=recipe,
            **{name: settings[name] for name in of_run} | {"proxy": self.proxy},
        )

    def _given(self, cube: Any) -> GivenCube:
        _check_feature_names(self, with_names(cube), reset=False)
        return given_cube(cube)

    def _model(self) -> DeployedModel:
        check_is_fitted(self)
        if self._deployed is None:
            self._deployed = DeployedModel.from_bytes(
                self._content, "the fitted model", self.device
            )
        return self._deployed


HSIClassifier.__doc__ = f"{HSIClassifier.__doc__}\n\nArgs:\n{described()}\n"
