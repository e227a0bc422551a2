"""The help of a search: each option has a panel, and the reference is up to date."""

import importlib.util
from pathlib import Path

import click

from hytas.cli.options import PANELS, SETTINGS, records_by_panel
from hytas.cli.search import search
from hytas.run.config import RunConfig

DOCS = Path(__file__).parents[2] / "docs"


def test_the_most_used_options_come_first() -> None:
    panels = records_by_panel(search, click.Context(search))
    assert list(panels) == list(PANELS)
    names = [text.split()[0] for text, _ in panels["Most used"]]
    assert names[:3] == ["--data", "--labels", "--budget"]
    assert len(names) == 8
    assert sum(map(len, panels.values())) == len(search.params) + 1  # and --help


def test_every_setting_with_an_option_is_an_option_of_a_search() -> None:
    wanted = {name for name, one in SETTINGS.items() if one.facts.option}
    offered = {str(one.name) for one in search.params}
    own = {"budgets", "out", "epochs", "recipe", "device", "workers", "plugins", "as_json"}
    own |= {"untrusted"}
    assert offered == wanted | own | {"config"}
    for one in search.params:
        if one.name in wanted:
            assert SETTINGS[one.name].facts.panel in PANELS
            assert SETTINGS[one.name].checked(one.get_default(click.Context(search))) == (
                SETTINGS[one.name].checked(getattr(RunConfig, one.name, SETTINGS[one.name].default))
            )


def test_the_reference_is_that_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run docs/make_reference.py"
