"""An estimator of continuous targets of spectra, with the conventions of scikit-learn."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hytas.data import as_spectra, scene_from_arrays
from hytas.data.scene import unmasked
from hytas.data.targets import checked_targets
from hytas.deploy import DeployedModel
from hytas.deploy.values import row_values
from hytas.errors import InputError
from hytas.estimator.arguments import Parameters, checked, described, python_arguments, seed_of
from hytas.estimator.classifier import HSIClassifier
from hytas.estimator.persistence import keep, run_folder
from hytas.job import run_pipeline
from hytas.train.presets import USUAL_VALUE_PRESETS


class HSIRegressor(RegressorMixin, BaseEstimator, Parameters):  # type: ignore[misc]
    """Search, train and export a model of continuous targets of spectra.

    Attributes:
        n_features_in_: bands.
        architecture_: the winner, a plain mapping.
        outcome_: `hytas.Outcome` of the run.
        run_dir_: folder of the run, a `pathlib.Path`.
        seed_: the seed used; drawn if `random_state` is None.
    """

    def fit(self, spectra: Any, targets: Any, groups: Any = None) -> Self:
        """Search for the best architecture under the budget, train it, and export and check it.

        Args:
            spectra: (n, bands), raw values.
            targets: (n,) or (n, T); NaN where a target is missing.
            groups: (n,) group of each spectrum; none is divided between training and validation.

        Raises:
            InputError: arrays that are no table, or settings that do not fit them.
            ExportError: the exported file gives other results than torch.
            OSError: the work folder cannot be written.
        """
        settings, cube = checked(self), unmasked("cube", spectra)
        values = np.asarray(targets, np.float64)
        if cube.ndim != 2 or values.ndim not in (1, 2) or len(values) != len(cube):
            rule = f"{cube.shape} and targets {values.shape}: (n, bands) and n values are needed"
            raise InputError("cube", rule=rule)
        columns = values.reshape(len(values), -1)
        names = [f"target {at}" for at in range(1, columns.shape[1] + 1)]
        with python_arguments():
            continuous, labelled = checked_targets("targets", names, columns)
            labels = labelled.astype(np.int32)[:, None]
            scene = scene_from_arrays(
                cube[:, None],
                labels,
                name="cube",
                bands=self.bands,
                nodata=self.nodata,
                targets=continuous,
            )
            scene = as_spectra(scene, groups)
            # The caller of `fit` has split already: all spectra train.
            scene = replace(scene, train=scene.labels, test=scene.labels)
            seed = seed_of(self.random_state)
            config = HSIClassifier._config(self, settings, seed)
            config = replace(config, presets=",".join(USUAL_VALUE_PRESETS))
        folder, forget = run_folder(self, self.work_dir, config, scene)
        try:
            with python_arguments():
                outcome = run_pipeline(config, scene, folder, device=self.device, references=False)
        except BaseException:  # an earlier fit stays
            forget()
            raise
        getattr(self, "_forget", keep)()
        self._forget = forget
        self._content = (folder / "model.onnx").read_bytes()
        self._single = values.ndim == 1
        self.n_features_in_ = scene.bands
        self.architecture_, self.outcome_ = outcome.architecture, outcome
        self.run_dir_, self.seed_ = folder, seed
        return self

    def predict(self, spectra: Any) -> Any:
        """Return the values (n,) or (n, T) of spectra (n, bands); NaN without data.

        Raises:
            NotFittedError: before `fit`.
            InputError: another number of bands.
        """
        check_is_fitted(self, "architecture_")
        cube = unmasked("cube", spectra)
        if cube.ndim != 2 or cube.shape[1] != self.n_features_in_:
            rule = f"{cube.shape}: (n, {self.n_features_in_}) is needed"
            raise InputError("cube", rule=rule)
        model = DeployedModel.from_bytes(self._content, "the fitted model", self.device)
        values = row_values(model, cube, None).astype(np.float64)
        return values[:, 0] if self._single else values

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: settings and model."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_forget", None)
        return state


HSIRegressor.__doc__ = f"{HSIRegressor.__doc__}\n\nArgs:\n{described()}\n"
