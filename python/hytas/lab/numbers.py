"""The numbers in the events of a run, by name and step."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from hytas.errors import one_line
from hytas.race import RaceProgress, RungEnd
from hytas.results import short_title
from hytas.run import Report, RunConfig
from hytas.run.progress import EVENTS
from hytas.search import SearchProgress
from hytas.settings import settings_of
from hytas.train import Epoch


class Numbers(Report, ABC):
    """Passes all events on, and writes their numbers; after an error, a notice, and no more."""

    def __init__(self, report: Report, folder: Path, config: RunConfig) -> None:
        values = {name: getattr(config, name) for name in settings_of(RunConfig)}
        given = {name: value for name, value in values.items() if value not in (None, (), [])}
        self.settings = {name: str(value) for name, value in given.items()}
        self.folder, self._report, self._failed = folder, report, False
        self._epochs = self._last = 0
        for name in EVENTS:
            if name not in vars(Numbers):
                setattr(self, name, getattr(report, name))

    @abstractmethod
    def open(self) -> None:
        """Open what the numbers are written to."""

    @abstractmethod
    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers; `step` orders those of one name."""

    @abstractmethod
    def close(self, *, ended: bool) -> None:
        """Close it; `ended` is whether the run did not fail."""

    def __enter__(self) -> Self:
        self._guarded(self.open)
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        self._guarded(lambda: self.close(ended=error is None))

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            if not self._failed:
                work()
        except Exception as error:  # trackers raise errors of many libraries
            self._failed = True
            reason = re.sub(r"//[^/@\s]*@", "//", one_line(error))  # without passwords
            self._report.notice(f"{type(self).__name__}: {reason}; nothing more is written to it")

    def _send(self, step: int, numbers: Mapping[str, float]) -> None:
        finite = {name: float(value) for name, value in numbers.items() if value == value}
        self._guarded(lambda: self.write(step, finite))

    def reference(self, title: str, accuracy: float, pixels: int) -> None:
        self._send(0, {f"reference/{short_title(title)}": accuracy})
        self._report.reference(title, accuracy, pixels)

    def search(self, progress: SearchProgress) -> None:
        numbers = {"search/best": progress.best, "search/generation": progress.generation}
        self._send(progress.evaluated, numbers)
        self._report.search(progress)

    def training(self, progress: RaceProgress) -> None:
        figures = {} if progress.ended is None else progress.ended.figures
        best = {} if progress.best is None else {"race/best": progress.best[1]}
        self._send(progress.steps, {f"race/{name}": figures[name] for name in figures} | best)
        self._report.training(progress)

    def rung(self, rung: RungEnd) -> None:
        first = rung.rows[0]
        numbers = {"rung/finalists": len(rung.rows), "rung/score": first.score}
        accuracy = {} if first.accuracy is None else {"rung/accuracy": first.accuracy}
        self._send(rung.rung, numbers | accuracy)
        self._report.rung(rung)

    def epoch(self, epoch: Epoch) -> None:
        """Write the loss; epochs of self-training and further seeds count on."""
        if epoch.epoch <= self._last:
            self._epochs += self._last
        self._last = epoch.epoch
        accuracy = epoch.validation_oa
        numbers = {} if accuracy is None else {"train/validation_OA": accuracy}
        self._send(self._epochs + epoch.epoch, {"train/loss": epoch.loss} | numbers)
        self._report.epoch(epoch)

    def end(self, figures: Mapping[str, float]) -> None:
        self._send(0, figures)
        self._report.end(figures)
