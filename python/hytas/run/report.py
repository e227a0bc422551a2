"""What a run tells while it works; the command line shows it, a library call may leave it out."""

from typing import Protocol

from hytas.search import SearchProgress
from hytas.train import Epoch


class Report(Protocol):
    """Receives the progress of a run."""

    def line(self, text: str) -> None:
        """A fact worth a line of its own."""

    def search(self, progress: SearchProgress) -> None:
        """The search went on."""

    def epoch(self, epoch: Epoch) -> None:
        """An epoch of retraining is done."""

    def pixels(self, work: str, done: int, total: int) -> None:
        """`done` of `total` pixels went through `work`."""


class Silent:
    """A report that nobody reads."""

    def line(self, text: str) -> None:
        """Ignore."""

    def search(self, progress: SearchProgress) -> None:
        """Ignore."""

    def epoch(self, epoch: Epoch) -> None:
        """Ignore."""

    def pixels(self, work: str, done: int, total: int) -> None:
        """Ignore."""


SILENT = Silent()
