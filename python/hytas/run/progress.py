"""Receivers of a run's progress; the command line shows it, a library call may ignore it."""

import sys
from typing import Protocol

from hytas.search import SearchProgress
from hytas.train import Epoch


class Report(Protocol):
    """Receives the progress of a run."""

    def line(self, text: str) -> None:
        """Show a fact on a line of its own."""

    def search(self, progress: SearchProgress) -> None:
        """Show how far the search is."""

    def epoch(self, epoch: Epoch) -> None:
        """Show a finished epoch of the final training."""

    def pixels(self, work: str, done: int, total: int) -> None:
        """Show that `done` of `total` pixels went through `work`."""


class Silent:
    """A report that ignores everything."""

    def line(self, text: str) -> None:
        """Ignore."""

    def search(self, progress: SearchProgress) -> None:
        """Ignore."""

    def epoch(self, epoch: Epoch) -> None:
        """Ignore."""

    def pixels(self, work: str, done: int, total: int) -> None:
        """Ignore."""


SILENT = Silent()


class Lines(Silent):
    """A report that prints its facts to standard error."""

    def line(self, text: str) -> None:
        """Print a fact."""
        print(text, file=sys.stderr)

    def epoch(self, epoch: Epoch) -> None:
        """Print every tenth epoch, and the last."""
        if epoch.epoch % 10 == 0 or epoch.epoch == epoch.epochs:
            self.line(f"train: epoch {epoch.epoch}/{epoch.epochs}, loss {epoch.loss:.3f}")
