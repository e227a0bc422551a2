"""The records of a run, for analysis: `hytas.read_run("runs/ip").candidates()`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.run.folder import RunFolder
from hytas.run.times import run_cost
from hytas.search import EvaluationStore
from hytas.spaces import space_of
from hytas.spaces.names import LINEAR_SPACE


@dataclass(frozen=True)
class RunRecords:
    """What a run has recorded, for analysis."""

    folder: Path

    def candidates(self) -> list[dict[str, Any]]:
        """Return a row for each scored candidate: genes, costs, scores by proxy, seconds."""
        with EvaluationStore(RunFolder(self.folder).evaluations, read_only=True) as store:
            items = [
                item
                for item in store.evaluations()
                if item.id >= 0 or space_of(item.architecture) != LINEAR_SPACE
            ]
        return [
            {
                "id": item.id,
                "generation": item.generation,
                **item.architecture,
                **item.costs,
                **item.scores,
                "seconds": item.seconds,
                "reasons": dict(item.reasons),
            }
            for item in items
        ]

    def trainings(self) -> list[dict[str, Any]]:
        """Return a row for each training of the race: candidate, recipe, steps, fold, figures."""
        with EvaluationStore(RunFolder(self.folder).evaluations, read_only=True) as store:
            items = store.trainings()
        names = ("id", "recipe", "steps", "fold", "pixels", "seconds", "reason")
        return [{name: getattr(one, name) for name in names} | dict(one.figures) for one in items]

    def cost(self) -> dict[str, Any]:
        """Return seconds of processors and GPUs, of each stage and in all."""
        return run_cost(RunFolder(self.folder))


def read_run(path: str | Path) -> RunRecords:
    """Open the records of a run; `pandas.DataFrame` takes their rows.

    Raises:
        InputError: `path` is no run.
    """
    folder = RunFolder(path)
    if not folder.evaluations.is_file():
        raise InputError("run", path, "is no folder of a search: it has no evaluations.sqlite")
    return RunRecords(folder.path)
