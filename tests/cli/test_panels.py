"""The help of a search: each option has a panel, and the page of options is up to date."""

import importlib.util
from pathlib import Path

from hytas.cli.options.panels import PANELS
from hytas.cli.search import search

DOCS = Path(__file__).parents[2] / "docs"


def test_every_option_is_in_one_panel() -> None:
    names = [name for panel in PANELS.values() for name in panel]
    assert sorted(names) == sorted(str(one.name) for one in search.params)


def test_the_page_of_options_is_that_of_the_command() -> None:
    spec = importlib.util.spec_from_file_location("make_options", DOCS / "make_options.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run docs/make_options.py"
