"""Run a search from scene to model: configuration, folder, and the stages that fill it."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hytas.run.config import EFFORTS, RunConfig
    from hytas.run.folder import RunFolder
    from hytas.run.pipeline import (
        Outcome,
        describe_architecture,
        export_run,
        run_pipeline,
        train_architecture,
    )
    from hytas.run.progress import SILENT, Report
    from hytas.run.supernets.evolving import Evolved, evolve_space
    from hytas.run.supernets.family import Member, export_family, train_supernet
    from hytas.run.supernets.subnet_ranks import Rank, rank_subnets

# A module is imported on first use: decisions on arrays need no torch.
_MODULES = {
    "config": ("EFFORTS", "RunConfig"),
    "folder": ("RunFolder",),
    "pipeline": (
        *("Outcome", "describe_architecture", "export_run", "run_pipeline"),
        "train_architecture",
    ),
    "progress": ("SILENT", "Report"),
    "supernets.evolving": ("Evolved", "evolve_space"),
    "supernets.family": ("Member", "export_family", "train_supernet"),
    "supernets.subnet_ranks": ("Rank", "rank_subnets"),
}
_PUBLIC = {name: f"hytas.run.{module}" for module, names in _MODULES.items() for name in names}

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
    "describe_architecture",
    "evolve_space",
    "export_family",
    "export_run",
    "rank_subnets",
    "run_pipeline",
    "train_architecture",
    "train_supernet",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hytas.run' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
