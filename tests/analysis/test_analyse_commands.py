"""`hytas analyse report` and the commands of its sections."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from random_table import write_random_table

from hytas.cli.analyse import analyse
from hytas.errors import InputError
from hytas.lab.analysis.sections import SECTIONS

LITTLE = ["--resamples", "20", "--fits", "1", "--sizes", "20"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_table(tmp_path_factory.mktemp("tables") / "noise.csv", networks=60)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(analyse, list(map(str, arguments)), catch_exceptions=False)


def test_the_report_is_one_page_with_all_figures_beside_it(table: Path, tmp_path: Path) -> None:
    out, figures = tmp_path / "a.html", tmp_path / "a.json"
    chosen = ["--section", "ranking", "--section", "predictors"]
    done = run("report", "--tables", table, "--out", out, "--json", figures, *chosen, *LITTLE)
    assert done.exit_code == 0
    assert "written" in done.output
    assert list(json.loads(figures.read_text())) == ["ranking", "predictors"]
    page = out.read_text()
    for name in ("ranking", "predictors"):
        assert f'<section id="{name}">' in page
    assert 'id="genes"' not in page
    assert page.count("data:image/svg+xml") == 2


def test_a_section_prints_its_tables_and_writes_its_charts(table: Path, tmp_path: Path) -> None:
    done = run("ranking", "--tables", table, "--figures", tmp_path / "charts", *LITTLE)
    assert "Spearman's rho" in done.output
    assert "zico_pp" in done.output
    (chart,) = (tmp_path / "charts").glob("*.svg")
    assert chart.name.startswith("ranking-1-noise")
    found = run("ranking", "--tables", table, "--json", *LITTLE)
    assert json.loads(found.stdout)["noise"]["networks"] == 60


def test_every_section_has_a_command() -> None:
    assert {*SECTIONS, "report"} == set(analyse.commands)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predictors", "--sizes", "a"], "sizes='a': must be whole numbers"),
        (["predictors", "--sizes", "1"], "must be whole numbers of 2 or more"),
        (["report", "--out", "page.txt"], "must end in .html"),
    ],
)
def test_bad_input_is_refused_in_one_line(table: Path, arguments: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(*arguments, "--tables", table)
