"""Reference methods: a searched network has to beat them on the same pixels."""

from hytas.references.results import ReferenceResults
from hytas.references.runner import (
    bounded_split,
    figures_by_scene,
    figures_of_test,
    fit_method,
    run_references,
)
from hytas.references.table import METHODS, classical_methods, parse_methods, title_of
from hytas.references.task import Predicted, ReferenceSettings, Task
from hytas.tasks.classes import RACE_METHODS

__all__ = [
    "METHODS",
    "RACE_METHODS",
    "Predicted",
    "ReferenceResults",
    "ReferenceSettings",
    "Task",
    "bounded_split",
    "classical_methods",
    "figures_by_scene",
    "figures_of_test",
    "fit_method",
    "parse_methods",
    "run_references",
    "title_of",
]
