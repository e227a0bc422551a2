"""What a run says on a terminal or in a log."""

import sys
import time

import click

from hytas.search import SearchProgress
from hytas.train import Epoch

LOG_SECONDS = 5.0


class Console:
    """A `Report` on standard error: one live line on a terminal, a line now and then in a log."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = False
        self._last = 0.0
        self._work = ""

    def line(self, text: str) -> None:
        """Print a fact on a line of its own."""
        self._clear()
        click.echo(text, err=True)

    def search(self, progress: SearchProgress) -> None:
        """Show generation, evaluations, best score, rate and time left."""
        self._show(
            "search",
            f"search: generation {progress.generation}, "
            f"evaluations {progress.evaluated}/{progress.evaluations}, "
            f"best score {progress.best:.6g}, {progress.rate:.1f}/s, "
            f"{duration(progress.remaining)} left",
            progress.evaluated >= progress.evaluations,
        )

    def epoch(self, epoch: Epoch) -> None:
        """Show epoch, losses, validation accuracy and the time left if all epochs are run."""
        validation = (
            ""
            if epoch.validation_oa is None
            else f", validation loss {epoch.validation_loss:.3f}, OA {epoch.validation_oa:.3f}"
        )
        left = (epoch.epochs - epoch.epoch) * epoch.seconds
        self._show(
            "retrain",
            f"retrain: epoch {epoch.epoch}/{epoch.epochs}, loss {epoch.loss:.3f}{validation}, "
            f"at most {duration(left)} left",
            epoch.epoch == epoch.epochs,
        )

    def pixels(self, work: str, done: int, total: int) -> None:
        """Show pixels done."""
        self._show(work, f"{work}: {done}/{total} pixels", done >= total)

    def close(self) -> None:
        """End the live line."""
        self._clear()

    def _show(self, work: str, text: str, last: bool) -> None:
        now = time.monotonic()
        if self._live:
            click.echo(f"\r\x1b[2K{text}", nl=False, err=True)
            self._shown = True
        elif last or work != self._work or now - self._last >= LOG_SECONDS:
            click.echo(text, err=True)
            self._last = now
        self._work = work

    def _clear(self) -> None:
        if self._shown:
            click.echo("", err=True)  # the last state of the live line stays readable
            self._shown = False


def duration(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
