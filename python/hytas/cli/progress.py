"""What a command prints: results on standard output, progress on standard error."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hytas.errors import escaped

if TYPE_CHECKING:
    from hytas.data.findings import Finding


def echo(text: str) -> None:
    """Print a result, with control characters escaped: it may hold names from files."""
    click.echo("\n".join(map(escaped, text.split("\n"))))


def option(argument: str) -> str:
    """Return the option of an argument."""
    return f"--{argument.replace('_', '-')}"


def finding_report(findings: Iterable["Finding"]) -> dict[str, Any]:
    """Return findings for a report: "notes", which people read, and "findings", for programs."""
    own = list(findings)
    return {
        "notes": [finding.render(option) for finding in own],
        "findings": [finding.as_json for finding in own],
    }


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
