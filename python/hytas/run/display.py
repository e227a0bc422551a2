"""The progress of a run for people: live on a terminal and in a notebook, else plain lines."""

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from hytas.errors import escaped
from hytas.race import RaceProgress, RungEnd, RungRow
from hytas.results import short_title
from hytas.run.progress import Report
from hytas.search import SearchProgress
from hytas.spaces.genes import describe_kind
from hytas.train import Epoch

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress


PLAIN_SECONDS = 30.0
"""Between two lines of the same work where there is no terminal."""
NOTEBOOK_SECONDS = 0.5
OTHER_COLUMNS = 39
"""Characters of the columns of a rung's table other than the finalist."""
OTHER_WORDS = 70
"""Characters of the live line other than its bar."""
COMPARED = ("search", "race")
"""Stages that show the best finalist next to the reference methods."""
LEAST_SECONDS = 1.0
"""A stage that took less has no line of its own when it ends."""


def duration(seconds: float) -> str:
    """Write seconds as "42 s", "3:07 min" or "1:02:07 h"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    if not hours:
        return f"{minutes}:{whole % 60:02} min"
    return f"{hours}:{minutes:02}:{whole % 60:02} h"


class Display(Report):
    """Shows the events of a run on standard error: one live region, and a table for each rung.

    Without a terminal it prints plain lines: the beginning of each stage, its progress every half a
    minute, and the tables. Details are in the run's `run.log`.

    Use it as a context, or call `close` at the end.
    """

    def __init__(self, console: "Console | None" = None) -> None:
        """Show on `console`; without one on standard error, or below the cell of a notebook."""
        from rich.console import Console

        self._console = console or Console(stderr=True, highlight=False, soft_wrap=False)
        self._notebook = console is None and _in_notebook()
        self._live: Any = None
        self._handle: Any = None
        self._plan: Sequence[str] = ()
        self._number = 0
        self._stage, self._began, self._count = "", time.monotonic(), ""
        self._work, self._share, self._left = "", 0.0, ""
        self._best = ""
        self._references: dict[str, float] = {}
        self._pixels = 0
        self._progress, self._rated = self._measured(0, 1), ""
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._end_stage("done in" if error is None else "stopped after")
        self.close()

    def close(self) -> None:
        """End the live region; what was printed above it stays."""
        self._end_stage()
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
            self._handle = None

    # Events

    def plan(self, stages: Sequence[str]) -> None:
        """Keep the names of the stages, to number them."""
        self._plan, self._number = stages, 0

    def stage(self, name: str) -> None:
        self._end_stage()
        if name in self._plan:  # the trainings of further seeds have the number of their stage
            self._number = max(self._number, self._plan.index(name) + 1)
        self._stage, self._began = name, time.monotonic()
        self._count, self._work, self._share, self._left = "", "", 0.0, ""
        if name not in COMPARED:
            self._best, self._references = "", {}
        planned = not self._plan or name in self._plan
        if planned and not self._console.is_terminal and not self._notebook:
            self._print(f"{self._title()} ...")
        self._last = time.monotonic()
        self._refresh(force=True)

    def notice(self, text: str) -> None:
        """Print a fact on lines of its own."""
        self._print(escaped(text))

    def reference(self, title: str, accuracy: float, pixels: int) -> None:
        """Keep what a reference method reaches, to show it next to the best finalist."""
        self._references[short_title(title)] = accuracy
        self._pixels = pixels
        self._refresh(force=True)

    def search(self, progress: SearchProgress) -> None:
        done, total = min(progress.evaluated, progress.evaluations), progress.evaluations
        self._count = f"{done:,} candidates"
        by = f" by {progress.workers} workers" if progress.workers > 1 else ""
        self._show("search", f"{done:,} of {total:,} candidates{by}", done, total)

    def training(self, progress: RaceProgress) -> None:
        """Show how many trainings of the rung have ended, and the best so far."""
        if progress.best is not None:
            _, accuracy = progress.best
            self._best = f"best so far {three_decimals(accuracy)}"
        work = (
            f"rung {progress.rung} of {progress.rungs}, "
            f"{progress.trained} of {progress.trainings} trainings"
        )
        self._show("race", work, progress.steps, progress.all_steps)

    def rung(self, rung: RungEnd) -> None:
        self._print(rung_table(rung, self._console.width))

    def epoch(self, epoch: Epoch) -> None:
        self._show("epoch", f"epoch {epoch.epoch} of {epoch.epochs}", epoch.epoch, epoch.epochs)

    def pixels(self, work: str, done: int, total: int) -> None:
        self._show(work, f"{work} {done / max(1, total):.0%}", done, total)

    # The live region

    def __rich__(self) -> "RenderableType":
        """Return the live region: stage, work, bar and time left; the best next to the SVM."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1), expand=False)
        words = [self._title(), self._work]
        cells: list[Any] = [Text(": ".join(filter(None, words)), no_wrap=True, overflow="ellipsis")]
        if self._share:
            width = min(30, max(8, self._console.width - OTHER_WORDS))
            cells += [ProgressBar(1.0, min(1.0, self._share), width=width), Text(self._left)]
        grid.add_row(*cells)
        lines: list[RenderableType] = [grid]
        if best := self._comparison():
            lines.append(Text(best, style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*lines)

    def _title(self) -> str:
        """Return the name of the stage with its number, once the plan is known."""
        number = f"stage {self._number} of {len(self._plan)}, " if self._number else ""
        return number + self._stage if self._stage else ""

    def _comparison(self) -> str:
        """Return the best finalist so far next to the reference methods."""
        methods = [
            f"{name} {three_decimals(accuracy)}" for name, accuracy in self._references.items()
        ]
        figures = ", ".join([*filter(None, [self._best]), *methods])
        on = f"({self._pixels:,} validation pixels)" if methods else ""
        return " ".join(filter(None, [figures, on]))

    def _show(self, rated: str, work: str, done: float, total: float) -> None:
        if rated != self._rated:  # what was done before a restart does not count
            self._progress, self._rated = self._measured(done, total), rated
        self._progress.update(self._progress.task_ids[0], completed=done, total=total)
        left = self._progress.tasks[0].time_remaining
        self._left = "" if left is None else f"{duration(left)} left"
        self._work, self._share = work, done / max(1, total)
        self._refresh()

    def _measured(self, done: float, total: float) -> "Progress":
        """Return what measures the rate of a work, from now on."""
        from rich.progress import Progress

        progress = Progress(console=self._console, speed_estimate_period=math.inf)
        progress.add_task("", total=total, completed=int(done))
        return progress

    def _refresh(self, force: bool = False) -> None:
        """Bring the live region up to date, or print a line if none was printed for a while."""
        now = time.monotonic()
        if self._notebook:
            if force or now - self._last >= NOTEBOOK_SECONDS:
                self._last = now
                self._update_cell()
        elif self._console.is_terminal:
            if self._live is None:
                from rich.live import Live

                self._live = Live(self, console=self._console, refresh_per_second=4, transient=True)
                self._live.start()
        elif not force and now - self._last >= PLAIN_SECONDS:
            self._last = now
            work = ": ".join(filter(None, [self._title(), self._work]))
            parts = [work, self._left, self._comparison()]
            self._print(", ".join(filter(None, parts)))

    def _update_cell(self) -> None:
        from IPython.display import display

        parts = [": ".join(filter(None, [self._title(), self._work])), self._left]
        text = "\n".join(filter(None, [", ".join(filter(None, parts)), self._comparison()]))
        bundle = {"text/plain": text}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)

    def _end_stage(self, ended: str = "done in") -> None:
        """Print what a stage took, unless that was next to nothing."""
        seconds = time.monotonic() - self._began
        if self._stage and seconds >= LEAST_SECONDS:
            count = f": {self._count}" if self._count else ""
            self._print(f"{self._stage} {ended} {duration(seconds)}{count}")
        self._stage = ""

    def _print(self, what: "RenderableType") -> None:
        plain = isinstance(what, str) and not self._console.is_terminal  # a log has long lines
        self._console.print(what, markup=False, soft_wrap=plain)


def rung_table(rung: RungEnd, width: int) -> "RenderableType":
    """Return the table of a rung: finalist, recipe, parameters, accuracy, score, and who goes on.

    Args:
        width: columns of the terminal; descriptions of finalists are cut to fit.
    """
    from rich.table import Table
    from rich.text import Text

    last = rung.rung == rung.rungs
    on_folds = f", on {rung.folds} folds" if rung.folds > 1 else ""
    table = Table(
        title=f"rung {rung.rung} of {rung.rungs}: {rung.steps:,} steps each{on_folds}",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 1, 0, 0),
    )
    room = max(16, width - OTHER_COLUMNS)
    table.add_column("finalist", no_wrap=True, overflow="ellipsis", max_width=room)
    table.add_column("recipe", no_wrap=True)
    table.add_column("params", justify="right")
    table.add_column("OA" if rung.figure == "accuracy" else rung.figure, justify="right")
    table.add_column("score", justify="right")
    table.add_column("")
    for row in rung.rows:
        word = ("winner" if last else "kept") if row.kept else ""
        style = "" if row.kept else "dim"
        table.add_row(*(Text(cell, style=style) for cell in (*_row_cells(row), word)))
    return table


def _row_cells(row: RungRow) -> tuple[str, ...]:
    finalist = row.racer.finalist
    params = finalist.costs.get("params")
    return (
        describe_kind(finalist.architecture),
        row.racer.recipe,
        "" if params is None else f"{params:,}",
        three_decimals(row.accuracy),
        three_decimals(row.score),
    )


def three_decimals(value: float | None) -> str:
    """Write a share with three decimals."""
    return "-" if value is None else f"{value:.3f}"


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


class DetailedDisplay(Display):
    """A display of a command that keeps no `run.log`: it prints details, too."""

    def line(self, text: str) -> None:
        """Print a detail on a line of its own."""
        self.notice(text)
