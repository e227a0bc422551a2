from .config import RunConfig
from .folder import RunFolder
from .outcome import Outcome, describe_architecture
from .progress import SILENT, Report
from .reading import RunRecords, read_run
from .settings import EFFORTS
from .supernets.evolving import Evolved, evolve_space
from .supernets.family import Member, export_family, train_supernet
from .supernets.subnet_ranks import RankCorrelation, rank_subnets

__all__ = [
    "EFFORTS",
    "SILENT",
    "Evolved",
    "Member",
    "Outcome",
    "RankCorrelation",
    "Report",
    "RunConfig",
    "RunFolder",
    "RunRecords",
    "describe_architecture",
    "evolve_space",
    "export_family",
    "rank_subnets",
    "read_run",
    "train_supernet",
]
