"""Tables of text for a terminal."""

from collections.abc import Sequence


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
