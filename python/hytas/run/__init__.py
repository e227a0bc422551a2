"""Run a search from scene to model: configuration, folder, and the stages that fill it."""

from typing import TYPE_CHECKING

from hytas.lazy import lazy

if TYPE_CHECKING:
    from hytas.run.config import RunConfig
    from hytas.run.folder import RunFolder
    from hytas.run.pipeline import (
        Outcome,
        describe_architecture,
        export_run,
        run_pipeline,
        train_architecture,
    )
    from hytas.run.progress import SILENT, Report
    from hytas.run.reading import RunRecords, read_run
    from hytas.run.settings import EFFORTS
    from hytas.run.supernets.evolving import Evolved, evolve_space
    from hytas.run.supernets.family import Member, export_family, train_supernet
    from hytas.run.supernets.subnet_ranks import Rank, rank_subnets

__all__ = [
    "EFFORTS",
    "SILENT",
    "Evolved",
    "Member",
    "Outcome",
    "Rank",
    "Report",
    "RunConfig",
    "RunFolder",
    "RunRecords",
    "describe_architecture",
    "evolve_space",
    "export_family",
    "export_run",
    "rank_subnets",
    "read_run",
    "run_pipeline",
    "train_architecture",
    "train_supernet",
]

__getattr__ = lazy(__name__, __file__)
