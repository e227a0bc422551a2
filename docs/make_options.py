"""Write options.md, the options of `hytas search`, from the command itself."""

import sys
from pathlib import Path

import click

from hytas.cli.options.panels import PANELS
from hytas.cli.search import search

PAGE = Path(__file__).with_name("options.md")
HEAD = """# Options of a search

`docs/make_options.py` writes this page from the command. Every option is also a key of the TOML
file of `--config`: `--race-steps 60` is `race_steps = 60`. `--write-config run.toml` writes all
settings of a command.
"""


def page() -> str:
    """Return the page."""
    context = click.Context(search, info_name="search", max_content_width=400)
    records = {
        str(one.name): record
        for one in search.get_params(context)
        if (record := one.get_help_record(context)) is not None
    }
    parts = [HEAD]
    for title, names in PANELS.items():
        rows = [f"| `{_cell(records[name][0])}` | {_cell(records[name][1])} |" for name in names]
        parts.append("\n".join([f"## {title}\n", "| option | meaning |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: written", file=sys.stderr)
