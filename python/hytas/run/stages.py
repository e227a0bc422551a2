"""The stages of a run, in their order: what each reads and writes, and what is there already."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hytas.run.context import Run
from hytas.run.delivering import charts_stage, export_stage, map_stage
from hytas.run.folder import RunFolder
from hytas.run.searching import race_stage, search_stage
from hytas.run.training import seeds_stage, train_stage


@dataclass(frozen=True)
class Stage:
    """One step of a run; files are named as the attributes of `RunFolder`.

    Attributes:
        name: of the stage.
        work: does it.
        reads: files that an earlier stage wrote.
        writes: files that it leaves.
        done_by: files that show that it is done; None takes `writes`. Without any the stage looks
            for itself what is there, each time.
    """

    name: str
    work: Callable[[Run], None]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    done_by: tuple[str, ...] | None = None

    def is_done(self, folder: RunFolder) -> bool:
        """Return whether the folder holds what the stage would bring."""
        files = self.writes if self.done_by is None else self.done_by
        return bool(files) and all(getattr(folder, name).exists() for name in files)


def run_stages(stages: Sequence[Stage], run: Run) -> None:
    """Do the stages whose files are not there yet, in their order."""
    for stage in stages:
        if not stage.is_done(run.folder):
            stage.work(run)


def _seeds(run: Run) -> None:
    seeds_stage(run, lambda inner: run_stages((TRAIN, EXPORT), inner))


# The store grows until the race has a winner.
SEARCH = Stage("search", search_stage, (), ("evaluations",), done_by=("architecture",))
RACE = Stage("race", race_stage, ("evaluations",), ("architecture",))
TRAIN = Stage(
    "final training", train_stage, ("architecture",), ("weights", "calibration"), ("weights",)
)
EXPORT = Stage("export", export_stage, ("weights",), ("onnx", "torchscript", "metrics"))
CHARTS = Stage("charts", charts_stage, ("metrics",), ("learning_curve", "confusion"))
MAP = Stage("map", map_stage, ("onnx",), ("map",))
SEEDS = Stage("seeds", _seeds, ("architecture", "metrics"), ("metrics", "evaluations"), done_by=())

CHOOSING = (SEARCH, RACE)
FINISHING = (TRAIN, EXPORT, CHARTS, MAP, SEEDS)
