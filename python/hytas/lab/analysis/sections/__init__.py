"""The sections of an analysis: each measures tables, and shows its figures."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.lab.analysis.settings import AnalysisSettings, Log
    from hytas.lab.analysis.tables import RankingTable
    from hytas.report import Section

# Name -> what it measures. Each is a module with `TITLE`, `measure` and `show`.
SECTIONS = {
    "ranking": "How well each score ranks networks: rho, tau, precision, gain, with intervals.",
    "alike": "Which scores rank alike: correlations between scores, clustered.",
    "genes": "Which genes decide accuracy and scores, also at equal parameters.",
    "predictors": "Predictors with and without proxy scores, over training sizes.",
}


def measure_section(
    name: str, tables: "Sequence[RankingTable]", settings: "AnalysisSettings", log: "Log"
) -> dict[str, Any]:
    """Return the figures of a section for tables, JSON-ready."""
    figures: dict[str, Any] = _module(name).measure(tables, settings, log)
    return figures


def show_section(name: str, measured: Mapping[str, Any]) -> "Section":
    """Return the section that shows figures."""
    show: Callable[[Mapping[str, Any]], Section] = _module(name).show
    return show(measured)


def _module(name: str) -> Any:
    if name not in SECTIONS:
        raise InputError("section", name, f"must be one of {', '.join(SECTIONS)}")
    return import_module(f"hytas.lab.analysis.sections.{name}")
