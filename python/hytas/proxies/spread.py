"""An evaluator whose architectures are scored by workers elsewhere."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hytas.proxies.evaluator import Evaluator
from hytas.proxies.results import Scores
from hytas.workers import Named, Shared, Workers, open_workers

LEAST_BATCH, MOST_BATCH = 32, 256
"""Architectures of a task, unless some workers would get none."""
SECONDS = 10.0
"""A task takes about so long, which hides what it costs to hand it over."""


class SpreadEvaluator:
    """Scores architectures as its `Evaluator` does, a batch a task.

    A score does not depend on the batch, so it is the same to the last bit on any number of
    workers.

    Args:
        evaluator: travels to each worker once.
        workers: that score.
    """

    def __init__(self, evaluator: Evaluator, workers: Workers) -> None:
        self.names = evaluator.names
        self._workers = workers
        self._shared = workers.share(evaluator)
        self._seconds: float | None = None  # of one architecture

    @property
    def chunk(self) -> int:
        """Architectures that keep all workers busy."""
        return self._workers.count * LEAST_BATCH

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[Scores]:
        """Score every architecture; the answer is in their order, and none is missing."""
        size = self._batch(len(architectures))
        batches = [architectures[at : at + size] for at in range(0, len(architectures), size)]
        jobs = ((self._shared, list(batch)) for batch in batches)
        found = list(_joined(self._workers.run(score_batch, jobs, len(batches))))
        if found:
            self._seconds = sum(item["seconds"] for item in found) / len(found)
        return found

    def _batch(self, count: int) -> int:
        wanted = LEAST_BATCH
        if self._seconds:
            wanted = round(min(max(SECONDS / self._seconds, LEAST_BATCH), MOST_BATCH))
        return max(1, min(wanted, math.ceil(count / self._workers.count)))


@contextmanager
def spread_over(
    evaluator: Evaluator, workers: Named, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Evaluator | SpreadEvaluator]:
    """Yield what scores: the evaluator with its threads, or with workers where they are named.

    Args:
        evaluator: that scores.
        workers: where to (`hytas.workers.open_workers`).
        tell: receives a line about them.
    """
    if workers is None:
        yield evaluator
        return
    with open_workers(workers, on_cpu=evaluator.device.type == "cpu") as opened:
        if not opened.elsewhere:
            yield evaluator
            return
        tell(f"workers: {opened.name}, {opened.count} at once")
        yield SpreadEvaluator(evaluator, opened)


def score_batch(shared: Shared[Evaluator], batch: Sequence[Mapping[str, Any]]) -> list[Scores]:
    """Score a batch in a worker."""
    return shared.get().score(batch)


def _joined(parts: Iterator[list[Scores]]) -> Iterator[Scores]:
    for part in parts:
        yield from part
