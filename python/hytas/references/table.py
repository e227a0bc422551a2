"""The table of methods. A new method is a function `(task, progress) -> fit` and a line here."""

import importlib
from collections.abc import Callable
from typing import NamedTuple

from hytas.data import ImageSet, LabelledData, Spectra
from hytas.errors import InputError
from hytas.plugins import fill
from hytas.references.task import FitProgress, Predicted, Task
from hytas.tasks import task_of


class Method(NamedTuple):
    """Module and function of a method; it is imported when it runs, because some need torch.

    Attributes:
        device: whether it trains on `Task.device`.
        own: the function of a plug-in, in place of module and function.
    """

    module: str
    function: str
    title: str
    device: bool = False
    own: Callable[[Task, FitProgress], Predicted] | None = None

    def load(self) -> Callable[[Task, FitProgress], Predicted]:
        """Import and return the function."""
        if self.own is not None:
            return self.own
        function: Callable[[Task, FitProgress], Predicted] = getattr(
            importlib.import_module(self.module), self.function
        )
        return function


CLASSICAL = "hytas.references.classical"
PUBLISHED = "hytas.lab.published.networks"
REGRESSION = "hytas.references.regression"
METHODS = {
    "svm": Method(CLASSICAL, "svm", "SVM (RBF) on spectra"),
    "rf": Method(CLASSICAL, "random_forest", "random forest on spectra"),
    "lda": Method(CLASSICAL, "shrinkage_lda", "LDA (shrinkage) on spectra"),
    "logistic": Method(CLASSICAL, "logistic_regression", "logistic regression on spectra"),
    "plsda": Method(CLASSICAL, "plsda", "PLS-DA on spectra"),
    "plsr": Method(REGRESSION, "plsr", "PLSR on spectra"),
    "ridge": Method(REGRESSION, "ridge_regression", "ridge regression on spectra"),
    "svr": Method(REGRESSION, "svr", "SVR (RBF) on spectra"),
    "forest": Method(REGRESSION, "forest", "random forest on spectra"),
    "fcls": Method(REGRESSION, "fcls", "fully constrained least squares on spectra"),
    "spectralformer": Method(
        PUBLISHED, "spectralformer", "SpectralFormer, published size", device=True
    ),
    "s2mamba": Method(PUBLISHED, "s2mamba", "S2Mamba, published recipe", device=True),
    "gscvit": Method(PUBLISHED, "gscvit", "GSC-ViT, published recipe", device=True),
    "hytas": Method(PUBLISHED, "hytas", "HyTAS, published recipe", device=True),
}
fill("reference", METHODS, lambda name, entry: Method("", "", entry[1], own=entry[0]))


def classical_methods(data: LabelledData) -> tuple[str, ...]:
    """Return the methods that take seconds: those on single spectra, or on whole images."""
    kind = "images" if isinstance(data, ImageSet) else "scene"
    return task_of(data).methods["table" if isinstance(data, Spectra) else kind]


def title_of(name: str, data: LabelledData) -> str:
    """Return the title of a method on these data."""
    return METHODS[name].title.replace("spectra", data.kind)


def parse_methods(text: str) -> list[str]:
    """Return the names in a comma-separated text, in order and without repeats.

    Raises:
        InputError: there is no name, or a name is unknown.
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        value = unknown[0] if unknown else text
        raise InputError("methods", value, f"choose from {', '.join(METHODS)}")
    return names
