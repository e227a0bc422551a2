"""Fits of reference methods, which begin before a stage needs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from hytas.data import LabelledData, Scene, Split
from hytas.references import Predicted, ReferenceSettings, fit_method
from hytas.types import Pixels
from hytas.workers import Shared, WorkersLike, open_workers, spare_processes

if TYPE_CHECKING:
    from hytas.workers.local import LocalProcesses


class Wanted(NamedTuple):
    """A fit of a method to the training pixels of a split, which predicts its test pixels.

    Attributes:
        split: whose seed is that of the fit.
        smoothed: flat indices of test pixels whose predictions are smoothed, too; or None.
    """

    method: str
    split: Split
    smoothed: Pixels | None = None

    @property
    def key(self) -> Hashable:
        """Return what decides the result."""
        pixels = self.split.train_and_validation, self.split.test, self.smoothed
        texts = (None if each is None else each.tobytes() for each in pixels)
        return self.method, self.split.seed, *texts


class ReferenceFits:
    """Fits reference methods of a run, in parallel with other stages or when they are needed.

    Args:
        workers: of the run; those of other machines fit nothing ahead, and neither does one.
        parallel: whether fits run in parallel; those on images take long and much memory.
    """

    def __init__(
        self, data: LabelledData, settings: ReferenceSettings, workers: WorkersLike, parallel: bool
    ) -> None:
        self._data, self._settings, self._workers = data, settings, workers
        self._parallel = parallel
        self._bytes = data.cube.nbytes if isinstance(data, Scene) else 0
        self._spare: LocalProcesses | None = None
        self._begun: dict[Hashable, Callable[[], Predicted]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def begin(self, wanted: Iterable[Wanted]) -> bool:
        """Begin fits in processes of this machine that no stage uses.

        Returns:
            Whether it has such processes.
        """
        jobs = [each for each in wanted if each.key not in self._begun]
        if self._spare is None and self._parallel:
            self._spare = spare_processes(self._workers, self._bytes)
            if self._spare is not None:
                self._shared = self._spare.share(self._data)
        if self._spare is None:
            return False
        try:
            calls = self._spare.begin(_fit, [(self._shared, self._settings, each) for each in jobs])
        except OSError:  # a process was killed; what it had begun is fitted when it is needed
            self._close()
            return False
        self._begun.update((each.key, call) for each, call in zip(jobs, calls, strict=True))
        return True

    def results(self, wanted: Sequence[Wanted], *, here: bool = False) -> Iterator[Predicted]:
        """Yield the result of each fit, in their order.

        Args:
            wanted: fits; those not begun are done now.
            here: in this process, and not on the workers of the run.
        """
        fits: dict[Hashable, Predicted] = {}
        try:
            for each in wanted:
                if each.key in self._begun:
                    fits[each.key] = self._begun.pop(each.key)()
        except OSError:
            self._close()
        if not self._begun:
            self._close()
        here = here or (self._workers is None and not self._parallel)
        left = [each for each in wanted if each.key not in fits]
        now = self._now(left, 1 if here else self._workers)
        for each in wanted:
            yield fits[each.key] if each.key in fits else next(now)

    def _now(self, wanted: Sequence[Wanted], workers: WorkersLike) -> Iterator[Predicted]:
        if not wanted:
            return
        with open_workers(workers, sent_bytes=self._bytes) as pool:
            shared = pool.share(self._data)
            jobs = ((shared, self._settings, each) for each in wanted)
            yield from pool.run(_fit, jobs, len(wanted))

    def _close(self) -> None:
        """End the processes, with what they have begun and no one has read."""
        self._begun.clear()
        if self._spare is not None:
            self._spare.close()
            self._spare = None


def _fit(shared: Shared[LabelledData], settings: ReferenceSettings, wanted: Wanted) -> Predicted:
    method, split, smoothed = wanted
    return fit_method(shared.get(), split, settings, method, smoothed=smoothed)
