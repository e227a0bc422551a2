"""The templates of pages, and pages of sections: one HTML file that needs no network."""

import base64
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hytas.errors import InputError
from hytas.files import legible, write_text
from hytas.pictures.figures import short
from hytas.report import words
from hytas.report.facts import Section
from hytas.settings import setting_text


@cache
def page_templates() -> Environment:
    """Return the templates of all pages, with their filters."""
    page_templates = Environment(
        loader=PackageLoader("hytas.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_one_line,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page_templates.filters |= {
        "short": short,
        "share": words.share,
        "figure": four_digits,
        "uri": _uri,
        "spent": _spent,
        "setting": _setting,
    }
    return page_templates


def _one_line(value: Any) -> Any:
    """Return a text without control characters and ends of lines: it may come from a file."""
    if type(value) is not str or (value.isascii() and value.isprintable()):
        return value
    return legible(value)


def resource(name: str) -> str:
    """Return the text of a file of `templates`."""
    return (files("hytas.report") / "templates" / name).read_text(encoding="utf-8")


def render_sections(title: str, about: Sequence[str], sections: Sequence[Section]) -> str:
    """Return a page of sections as HTML: one file that asks no other place for anything."""
    template = page_templates().get_template("sections.html")
    return template.render(
        {"title": title, "about": about, "sections": sections, "style": resource("report.css")}
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


def four_digits(value: float | None) -> str:
    """Return a figure with four digits, or "-"."""
    return "-" if value is None else f"{value:.4f}"


def _setting(value: Any) -> str:
    if isinstance(value, list):  # of genes
        return "-".join(map(str, value)) or "none"
    return setting_text(value)


def _uri(svg: str) -> str:
    """Return an SVG as an image: nothing in it can run."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _spent(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(round(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {round(seconds) % 60} s"
