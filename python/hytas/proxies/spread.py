"""An evaluator whose architectures are scored by workers elsewhere."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from joblib.externals.loky.backend.reduction import dumps

from hytas.proxies.evaluator import Evaluator
from hytas.proxies.results import Scores
from hytas.workers import Named, Shared, Workers, open_workers

FIRST_BATCH, MOST_BATCH = 32, 256
"""Architectures of a task, unless some workers would get none."""
SECONDS = 10.0
"""A task takes about so long, which hides what it costs to hand it over."""
START_SECONDS = 2.0
"""Processes of this machine start when scoring has taken so long without them. Their start takes
3 s on two cores and 13 s on sixteen: a small search does not wait for it."""
ALONE_SECONDS = 0.5
"""Of scoring between two results until then."""


class SpreadEvaluator:
    """Scores architectures as its `Evaluator` does, a batch a task.

    A score does not depend on the batch, so it is the same to the last bit on any number of
    workers.

    Args:
        evaluator: that scores; every worker has a copy.
        workers: that score.
        alone: seconds of scoring by this process before the workers are asked.
    """

    def __init__(self, evaluator: Evaluator, workers: Workers, alone: float = 0.0) -> None:
        self.names = evaluator.names
        self._evaluator = evaluator
        self._workers = workers
        self._shared = workers.share(evaluator)
        self._alone = alone
        self._wanted, self._wanted_alone = FIRST_BATCH, 1

    @property
    def workers(self) -> int:
        """Tasks that run at once."""
        return 1 if self._alone > 0 else self._workers.count

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[Scores]:
        """Score every architecture; the answer is in their order, and none is missing."""
        return [scores for part in self.parts(architectures) for scores in part]

    def parts(self, architectures: Sequence[Mapping[str, Any]]) -> Iterator[list[Scores]]:
        """Score every architecture; yield what each task gives, in their order."""
        while architectures and self._alone > 0:
            part = self._evaluator.score(architectures[: self._wanted_alone])
            architectures = architectures[len(part) :]
            self._alone -= sum(item["seconds"] for item in part)
            self._learn(part)
            yield part
        if not architectures:
            return
        jobs = ((self._shared, batch) for batch in self._batches(architectures))
        for part in self._workers.run(score_batch, jobs, len(architectures)):
            self._learn(part)
            yield part

    def _learn(self, part: Sequence[Scores]) -> None:
        """Choose the size of the next tasks by the time that these scores took."""
        seconds = sum(item["seconds"] for item in part) / len(part)
        self._wanted, self._wanted_alone = (
            round(min(max(wanted / max(seconds, 1e-9), 1), MOST_BATCH))
            for wanted in (SECONDS, ALONE_SECONDS)
        )

    def _batches(
        self, architectures: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[Mapping[str, Any]]]:
        """Yield batches of about the wanted size, as many as give all workers the same work."""
        rest, left = iter(architectures), len(architectures)
        while left > 0:
            each = self.workers
            rounds = math.ceil(left / (self._wanted * each))
            size = math.ceil(left / (rounds * each))
            left -= size * each
            yield from filter(None, (list(islice(rest, size)) for _ in range(each)))


@contextmanager
def spread_over(
    evaluator: Evaluator, workers: Named, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Evaluator | SpreadEvaluator]:
    """Yield what scores: the evaluator alone, or with workers.

    Args:
        evaluator: that scores.
        workers: where to (`hytas.workers.open_workers`). None takes one process a core, once there
            is enough to do (`START_SECONDS`), unless a supernet is too large to be sent to them. A
            GPU then scores from this process.
        tell: receives a line about workers that are named.
    """
    on_cpu = evaluator.device.type == "cpu"
    if workers is None and not on_cpu:
        yield evaluator
        return
    sent = len(dumps(evaluator)) if workers is None else 0
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=sent) as opened:
        if not opened.elsewhere:
            yield evaluator
        elif workers is None:
            yield SpreadEvaluator(evaluator, opened, alone=START_SECONDS)
        else:
            tell(f"workers: {opened.name}, {opened.count} at once")
            yield SpreadEvaluator(evaluator, opened)


def score_batch(shared: Shared[Evaluator], batch: Sequence[Mapping[str, Any]]) -> list[Scores]:
    """Score a batch in a worker."""
    return shared.get().score(batch)
