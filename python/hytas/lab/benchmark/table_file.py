"""The file of a benchmark: a line a network, with genes, costs, scores and accuracies."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hytas.files import csv_text, write_text
from hytas.lab.benchmark.training import TRAINED_FIGURES, VALIDATION, trained_name
from hytas.metrics import mean_of_known
from hytas.proxies.score_table import field_text, genes_of
from hytas.search import Evaluation, Training

SECONDS = "train_seconds"


def write_table(
    path: Path,
    evaluations: Sequence[Evaluation],
    trainings: Sequence[Training],
    preset: str,
    seeds: Sequence[int],
) -> None:
    """Write a line for each network as CSV, completely or not at all.

    A figure without a seed, such as "OA", is the mean over the seeds; "OA:seed=0" is that of one.
    An empty field is a value that there is not.

    Args:
        path: replaced as a whole.
    """
    done = {(training.id, training.recipe): training for training in trainings}
    genes = genes_of([item.architecture for item in evaluations])
    columns = [_reached(item, done, preset, seeds) for item in evaluations]
    rows: list[Iterable[str]] = [[*genes, *columns[0]]]
    for item, figures in zip(evaluations, columns, strict=True):
        own = (item.architecture.get(name) for name in genes)
        rows.append(map(field_text, (*own, *figures.values())))
    write_text(path, csv_text(rows))


def _reached(
    item: Evaluation, done: Mapping[tuple[int, str], Training], preset: str, seeds: Sequence[int]
) -> dict[str, Any]:
    """Return the columns of a network that follow its genes."""
    own = {seed: done.get((item.id, trained_name(preset, seed))) for seed in seeds}
    means: dict[str, Any] = {}
    of_seeds: dict[str, Any] = {}
    for name in (*TRAINED_FIGURES, VALIDATION, SECONDS):
        values = {seed: _figure(training, name) for seed, training in own.items()}
        means[name] = mean_of_known(list(values.values()))
        of_seeds |= {f"{name}:seed={seed}": value for seed, value in values.items()}
    failed = {one.recipe: one.reason for one in own.values() if one is not None and one.reason}
    reasons = {**item.reasons, **failed}
    return {
        **item.costs,
        **item.scores,
        "seconds": item.seconds,
        **means,
        **of_seeds,
        "reasons": json.dumps(reasons) if reasons else None,
    }


def _figure(training: Training | None, name: str) -> float | None:
    if training is None or training.reason:
        return None
    return training.seconds if name == SECONDS else training.figures.get(name)
