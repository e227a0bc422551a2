"""Tables of a plug-in's own space, made and analysed; published tables by name."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from commands import Run
from hytas import plugins
from hytas.data.datasets import RemoteFile
from hytas.lab.analysis import read_tables
from hytas.lab.analysis.tables import HYTAS_TABLES
from hytas.run import RunConfig
from refusals import refuses

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
NETWORK = next(
    text
    for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    if "plugins.network" in text
)


@pytest.fixture
def mine(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(NETWORK, encoding="utf-8")
    yield path
    plugins.unload(str(path))


def test_a_table_of_an_own_space_is_analysed(mine: Path, tmp_path: Path, here: Run) -> None:
    given = ("--plugin", mine, "--space", "my-mlp", "--data", "synthetic", "--budget", "8K-params")
    made = here(
        *("benchmark", "make", *given, "-n", 4, "--recipe", "steps=2", "--workers", 1),
        *("--proxies", "params,jacob_cov,dss", "--out", tmp_path / "bench"),
    )
    assert made.returncode == 0, made.stderr
    rows = here("analyse", "ranking", "--tables", tmp_path / "bench", "--plugin", mine, "--json")
    (table,) = json.loads(rows.stdout).values()
    assert table["networks"] == 4
    scores = set(table["groups"]["all"]["scores"])
    assert {"params", "jacob_cov"} < scores
    assert "dss" not in scores, "it has no score of any network"
    plugins.unload(str(mine))
    with refuses("space", "my-mlp", "not known to hytas"):
        read_tables([tmp_path / "bench"])


def test_an_own_space_is_listed_and_shown(mine: Path, here: Run) -> None:
    listed = here("space", "list", "--plugin", mine).stdout
    assert "my-mlp            8 architectures" in listed
    assert "published networks: s3-t, s3-s, s3-b" in listed
    shown = here("space", "show", "my-mlp", "--plugin", mine)
    assert [gene["name"] for gene in json.loads(shown.stdout)["genes"]] == ["hidden"]


SLICED = """
    def initializers(self):
        from hytas.models.layers import Initializer

        return {name: Initializer("normal", 0.02) for name, _ in self.named_parameters()}
"""


def test_an_own_space_evolves_if_its_network_can_be_sliced(
    mine: Path, tmp_path: Path, here: Run
) -> None:
    given = ("--plugin", mine, "--space", "my-mlp", "--data", "synthetic", "--budget", "8K-params")
    short = ("--steps", 1, "--subnets", 10, "--training-steps", 2, "--out", tmp_path / "new.json")
    refused = here("space", "evolve", *given, *short)
    assert refused.returncode == 2
    assert "`Network.initializers` lacks parameter embed.weight" in refused.stderr
    plugins.unload(str(mine))
    mine.write_text(NETWORK + SLICED, encoding="utf-8")
    done = here("space", "evolve", *given, *short)
    assert done.returncode == 0, done.stderr
    assert f"--space {tmp_path / 'new.json'} --plugin {mine} --control my-mlp" in done.stdout
    assert json.loads((tmp_path / "new.json").read_text())["name"] == "my-mlp"


def test_an_own_network_is_scored_by_what_it_has(mine: Path) -> None:
    assert RunConfig(space="my-mlp", plugins=[str(mine)]).proxy == "params"
    assert RunConfig().proxy == "dss"


def test_a_published_network_needs_no_space(here: Run) -> None:
    assert json.loads(here("space", "show", "--network", "s3-s").stdout)["window"] == [
        14,
        14,
        14,
        7,
    ]
    assert "te-score" in here("proxies").stdout


def test_published_tables_by_name(
    shared: Path, tmp_path: Path, here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (shared / "hytas2000" / "indian.csv").read_bytes()
    file = RemoteFile(
        "indian.csv", ("https://none.invalid",), f"sha256:{hashlib.sha256(content).hexdigest()}"
    )
    monkeypatch.setenv("HYTAS_CACHE", str(tmp_path))
    monkeypatch.setitem(HYTAS_TABLES, "hytas-indian", file)  # the released file is not there
    refused = "indian.csv: could not be downloaded from https://none.invalid (no connection)"
    for command in (("benchmark", "fetch", "--out", "x.csv"), ("analyse", "ranking", "--tables")):
        offline = here(*command, "hytas-indian")
        assert offline.returncode == 2
        assert f"{refused}; put a copy into {tmp_path}" in offline.stderr
    (tmp_path / "indian.csv").write_bytes(content)
    done = here("analyse", "alike", "--tables", "hytas-indian", "--json")
    assert len(json.loads(done.stdout)["names"]) > 10
    done = here("benchmark", "fetch", "hytas-indian", "--out", tmp_path / "out.csv")
    assert done.returncode == 0
    assert (tmp_path / "out.csv").read_bytes() == content


def test_a_table_without_a_space_gets_the_one_that_is_named(tmp_path: Path, here: Run) -> None:
    archs = tmp_path / "archs.csv"
    row = '12,192,"[3,3,3,3,3,3,3,3,3,3,3,3]","[4,4,4,4,4,4,4,4,4,4,4,4]"'
    archs.write_text(f"depth,embed_dim,num_heads,mlp_ratio\n{row}\n")
    given = ("score", "--archs", archs, "--data", "digits", "--proxy")
    failed = here(*given, "dss", "--out", tmp_path / "a.csv")
    assert failed.returncode == 2  # of the space `hytas`, whose networks take scenes
    assert "its networks take scenes" in failed.stderr
    done = here(*given, "params", "--space", "autoformer-tiny", "--out", tmp_path / "b.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.csv").read_text().splitlines()[1].startswith("autoformer-tiny,12,192")
