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


def test_list_names_every_space_and_the_data_of_its_networks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = hytas(capsys, "list", "--json")
    spaces = {space["name"]: space for space in json.loads(out)}
    assert code == 0
    assert spaces["pit-tiny"]["size"] == 11_664
    assert spaces["autoformer-tiny"]["size"] == 1_056_964_608
    assert spaces["hytas-wide"]["networks_for"] == "scenes"
    assert spaces["s3"]["networks_for"] == "images"
    text = hytas(capsys, "list")[1]
    assert "793,920,596,262,912" in text
    assert text.count("networks: for images, or for the patches of a scene as images") == 9
    assert text.count("networks: for scenes") == 4


@pytest.mark.parametrize("name", ["hytas-wide", "hytas-tiny"])
def test_a_built_in_space_that_is_shown_is_a_space_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    code, text, _ = hytas(capsys, "show", name)
    assert code == 0
    (tmp_path / "mine.json").write_text(text)
    whole = hytas(capsys, "count", "--space", name)[1]
    assert hytas(capsys, "count", "--space", str(tmp_path / "mine.json"))[1] == whole
    code, out, err = hytas(capsys, "show", "wide")
    assert (code, out) == (2, "")
    assert "space 'wide': must be one of autoformer-base, " in err


def test_a_space_like_another_has_some_values_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide, tiny = (
        json.loads(hytas(capsys, "show", f"hytas-{name}")[1]) for name in ("wide", "tiny")
    )
    assert wide.keys() == tiny.keys()
    changed = {name for name in wide if wide[name] != tiny[name]}
    assert changed == {"name", "about", "genes"}
    other = [a["name"] for a, b in zip(wide["genes"], tiny["genes"], strict=True) if a != b]
    assert other == ["embed_dim", "band_heads", "pixel_heads"]
    # 12 to embed, 48 a layer, 4 to begin, 8 of the norm, 80 of the head.
    refused = hytas(capsys, "count", "--space", "hytas-tiny", "--budget", "100-params")[2]
    assert "the smallest has 152 params" in refused


def test_count_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    budget = ("--budget", "5.40M..5.41M-params")
    assert hytas(capsys, "count", "--space", "autoformer-tiny", *budget)[1] == (
        "12 of 1,056,964,608 architectures of autoformer-tiny fit 5.4M..5.41M-params\n"
    )


def test_the_widened_space_of_hytas_is_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As docs/research.md says, after the supplementary of HyTAS, 7.8."""
    space = json.loads(hytas(capsys, "show", "hytas")[1])
    space["genes"][0]["values"] = list(range(2, 13))
    space["genes"][1]["values"] = list(range(16, 257, 8))
    path = tmp_path / "wide.json"
    path.write_text(json.dumps(space))
    code, out, _ = hytas(capsys, "count", "--space", str(path), "--budget", "500K-params")
    assert code == 0
    assert "13,149,218,610" in out


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


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("count", "--budget", "2M"), "error: --budget 2M: has no unit"),
        (("count", "--budget", "-1-params"), "must not be negative"),
        (
            ("count", "--budget", "10-params"),
            "no architecture of hytas-wide fits; the smallest has 944 params",
        ),
        (("count", "--space", "hytass"), "did you mean 'hytas'?"),
        (("count", "--variable", "bands=0"), "must be 1 to 4096"),
        (("count", "--budget", "3ms-latency@none.json"), "none.json"),
        (("sample", "--budget", "2M-parms"), "did you mean 'params'?"),
        (("count", "--variable", "bands=--5"), "must be a name, '=' and a whole number"),
        (("count", "--variable", f"bands={10**20}"), "of at most 18 digits"),
        (
            ("count", "--variable", "bands=5", "--variable", "bands=6"),
            "is given twice, as 5 and as 6",
        ),
        (("count", "--budget", "5\udcff-params"), "must be Unicode, without lone surrogates"),
        (("count", "--space", "a\udcff"), "must be Unicode, without lone surrogates"),
        (("count", "--variable", "\udcff=3"), "must be Unicode, without lone surrogates"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    code, out, err = hytas(capsys, *arguments)
    assert (code, out) == (2, "")
    assert why in err
    assert err.count("\n") == 1


def test_a_space_of_more_than_128_bits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    genes = [
        {"name": "depth", "values": [1, 64]},
        {"name": "a", "values": [1, 2, 3, 4], "per": "depth"},
        {"name": "b", "values": [1, 2, 3, 4, 5, 6], "per": "depth"},
    ]
    costs = {"params": {"layers": {"depth": "100 * a * b"}}}
    space = {"format": "hytas-space", "version": 1, "name": "deep", "genes": genes, "costs": costs}
    file = tmp_path / "deep.json"
    file.write_text(json.dumps(space), encoding="utf-8")
    arguments = ("count", "--space", str(file), "--budget", "2500-params")
    assert hytas(capsys, *arguments)[1] == (
        "24 of more than 2^128 architectures of deep fit 2500-params\n"
    )
    assert json.loads(hytas(capsys, *arguments, "--json")[1])["size"] is None
