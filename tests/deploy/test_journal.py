"""Damage of the file in which a map grows: what is damaged is classified again."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from small_model import Exported
from test_rasters import write_cube

from commands import run_here
from hytas.deploy.journal import Journal, open_journal
from hytas.deploy.scene import Strip

SHAPE = (12, 5)
MAP = np.arange(60, dtype=np.int32).reshape(SHAPE)
ROW = 5 * 8 + 16
HEADER = 4096


def fill(journal: Journal, until: int) -> None:
    """Append rows of `MAP`, three at a time."""
    for top in range(journal.done, until, 3):
        part = MAP[top : min(top + 3, until)]
        journal.append(Strip(top, part, part.astype(np.float32)))


def stopped(out: Path, rows: int, model: int = 1) -> Path:
    """The journal of a run that was stopped after so many rows."""
    with suppress(KeyboardInterrupt), open_journal(out, {"model": model}, SHAPE) as journal:
        fill(journal, rows)
        raise KeyboardInterrupt
    return out.with_name(f".{out.name}.partial")


def finished(out: Path) -> tuple[int, bool]:
    """Go on to the end, compare the map, and return the rows that were kept."""
    with open_journal(out, {"model": 1}, SHAPE) as journal:
        found = journal.done, journal.damaged
        fill(journal, len(MAP))
        assert np.array_equal(journal.class_map().labels[:], MAP)
        assert np.array_equal(journal.class_map().confidence[:], MAP)
    return found


def test_no_flipped_bit_reaches_the_map(tmp_path: Path) -> None:
    out, rng = tmp_path / "map.npy", np.random.default_rng(1)
    content = stopped(out, 9).read_bytes()
    assert len(content) == HEADER + 9 * ROW
    for place in (*rng.integers(HEADER, len(content), 300), *range(0, 100, 7)):
        damaged = bytearray(content)
        damaged[int(place)] ^= 1 << int(rng.integers(8))
        stopped(out, 0).write_bytes(damaged)
        row = (int(place) - HEADER) // ROW
        assert finished(out) == ((row, True) if place >= HEADER else (0, False))


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (lambda content: b"", (0, False)),
        (lambda content: content[:HEADER], (0, False)),
        (lambda content: content[: HEADER + 4 * ROW + 7], (4, False)),
        (lambda content: content[: HEADER + 4 * ROW] + bytes(ROW), (4, True)),
        (lambda content: content[: HEADER + ROW] + content[HEADER:], (1, True)),
        (lambda content: content + content[HEADER : HEADER + 5 * ROW], (9, True)),
        (lambda content: content + bytes(100_000), (9, True)),
    ],
)
def test_rows_that_are_cut_empty_or_elsewhere(
    tmp_path: Path, change: object, kept: tuple[int, bool]
) -> None:
    journal = stopped(tmp_path / "map.npy", 9)
    assert callable(change)
    journal.write_bytes(change(journal.read_bytes()))
    assert finished(tmp_path / "map.npy") == kept


def test_rows_of_another_work_do_not_pass_for_this_one(tmp_path: Path) -> None:
    """The rows of one journal below the header of another."""
    one = stopped(tmp_path / "one.npy", 9).read_bytes()
    two = stopped(tmp_path / "two.npy", 3, model=2)
    two.write_bytes(two.read_bytes()[:HEADER] + one[HEADER:])
    with open_journal(tmp_path / "two.npy", {"model": 2}, SHAPE) as journal:
        assert (journal.done, journal.damaged) == (0, True)


def test_the_command_says_that_it_classified_rows_again(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from hytas.cli import classify

    scene = write_cube(tmp_path / "scene", exported.scene.cube, "bil", "<")
    whole, out = tmp_path / "whole.npy", tmp_path / "map.npy"
    assert run_here("classify", exported.onnx, scene, "--out", whole).returncode == 0
    append, arguments = Journal.append, [str(exported.onnx), str(scene), "--tile-rows", "4"]

    def stopping(journal: Journal, strip: Strip) -> None:
        append(journal, strip)
        if strip.top == 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", stopping)
        CliRunner().invoke(classify.classify, [*arguments, "--out", str(out)])
    journal = tmp_path / ".map.npy.partial"
    content = bytearray(journal.read_bytes())
    content[HEADER + 5 * (23 * 8 + 16) + 3] ^= 4
    journal.write_bytes(content)
    done = CliRunner().invoke(classify.classify, [*arguments, "--out", str(out), "--json"])
    report = json.loads(done.stdout)
    assert report["resumed_at_row"] == 5
    (note,) = report["notes"]
    assert note == "an earlier run left damaged rows, from row 5 on: these were classified again"
    assert np.array_equal(np.load(out), np.load(whole))
