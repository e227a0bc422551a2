from .ranking import analyse_table, analyse_tables
from .tables import RankingTable, read_table, read_tables

__all__ = [
    "RankingTable",
    "analyse_table",
    "analyse_tables",
    "read_table",
    "read_tables",
]
