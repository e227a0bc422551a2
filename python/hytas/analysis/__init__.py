"""Measure tables of trained networks: rankings, genes that matter, simulated searches."""

from typing import TYPE_CHECKING

from hytas.lazy import lazy

if TYPE_CHECKING:
    from hytas.analysis.ranking import analyse_table, analyse_tables
    from hytas.analysis.tables import RankingTable, read_table, read_tables

__all__ = ["RankingTable", "analyse_table", "analyse_tables", "read_table", "read_tables"]

__getattr__ = lazy(__name__, __file__)
