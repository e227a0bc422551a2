"""Progress on standard error, where no result goes."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from hytas.errors import escaped

LOG_SECONDS = 5.0


def echo(text: str) -> None:
    """Print a result, of which names in files may be a part: its lines move no cursor."""
    click.echo("\n".join(map(escaped, text.split("\n"))))


class Live:
    """One live line on a terminal, a line now and then in a log."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = False
        self._last = 0.0
        self._work = ""

    def line(self, text: str) -> None:
        """Print a fact on a line of its own."""
        self.close()
        click.echo(escaped(text), err=True)

    def show(self, work: str, text: str, last: bool = False) -> None:
        """Show where `work` stands; a log keeps the first and the last of it in any case."""
        now, text = time.monotonic(), escaped(text)
        if self._live:
            click.echo(f"\r\x1b[2K{text}", nl=False, err=True)
            self._shown = True
        elif last or work != self._work or now - self._last >= LOG_SECONDS:
            click.echo(text, err=True)
            self._last = now
        self._work = work

    def close(self) -> None:
        """End the live line; its last state stays readable."""
        if self._shown:
            click.echo("", err=True)
            self._shown = False


@contextmanager
def bar(work: str, hidden: bool, done: int = 0) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left, moved by (done, total); none in a log, where it would be noise."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    silent = hidden or not console.is_terminal
    with Progress(console=console, disable=silent, transient=True) as bars:
        task = bars.add_task(work, total=None, completed=done)
        yield lambda now, total: bars.update(task, completed=now, total=total)
