"""`hytas space` as a user types it."""

import json
from pathlib import Path

import pytest

from hytas.cli.main import run


def hytas(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        run(["space", *arguments])
    out, err = capsys.readouterr()
    return int(exit_.value.code or 0), out, err


def test_list_names_every_space(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = hytas(capsys, "list", "--json")
    sizes = {space["name"]: space["size"] for space in json.loads(out)}
    assert code == 0
    assert sizes["pit-tiny"] == 11_664
    assert sizes["autoformer-tiny"] == 1_056_964_608
    assert "793,920,596,262,912" in hytas(capsys, "list")[1]


def test_count_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    budget = ("--budget", "5.40M..5.41M-params")
    assert hytas(capsys, "count", "--space", "autoformer-tiny", *budget)[1] == (
        "12 of 1,056,964,608 architectures of autoformer-tiny fit 5.4M..5.41M-params\n"
    )


def test_sample_prints_lines_that_cost_reads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("--budget", "1M-params,300M-macs", "-n", "3", "--seed", "5")
    _, out, _ = hytas(capsys, "sample", *arguments)
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 3
    assert all(line["costs"]["params"] <= 1e6 and line["costs"]["macs"] <= 3e8 for line in lines)
    file = tmp_path / "arch.json"
    file.write_text(out.splitlines()[1], encoding="utf-8")
    assert json.loads(hytas(capsys, "cost", str(file), "--json")[1]) == lines[1]["costs"]


def test_own_space_file_and_latency_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    space = {
        "format": "hytas-space",
        "version": 1,
        "name": "mine",
        "genes": [
            {"name": "depth", "values": [1, 2]},
            {"name": "width", "values": [2, 3], "per": "depth"},
        ],
        "costs": {"params": {"layers": {"depth": "width * width"}}},
    }
    Path("mine.json").write_text(json.dumps(space), encoding="utf-8")
    rows = [{"when": {"width": w}, "cost": c} for w, c in ((2, 1.5), (3, 0.5))]
    table = {"format": "hytas-latency", "version": 1, "space": "mine", "unit": "ms"}
    Path("t.json").write_text(json.dumps(table | {"layers": {"depth": rows}}), encoding="utf-8")
    arguments = ("count", "--space", "mine.json", "--budget")
    assert hytas(capsys, *arguments, "13-params")[1].startswith("5 of 6 architectures")
    assert hytas(capsys, *arguments, "13-params,1ms-latency@t.json")[1].startswith("1 of 6")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("count", "--budget", "2M"), "error: budget '2M': has no unit"),
        (("count", "--budget", "-1-params"), "must not be negative"),
        (("count", "--budget", "10-params"), "the smallest has 198,246 params"),
        (("count", "--space", "hytass"), "did you mean 'hytas'?"),
        (("count", "--variable", "bands=0"), "must be 1 to 4096"),
        (("count", "--budget", "3ms-latency@none.json"), "none.json"),
        (("sample", "--budget", "2M-parms"), "did you mean 'params'?"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    code, out, err = hytas(capsys, *arguments)
    assert (code, out) == (2, "")
    assert why in err
    assert err.count("\n") == 1
