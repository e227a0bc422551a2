"""A page of sections: sentences, tables and figures, whatever they are about."""

from collections.abc import Sequence
from pathlib import Path

from hytas.errors import InputError
from hytas.files import write_text
from hytas.report.facts import Section
from hytas.report.page import environment, stylesheet


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
        about: sentences at the top.

    Raises:
        InputError: there is no section.
        OSError: the file cannot be written.
    """
    if not sections:
        raise InputError("sections", rule="none given", hint="a page needs at least one")
    write_text(path, render_sections(title, about, sections))
