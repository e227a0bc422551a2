"""The finalists of a race that were ranked in the format of a target."""

from pathlib import Path
from typing import Any

from hytas.race import Racer, results_by_racer
from hytas.race.finalists import describe_genes
from hytas.race.results import BEFORE_CONVERSION
from hytas.run.folder import write_json
from hytas.search import EvaluationStore


def write_converted(
    path: Path, target: str, store: EvaluationStore, winner: Racer
) -> list[dict[str, Any]]:
    """Write and return the converted finalists, the winner first, then the most accurate.

    Accuracies are those on held-out pixels, in the format of the target and before conversion.
    """
    architectures = {one.id: one.architecture for one in store.evaluations()}
    last = {key: rungs[-1] for key, rungs in results_by_racer(store.trainings()).items()}
    finalists: list[dict[str, Any]] = [
        {
            "accuracy": result.figures["accuracy"],
            "accuracy_before": result.figures[BEFORE_CONVERSION],
            "won": key == winner.key,
            "recipe": key[1],
            "network": describe_genes(architectures[key[0]]),
            "architecture": architectures[key[0]],
        }
        for key, result in last.items()
        if BEFORE_CONVERSION in result.figures
    ]
    finalists.sort(key=lambda one: (not one["won"], -one["accuracy"]))
    write_json(path, {"target": target, "finalists": finalists})
    return finalists


def describe_conversion(target: str, finalists: list[dict[str, Any]]) -> str:
    """Return one line on what the conversion changed for the winner."""
    if not finalists:
        return f"the race ended before finalists were converted to {target}"
    winner = finalists[0]
    return (
        f"ranked as {target}: the winner has accuracy {winner['accuracy']:.3f} on held-out pixels, "
        f"and {winner['accuracy_before']:.3f} before conversion"
    )
