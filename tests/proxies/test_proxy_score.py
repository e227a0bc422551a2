"""`hytas score` and `hytas proxies`."""

import csv
import json

import pytest

from hytas.cli.main import run
from hytas.errors import InputError
from hytas.proxies import PROXIES, rank_mean
from hytas.spaces.architectures import read_architectures

TABLE = """depth,embed_dim,num_heads,mlp_ratio,OA
4,32,"[3, 4, 5, 3]","[1, 2, 3, 1]",0.5
5,32,"[3, 3, 6, 4, 3]","[2, 2, 1, 1, 3]",0.6
4,48,"[6, 4, 5, 3]","[1, 2, 1, 1]",0.7
"""


@pytest.fixture
def archs(tmp_path):
    path = tmp_path / "archs.csv"
    path.write_text(TABLE)
    return path


def hytas(capsys, *arguments) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return int(caught.value.code or 0), printed.out, printed.err


def test_csv_and_json_lines_hold_the_same(archs, tmp_path) -> None:
    rows = read_architectures(archs)
    assert rows[0]["num_heads"] == [3, 4, 5, 3]
    lines = tmp_path / "archs.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_architectures(lines) == rows
    lines.write_text(json.dumps(rows, indent=1))
    assert read_architectures(lines) == rows
    lines.write_text(json.dumps({**rows[0], "costs": {"params": 1}, "OA": 0.5}, indent=1))
    assert read_architectures(lines) == rows[:1]
    told = {**rows[0], "note": "one\u2028line"}
    lines.write_text(json.dumps(told, ensure_ascii=False) + "\r\n" + json.dumps(rows[1]) + "\r\n")
    assert read_architectures(lines) == rows[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no column embed_dim"),
        ("depth,embed_dim,num_heads,mlp_ratio\n", "holds no architecture"),
        ("depth,embed_dim,num_heads\n", "has no column mlp_ratio"),
        (TABLE.replace("4,48", "5,48"), "line 4: architecture: of depth 5: 4 num_heads"),
        (
            TABLE.replace("[6, 4", "[60, 4"),
            "line 4: num_heads [60, 4, 5, 3]: each must lie in 1..48",
        ),
        (TABLE.replace('"[6, 4, 5, 3]"', "__import__('os')"), "line 4: "),
        ('{"embed_dim": 32}\n', "line 1: architecture: it has no num_heads"),
        (TABLE.replace("4,48", "4,nan"), "line 4: embed_dim nan: must be a number"),
        (TABLE.replace("4,48", "4,48.5"), "line 4: embed_dim 48.5: must be a whole number"),
        (TABLE.replace('"[6, 4, 5, 3]"', "4"), "line 4: num_heads 4: must be a list"),
        (TABLE.replace("4,48", "4,-48"), "line 4: embed_dim -48: must be 1 to 1e+09"),
        (TABLE.replace("4,48", "4,1000000"), "line 4: embed_dim 1000000: a network of 2.6e+13"),
        (TABLE.replace(",", ";"), "needed are embed_dim, num_heads, mlp_ratio, with commas"),
        (TABLE.replace('"[6, 4, 5, 3]"', "abc"), "line 4: num_heads abc: must be a number"),
        (TABLE.replace("[1, 2, 1, 1]", "[1, NaN, 1, 1]"), "line 4: mlp_ratio [1, nan, 1, 1]"),
        (TABLE.replace("0.7", "0.7,1"), "line 4: must have as many fields as columns"),
        (
            TABLE.replace("OA", "space").replace("0.7", "hytas-wide").replace("0.5", "hytas"),
            "line 3: space 0.6: is not known to hytas",
        ),
        (TABLE.replace("OA", "embed_dim"), "has more than one column embed_dim"),
        (TABLE.replace("0.7", "7" * 200_000), "field larger than field limit"),
        ("[" * 100_000, "nested too deeply"),
        (
            '{"embed_dim": 32, "num_heads": [3], "mlp_ratio": [1]}\n' + '{"a":' * 100_000,
            "line 2: maximum recursion depth",
        ),
        ('{"embed_dim": "32", "num_heads": [3], "mlp_ratio": [1]}\n', "embed_dim 32: must be"),
    ],
)
def test_bad_architectures_are_refused_with_their_line(text, message, tmp_path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_architectures(path)
    assert message in str(caught.value)


def test_scores_a_file_and_resumes_after_a_kill(archs, tmp_path, capsys) -> None:
    out = tmp_path / "scores.csv"
    command = ("score", "--archs", archs, "--proxy", "dss,params", "--out", out)
    status, printed, _ = hytas(capsys, *command)
    assert status == 0
    assert "3 architectures scored, 0 with a failed score" in printed
    whole = out.read_text()
    rows = list(csv.DictReader(whole.splitlines()))
    assert [row["embed_dim"] for row in rows] == ["32", "32", "48"]
    assert float(rows[0]["dss"]) > 0
    assert not any(row["reasons"] for row in rows)

    out.write_text("\n".join(whole.splitlines()[:2]) + "\n5,32,half a li")
    status, _, log = hytas(capsys, *command)
    assert status == 0
    assert "resuming: 1 of 3 are scored already" in log
    again = list(csv.DictReader(out.read_text().splitlines()))
    for row, other in zip(rows, again, strict=True):
        assert {**row, "seconds": ""} == {**other, "seconds": ""}

    status, _, error = hytas(capsys, *command[:-1], out, "--seed", "1")
    assert status == 2
    assert "holds scores of other seed" in error
    assert "Traceback" not in error

    card = out.with_name("scores.csv.json")
    written = json.loads(card.read_text())
    assert written["device"] in ("cpu", "cuda")
    card.write_text(json.dumps({**written, "device": "another"}))
    status, _, error = hytas(capsys, *command)
    assert status == 2
    assert "holds scores of other device" in error


def test_networks_for_other_data_are_refused(archs, tmp_path, capsys) -> None:
    given = ("--data", "digits", "--proxy", "params", "--out", tmp_path / "scores.csv")
    status, _, error = hytas(capsys, "score", "--archs", archs, *given)
    assert status == 2
    assert "architecture 1: space hytas: its networks take scenes, and the data are a set" in error


def test_a_combination_ranks_the_architectures_of_the_table(archs, tmp_path, capsys) -> None:
    out, name = tmp_path / "scores.csv", "rank-mean(params,depth-embed)"
    command = ("score", "--archs", archs, "--proxy", name, "--out", out)
    assert hytas(capsys, *command)[0] == 0
    whole = out.read_text()
    rows = list(csv.DictReader(whole.splitlines()))
    scores = [[float(row[one]) for row in rows] for one in ("params", "depth-embed")]
    assert [float(row[name]) for row in rows] == list(rank_mean(scores))
    assert len({row[name] for row in rows}) > 1

    out.write_text("".join(whole.splitlines(keepends=True)[:2]))  # killed after the first line
    assert hytas(capsys, *command)[0] == 0
    again = list(csv.DictReader(out.read_text().splitlines()))
    assert [row[name] for row in again] == [row[name] for row in rows]


def test_proxies_are_listed(capsys) -> None:
    status, printed, _ = hytas(capsys, "proxies")
    assert status == 0
    assert "naswot" in printed
    assert "rank-mean" in printed
    status, printed, _ = hytas(capsys, "proxies", "dss")
    assert "Algorithm 1" in printed
    assert "sign=none|weights|released" in printed
    _, printed, _ = hytas(capsys, "proxies", "dss,naswot,rank-mean(dss,snip)")
    assert [line for line in printed.splitlines() if line in PROXIES] == ["dss", "naswot", "snip"]
    status, printed, _ = hytas(capsys, "proxies", "--json")
    assert json.loads(printed)["snip"]["needs_data"] is True
    status, _, error = hytas(capsys, "proxies", "dsss")
    assert status == 2
    assert "did you mean dss?" in error
