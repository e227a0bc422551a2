"""What a command prints: results on standard output, progress on standard error."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

import click

from hytas.errors import escaped

LOG_SECONDS = 5.0


def echo(text: str) -> None:
    """Print a result, with control characters escaped: it may hold names from files."""
    click.echo("\n".join(map(escaped, text.split("\n"))))


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row; the first column stands left, the others stand right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


class Live:
    """One line that changes in place on a terminal; a line now and then in a log."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = False
        self._last = 0.0
        self._work = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def line(self, text: str) -> None:
        """Print a fact on a line of its own."""
        self.close()
        click.echo(escaped(text), err=True)

    def show(self, work: str, text: str) -> None:
        """Show how far `work` is; a log always keeps its first line."""
        now, text = time.monotonic(), escaped(text)
        if self._live:
            click.echo(f"\r\x1b[2K{text}", nl=False, err=True)
            self._shown = True
        elif work != self._work or now - self._last >= LOG_SECONDS:
            click.echo(text, err=True)
            self._last = now
        self._work = work

    def close(self) -> None:
        """End the line, so that its last state stays readable."""
        if self._shown:
            click.echo("", err=True)
            self._shown = False


@contextmanager
def bar(work: str, hidden: bool, done: int = 0) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left, moved by (done, total); show none in a log."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    silent = hidden or not console.is_terminal
    with Progress(console=console, disable=silent, transient=True) as bars:
        task = bars.add_task(work, total=None, completed=done)
        yield lambda now, total: bars.update(task, completed=now, total=total)
