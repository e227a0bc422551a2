"""A page of sections: sentences, tables and figures, whatever they are about."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hytas.errors import InputError
from hytas.files import write_text
from hytas.report.page import environment, stylesheet


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first column names the rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A chart: its title, its SVG, what it shows in words, and whether it needs all the width."""

    title: str
    svg: str
    about: str
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        key: short name, for links.
        title: of the section.
        sentences: what it says; the first is the verdict.
        grids: tables.
        figures: charts.
        notes: what differs, is missing or has to be known.
    """

    key: str
    title: str
    sentences: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()


def render_sections(title: str, about: Sequence[str], sections: Sequence[Section]) -> str:
    """Return a page of sections as HTML: one file that asks no other place for anything."""
    template = environment().get_template("sections.html")
    return template.render(
        {"title": title, "about": about, "sections": sections, "style": stylesheet()}
    )


def write_sections(
    path: str | Path, title: str, about: Sequence[str], sections: Sequence[Section]
) -> None:
    """Write a page of sections.

    Args:
        path: an HTML file; replaced as a whole.
        title: of the page.
        about: sentences at the top.
        sections: in order.

    Raises:
        InputError: there is no section.
        OSError: the file cannot be written.
    """
    if not sections:
        raise InputError("sections", rule="none given", hint="a page needs at least one")
    write_text(path, render_sections(title, about, sections))
