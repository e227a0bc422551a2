"""The progress of a run, on a terminal or in a log."""

from hytas.cli.progress import Live
from hytas.run.progress import Report
from hytas.search import SearchProgress
from hytas.train import Epoch


class Console(Live, Report):
    """A `Report` that writes to standard error."""

    def search(self, progress: SearchProgress) -> None:
        """Show generation, candidates scored, best score, rate, workers and time left."""
        by = f" by {progress.workers} workers" if progress.workers > 1 else ""
        self.show(
            "search",
            f"search: generation {progress.generation}, "
            f"candidates {progress.evaluated}/{progress.evaluations}, "
            f"best score {progress.best:.6g}, {progress.rate:.1f}/s{by}, "
            f"{duration(progress.remaining)} left",
            progress.evaluated >= progress.evaluations,
        )

    def epoch(self, epoch: Epoch) -> None:
        """Show epoch, losses, validation accuracy, and the time left if no epoch is skipped."""
        validation = (
            ""
            if epoch.validation_oa is None
            else f", validation loss {epoch.validation_loss:.3f}, OA {epoch.validation_oa:.3f}"
        )
        left = (epoch.epochs - epoch.epoch) * epoch.seconds
        self.show(
            "train",
            f"train: epoch {epoch.epoch}/{epoch.epochs}, loss {epoch.loss:.3f}{validation}, "
            f"at most {duration(left)} left",
            epoch.epoch == epoch.epochs,
        )

    def pixels(self, work: str, done: int, total: int) -> None:
        """Show how many pixels are done."""
        self.show(work, f"{work}: {done}/{total} pixels", done >= total)


def duration(seconds: float) -> str:
    """Write seconds as m:ss or h:mm:ss."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
