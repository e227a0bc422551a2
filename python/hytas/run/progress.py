"""The events of a run, and who receives them."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from hytas.errors import SlowerWarning, escaped
from hytas.race import RaceProgress, RungEnd
from hytas.search import SearchProgress
from hytas.train import Epoch


class Report:
    """Receives the events of a run; a subclass overrides the methods of the events that it shows.

    | event | when |
    |---|---|
    | `plan` | the run begins: the names of its stages, in order |
    | `stage` | a stage of the run begins |
    | `line` | a detail, for `run.log` |
    | `notice` | a fact that a user should see: a warning, a repaired file |
    | `reference` | a reference method was fitted; after the search and as the race begins |
    | `search` | candidates were scored, at least once a generation (`SearchProgress`) |
    | `training` | a training of the race ended (`RaceProgress`) |
    | `rung` | a rung of the race ended (`RungEnd`) |
    | `epoch` | an epoch of the final training ended |
    | `end` | the run has ended: figures of the test and the cost, by name |
    | `pixels` | some of the pixels went through the model, or through other long work |
    """

    def plan(self, stages: Sequence[str]) -> None:
        """Show which stages the run has; those that are done already are among them."""

    def stage(self, name: str) -> None:
        """Show that a stage begins."""

    def line(self, text: str) -> None:
        """Show a detail."""

    def notice(self, text: str) -> None:
        """Show a fact that a user should see; by default as a line."""
        self.line(text)

    def reference(self, title: str, accuracy: float, pixels: int) -> None:
        """Show the accuracy of a reference method on `pixels` validation pixels."""

    def search(self, progress: SearchProgress) -> None:
        """Show how far the search is."""

    def training(self, progress: RaceProgress) -> None:
        """Show that a training of the race ended."""

    def rung(self, rung: RungEnd) -> None:
        """Show the finalists of a rung that ended."""

    def epoch(self, epoch: Epoch) -> None:
        """Show a finished epoch of the final training."""

    def end(self, figures: Mapping[str, float]) -> None:
        """Show that the run has ended, with names such as "test/OA" and "cost/cpu_seconds"."""

    def pixels(self, work: str, done: int, total: int) -> None:
        """Show that `done` of `total` pixels went through `work`."""


EVENTS = tuple(name for name in vars(Report) if not name.startswith("_"))
"""The methods of `Report`."""

SILENT = Report()
"""A report that ignores everything."""


class Logged(Report):
    """Writes details and notices to a log file, and passes all events on."""

    def __init__(self, report: Report, log: TextIO) -> None:
        self._report, self._log, self._slower = report, log, False
        for name in EVENTS:
            if name not in ("stage", "line", "notice"):
                setattr(self, name, getattr(report, name))

    def stage(self, name: str) -> None:
        self._write(f"stage: {name}")
        self._report.stage(name)

    def line(self, text: str) -> None:
        self._write(text)
        self._report.line(text)

    def notice(self, text: str) -> None:
        self._write(text)
        self._report.notice(text)

    def _write(self, text: str) -> None:
        if self._log.closed:  # the run has ended
            return
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        self._log.write(f"{now}  {escaped(text)}\n")

    def warning(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        """Write a warning of a library; takes the place of `warnings.showwarning`.

        Notify of what hytas itself warns of, once.
        """
        if not issubclass(category, SlowerWarning):
            self._write(f"{category.__name__}: {message}")
        elif not self._slower:
            self._slower = True
            self.notice(str(message))


@contextmanager
def logged(report: Report, path: Path) -> Iterator[Report]:
    """Yield a report that also appends to the log at `path`, where warnings of libraries go too."""
    usual = warnings.showwarning
    with path.open("a", encoding="utf-8", buffering=1) as file:
        log = Logged(report, file)
        warnings.showwarning = log.warning
        try:
            yield log
        finally:
            warnings.showwarning = usual
