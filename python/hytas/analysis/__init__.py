"""Measure tables of trained networks: what ranks them, which genes matter, what a search finds."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hytas.analysis.ranking import analyse_table, analyse_tables
    from hytas.analysis.tables import RankingTable, read_table, read_tables

__all__ = ["RankingTable", "analyse_table", "analyse_tables", "read_table", "read_tables"]

_LAZY = {name: "ranking" if name.startswith("analyse") else "tables" for name in __all__}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts fast."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"hytas.analysis.{_LAZY[name]}"), name)
