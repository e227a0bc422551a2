"""An evaluator that scores in parallel on workers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from cloudpickle import dumps

from hytas.proxies.evaluator import Evaluator
from hytas.proxies.spec import Scores
from hytas.workers import Shared, Workers, WorkersLike, open_workers

FIRST_BATCH, MOST_BATCH = 32, 256
"""Architectures of a task, if all workers get some."""
SECONDS = 10.0
"""Approximate duration of a task, long enough that its overhead does not matter."""
START_SECONDS, LEAST_START = 4.0, 0.1
"""Least saving of time for which processes of this machine are started, and the share of it that
is left once their server has loaded torch, for which this process would wait."""
ALONE_SECONDS = 0.5
"""Duration of scoring between two results until then."""


class ParallelEvaluator:
    """Scores architectures as its `Evaluator` does, a batch a task.

    A score does not depend on the batch, so it is the same to the last bit on any number of
    workers.

    Args:
        evaluator: that scores; every worker has a copy.
        start: seconds that the workers need to start; this process scores alone until they
            would save as much.
    """

    def __init__(self, evaluator: Evaluator, workers: Workers, start: float = 0.0) -> None:
        self.names = evaluator.names
        self._evaluator = evaluator
        self._workers = workers
        self._shared = workers.share(evaluator)
        self._start, self._alone = start, start > 0
        self._expected = 0
        self._wanted, self._wanted_alone = FIRST_BATCH, 1

    @property
    def workers(self) -> int:
        """Tasks that run at once."""
        return 1 if self._alone else self._workers.count

    def expect(self, count: int) -> None:
        """Set the number of all coming architectures, including the next call."""
        self._expected = count

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[Scores]:
        """Return the scores of each architecture, in their order."""
        return [scores for part in self.parts(architectures) for scores in part]

    def parts(self, architectures: Sequence[Mapping[str, Any]]) -> Iterator[list[Scores]]:
        """Yield the scores of each task, in the order of the architectures."""
        left = max(self._expected, len(architectures))
        while architectures and self._alone:
            part = self._evaluator.score(architectures[: self._wanted_alone])
            architectures = architectures[len(part) :]
            left -= len(part)
            seconds = sum(item["seconds"] for item in part) / len(part)
            saved = left * seconds * (1.0 - 1.0 / self._workers.count)
            self._alone = saved < self._start
            self._set_sizes(part)
            yield part
        if not architectures:
            return
        jobs = ((self._shared, batch) for batch in self._batches(architectures))
        for part in self._workers.run(score_batch, jobs, len(architectures)):
            self._set_sizes(part)
            yield part

    def _set_sizes(self, part: Sequence[Scores]) -> None:
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
def with_workers(
    evaluator: Evaluator, workers: WorkersLike, notify: Callable[[str], None] = lambda _: None
) -> Iterator[Evaluator | ParallelEvaluator]:
    """Yield a scorer: the evaluator alone, or with workers.

    Args:
        workers: see `hytas.workers.open_workers`. None takes one process a core where they
            save more than they take to start (`START_SECONDS`), unless a supernet is too large to
            be sent to them. A GPU then scores from this process.
        notify: receives a line about named workers.
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
            from hytas.workers.local import server_age

            start = max(LEAST_START * START_SECONDS, START_SECONDS - server_age())
            yield ParallelEvaluator(evaluator, opened, start=start)
        else:
            notify(f"workers: {opened.name}, {opened.count} at once")
            yield ParallelEvaluator(evaluator, opened)


def score_batch(shared: Shared[Evaluator], batch: Sequence[Mapping[str, Any]]) -> list[Scores]:
    """Score a batch in a worker."""
    return shared.get().score(batch)
