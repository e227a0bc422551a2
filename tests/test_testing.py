"""`hytas.testing`: parts of plug-ins that keep the rules, and one that breaks each of them."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from hytas import plugins
from hytas.errors import InputError
from hytas.testing import check_network, check_product, check_proxy, check_strategy
from refusals import refuses

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
TEXT = PAGE.read_text(encoding="utf-8")
NETWORK, SCORES, ANNEALER, TARGET, READER, PRODUCT, CHECKS = re.findall(
    r"```python\n(.*?)```", TEXT, re.DOTALL
)
EXAMPLES = PAGE.parent.parent / "examples"


@pytest.fixture
def load(tmp_path: Path):
    path = tmp_path / "mine.py"

    def load(*texts: str, **changes: str) -> None:
        text = "\n".join(texts)
        for before, after in changes.values():
            assert before in text
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")
        plugins.load_plugins([str(path)])

    yield load
    plugins.unload(str(path))


def test_parts_that_keep_the_rules(load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(NETWORK, SCORES, ANNEALER)
    monkeypatch.chdir(tmp_path)
    exec(CHECKS, {})
    check_proxy("logit-spread")


@pytest.mark.parametrize("space", ["hytas", "hytas-wide", "linear", "autoformer-mini"])
def test_built_in_networks_keep_the_rules(space: str) -> None:
    check_network(space)


@pytest.mark.parametrize("proxy", ["dss", "naswot", "jacob_cov", "params"])
def test_built_in_proxies_keep_the_rules(proxy: str) -> None:
    check_proxy(proxy)


@pytest.mark.parametrize("name", ["asha", "two_objectives"])
def test_examples_keep_the_rules(name: str) -> None:
    path = EXAMPLES / f"{name}.py"
    plugins.load_plugins([str(path)])
    check_strategy(name.replace("_", "-"))
    plugins.unload(str(path))


OUTPUT = "return self.head(torch.relu(self.embed(centre)))"


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        (OUTPUT, f"{OUTPUT}[:, 0]", "gives logits"),
        (OUTPUT, f"{OUTPUT} + torch.rand(1)", "gives other logits each time"),
        (OUTPUT, f"{OUTPUT} + centre.mean()", "where others are in its batch"),
        (OUTPUT, "return self.head(self.embed(centre).detach())", "without a gradient: embed"),
        (OUTPUT, f"return self.head.bias.data.add_(1) + {OUTPUT[7:]}", "each time in eval mode"),
        ("(hidden + 1) * classes", "hidden * classes", "its space counts"),
        ("class MLP(Network)", "class MLP(torch.nn.Module)", "does not say what it can do"),
        ("self.embed = torch", "import os; self.embed = torch", None),
    ],
)
def test_broken_networks(load, before: str, after: str, rule: str | None) -> None:
    load(NETWORK, change=(before, after))
    if rule is None:
        check_network("my-mlp")
        return
    with pytest.raises(InputError, match=rule):
        check_network("my-mlp")


SPREAD = "return network(patches).std(0).mean()"


@pytest.mark.parametrize(
    ("after", "rule"),
    [
        ("return float('nan')", "gives no number"),
        ("return float(torch.randn(()).item())", "another score the second time"),
        ("patches.zero_(); return 1.0", "changes the patches"),
    ],
)
def test_broken_proxies(load, after: str, rule: str) -> None:
    load(SCORES, change=(SPREAD, after))
    with refuses("proxy", "logit-spread", rule):
        check_proxy("logit-spread")


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("random.Random(seed)", "random.Random()", "other candidates"),
        ("random.Random(seed)", "random.Random(0)", "the same candidates by any seed"),
        ("self.temperature *= 0.9", "self.temperature *= 0.9; assert score == score", "are NaN"),
    ],
)
def test_broken_strategies(load, before: str, after: str, rule: str) -> None:
    load(ANNEALER.replace("sample(1, seed)", "sample(1, 0)"), change=(before, after))
    with refuses("strategy", "annealer", rule):
        check_strategy("annealer", budget="100M-params")


def test_a_product(load, tmp_path: Path) -> None:
    path = tmp_path / "night.h5"
    with h5py.File(path, "w") as file:
        file["airglow/counts"] = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
        file["airglow/centres"] = np.array([400.0, 500, 600, 700])
    with refuses("product", str(path), "matched by no product"):
        check_product(path)
    load(PRODUCT)
    check_product(path)
    with h5py.File(path, "a") as file:
        file["airglow/centres"][...] = -1
    with refuses("product", str(path), "wavelengths"):
        check_product(path)
