"""An estimator of continuous targets of spectra, with the conventions of scikit-learn."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from hytas.data import Scene, load_scene, scene_from_arrays
from hytas.data.data_array import is_data_array
from hytas.data.scene import unmasked
from hytas.data.spectra.table import as_spectra
from hytas.data.targets import checked_targets
from hytas.deploy import DeployedModel
from hytas.deploy.values import predict_scene, row_values
from hytas.errors import InputError
from hytas.estimator.arguments import (
    Parameters,
    checked,
    described,
    python_arguments,
    seed_of,
    with_names,
)
from hytas.estimator.classifier import HSIClassifier
from hytas.estimator.persistence import Persistent, fit_run
from hytas.train.presets import USUAL_VALUE_PRESETS
from hytas.types import Floats, Pixels

STEPS, MOST_COPIES = 8, 64
"""Copies of a row of the mean weight, where weights are no multiples; and of any row, at most."""


class HSIRegressor(RegressorMixin, Persistent, BaseEstimator, Parameters):  # type: ignore[misc]
    """Search, train and export a model of continuous targets of spectra, or of pixels of a cube.

    Attributes:
        n_features_in_: bands.
        feature_names_in_: (bands,) names of the columns, if `fit` got a `pandas.DataFrame`.
        architecture_: the winner, a plain mapping.
        outcome_: `hytas.Outcome` of the run.
        run_dir_: folder of the run, a `pathlib.Path`.
        seed_: the seed used; drawn if `random_state` is None.
    """

    def fit(self, spectra: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Search for the best architecture under the budget, train it, and export and check it.

        Args:
            spectra: spectra (n, bands), raw values; or a cube (H, W, bands), also as an
                `xarray.DataArray`, whose pixels are read with their neighbours.
            y: (n,) or (n, T); NaN where a target is missing. Of a cube (H, W) or (H, W, T).
            groups: (n,) group of each spectrum; none is divided between training and validation.
            sample_weight: (n,) weight of each spectrum: one of weight 2 counts as two, in steps of
                an eighth of the mean weight; whole multiples of the least one are exact.

        Raises:
            InputError: arrays that do not fit each other, or settings that do not fit them.
            ExportError: the exported file gives other results than torch.
            OSError: the work folder cannot be written.
        """
        settings = checked(self)
        if _is_cube(spectra):
            if groups is not None or sample_weight is not None:
                argument = "sample_weight" if groups is None else "groups"
                raise InputError(argument, rule="is for spectra (n, bands), and a cube is given")
            scene, self._single = self._cube(spectra, y), np.ndim(y) == 2
            self.n_features_in_ = scene.bands
        else:
            scene = self._table(spectra, y, groups, sample_weight)
        # The caller of `fit` has split already: all samples train.
        scene = replace(scene, train=scene.labels, test=scene.labels)
        with python_arguments():
            seed = seed_of(self.random_state)
            config = HSIClassifier._config(self, settings, seed)
            group = config.band_group if config.band_group <= scene.bands else 1
            presets = ",".join(USUAL_VALUE_PRESETS)
            config = replace(config, presets=presets, task="values", band_group=group)
        fit_run(self, config, scene, rows=False)
        return self

    def _table(self, spectra: Any, y: Any, groups: Any, sample_weight: Any) -> Scene:
        """Return spectra as a scene of one column."""
        unmasked("spectra", spectra)
        spectra = validate_data(self, with_names(spectra), ensure_min_features=2)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = check_array(
            y, ensure_all_finite="allow-nan", ensure_2d=False, dtype=float, input_name="y"
        )
        check_consistent_length(spectra, y, groups)
        self._single = y.ndim == 1
        values = y.reshape(len(y), -1)
        if sample_weight is not None:
            rows = repeated(_check_sample_weight(sample_weight, spectra, ensure_non_negative=True))
            # A fold must not divide the copies of a row.
            groups = (np.arange(len(spectra)) if groups is None else np.asarray(groups))[rows]
            spectra, values = spectra[rows], values[rows]
        names = [f"target {at}" for at in range(1, values.shape[1] + 1)]
        with python_arguments():
            continuous, labelled = checked_targets("y", names, values)
            facts = {"bands": self.bands, "nodata": self.nodata, "targets": continuous}
            labels = labelled.astype(np.int32)[:, None]
            return as_spectra(
                scene_from_arrays(spectra[:, None], labels, name="cube", **facts), groups
            )

    def _cube(self, spectra: Any, y: Any) -> Scene:
        from xarray import DataArray

        cube = (
            spectra
            if is_data_array(spectra)
            else DataArray(unmasked("spectra", spectra), dims=("y", "x", "band"))
        )
        with python_arguments():
            return load_scene(cube, y, task="values", bands=self.bands, nodata=self.nodata)

    def predict(self, spectra: Any) -> Any:
        """Return the values (n,) or (n, T) of spectra, or (H, W) or (H, W, T) of a cube.

        They are NaN without data. Of a `DataArray` they are one, with the dimension "target".

        Raises:
            NotFittedError: before `fit`.
            InputError: another number of bands, or a cube smaller than a patch.
        """
        check_is_fitted(self, "architecture_")
        model = DeployedModel.from_bytes(self._content, "the fitted model", self.device)
        if _is_cube(spectra):
            values = predict_scene(model, spectra)
            return values[..., 0] if self._single else values
        unmasked("spectra", spectra)
        spectra = validate_data(self, with_names(spectra), reset=False)
        values = row_values(model, spectra, self.nodata).astype(np.float64)
        return values[:, 0] if self._single else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        return tags


def _is_cube(given: Any) -> bool:
    return is_data_array(given) or getattr(given, "ndim", 2) == 3


def repeated(weights: Floats) -> Pixels:
    """Return rows, each as often as its weight says."""
    positive = weights[weights > 0]
    if not len(positive):
        raise ValueError("sample_weight must hold a positive weight")
    counts = weights / positive.min()
    if counts.max() > MOST_COPIES or abs(counts - np.rint(counts)).max() > 1e-6:
        counts = np.minimum(STEPS * weights / positive.mean(), MOST_COPIES)
    return np.repeat(np.arange(len(weights)), np.rint(counts).astype(np.int64))


HSIRegressor.__doc__ = f"{HSIRegressor.__doc__}\n\nArgs:\n{described()}\n"
