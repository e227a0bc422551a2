"""What a command prints: results on standard output, progress on standard error."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from hytas.errors import escaped


def echo(text: str) -> None:
    """Print a result, with control characters escaped: it may hold names from files."""
    click.echo("\n".join(map(escaped, text.split("\n"))))


def aligned_cells(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row; the first column stands left, the others stand right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


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
