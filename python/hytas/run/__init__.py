"""Run a search from scene to model: configuration, folder, and the stages that fill it."""

from hytas.run.config import RunConfig
from hytas.run.folder import RunFolder
from hytas.run.pipeline import (
    Outcome,
    describe_architecture,
    export_run,
    run_pipeline,
    train_architecture,
)
from hytas.run.report import SILENT, Report

__all__ = [
    "SILENT",
    "Outcome",
    "Report",
    "RunConfig",
    "RunFolder",
    "describe_architecture",
    "export_run",
    "run_pipeline",
    "train_architecture",
]
