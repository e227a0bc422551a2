from .tables import RankingTable, read_table, read_tables

__all__ = ["RankingTable", "read_table", "read_tables"]
