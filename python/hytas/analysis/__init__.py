"""Measure how well scores rank networks that were trained."""

from hytas.analysis.ranking import analyse_table, analyse_tables
from hytas.analysis.tables import RankingTable, read_table, read_tables

__all__ = ["RankingTable", "analyse_table", "analyse_tables", "read_table", "read_tables"]
