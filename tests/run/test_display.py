"""What people see while a run works: on a terminal, in a log, and in run.log."""

import io

import pytest
from rich.console import Console

from hytas.race import RaceProgress, Racer, RungEnd, RungRow
from hytas.run.display import Display, duration
from hytas.search import Evaluation, SearchProgress

GENES = {
    "space": "hytas-wide",
    "tokens": "pixel",
    "patch": 7,
    "pixel_mixer": "conv3",
    "pixel_gate": "yes",
    "pixel_depth": 2,
}
RACER = Racer(Evaluation(17, 1, GENES, {"params": 98_336}, {}, {}, 0.1), "plain")


def test_durations_are_short() -> None:
    assert [duration(value) for value in (42.2, 187.0, 3727.0)] == ["42 s", "3:07 min", "1:02:07 h"]


def shown(terminal: bool, width: int = 80) -> str:
    """Everything that a short run writes."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=width, color_system=None)
    with Display(console) as display:
        display.notice("scene field: 9 x 8 pixels\x1b[2J")
        display.line("a detail")
        display.plan(("search", "race", "report"))
        display.stage("search")
        display.reference("SVM (RBF) on spectra", 0.75, 60)
        display.search(SearchProgress(1, 16, 200, 0.5))
        display.stage("race")
        display.training(RaceProgress(1, 2, 1, 6, 60, 900, (RACER, 0.9)))
        rows = (RungRow(RACER, 0.9, 0.8, True), RungRow(RACER, None, 0.1, False))
        display.rung(RungEnd(1, 2, 60, 3, rows))
    return text.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_one_live_region_and_a_table_for_each_rung(width: int) -> None:
    text = shown(True, width)
    assert "best so far 0.900, SVM 0.750 (60 validation pixels)" in text
    assert "stage 2 of 3, race: rung 1 of 2, 1 of 6 trainings" in text
    row = next(line for line in text.splitlines() if "98,336" in line)
    assert row.split() == [
        *("pixels", "7x7,", "gated", "conv3,", "2", "layers"),
        *("plain", "98,336", "0.900", "0.800", "kept"),
    ]
    assert "\x1b[2J" not in text  # names of files move no cursor
    assert "a detail" not in text
