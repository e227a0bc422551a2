"""What a searched network has to beat, on the same pixels."""

from hytas.baselines.results import Results
from hytas.baselines.runner import BaselineSettings, run_baselines
from hytas.baselines.table import METHODS, parse_methods
from hytas.baselines.task import Fit, Task

__all__ = [
    "METHODS",
    "BaselineSettings",
    "Fit",
    "Results",
    "Task",
    "parse_methods",
    "run_baselines",
]
