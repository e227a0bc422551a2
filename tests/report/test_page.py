"""The page says what the facts say, asks nobody for anything, and lets no name become markup."""

import base64
import hashlib
import json
import re
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import HOSTILE, NAMES, facts, metrics, with_references, with_seeds

from hytas.report import render, write_report
from hytas.report.layers import LAYERS

LINKS = ("src", "href", "action", "data", "srcset", "poster", "xlink:href")


class Reader(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif not self._inside:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@cache
def usual_page() -> str:
    return render([facts()])


def text_of(found: dict[str, Any]) -> str:
    """The text of the page about some metrics, without the charts of a search."""
    found = found | {"training": {"history": [], "best_epoch": 0}}
    return Reader(render([facts(metrics=found, candidates=None, finalists=[])])).text


def test_the_page_asks_no_other_place() -> None:
    page = render([facts(), facts(name="other")])
    reader = Reader(page)
    for tag, attributes in reader.tags:
        for name in LINKS:
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (tag, target)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
    assert "://" not in page
    style = next(data for data in re.findall(r"<style>(.*?)</style>", page, re.S))
    assert "url(" not in style
    assert "@import" not in style


def test_only_its_own_script_may_run() -> None:
    page = usual_page()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    script = (files("hytas.report") / "templates" / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy
    assert script in page
    assert len(script.splitlines()) <= 300


@pytest.mark.parametrize("where", ["classes", "elsewhere"])
def test_no_name_becomes_markup(where: str) -> None:
    hostile = " ".join(HOSTILE)
    plain, harmed = facts(), facts(HOSTILE)
    if where == "elsewhere":
        harmed = facts(
            name=hostile,
            config={hostile: hostile, "data": hostile, "budget": hostile},
            versions={hostile: hostile},
            fingerprint=hostile,
            architecture={"space": hostile, hostile: [hostile]},
            notes=[],
            differences=[hostile],
            units={"params": hostile},
            times={hostile: {"seconds": 1.0, "ended": hostile, "command": hostile}},
            path=hostile,
            scene=hostile,
            model={"name": hostile, "bytes": 1, "sha256": hostile},
        )
        plain = facts(
            config={"a": "b", "data": "b", "budget": "c"},
            architecture={"space": "a", "b": ["c"]},
            path="a",
            scene="b",
        )
    before, page = Reader(render([plain])), render([harmed])
    reader = Reader(page)
    assert {tag for tag, _ in reader.tags} <= {tag for tag, _ in before.tags}
    assert len(reader.scripts) == len(before.scripts)
    assert not any(name.startswith("on") for _, own in reader.tags for name in own)
    for harm in ("<script>window", "\x00", "\x1b", "<img src=x"):
        assert harm not in page
    assert "{{ 7*7 }}" in reader.text


def test_the_data_of_the_script_hold_every_name() -> None:
    reader = Reader(render([facts(HOSTILE)]))
    data = next(one for one in map(json.loads, reader.scripts[:-2]) if "points" in one)
    assert data["classes"][0] == f"1 {HOSTILE[0]}"


def test_what_the_page_says() -> None:
    text = Reader(usual_page()).text
    found = metrics()["test"]
    assert f"{found['OA']:.4f}" in text
    for name in NAMES:
        assert f"{found['per_class'][name]:.4f}" in text
    assert "90 pixels train, 20 validate and 300 test." in text
    assert "0 of the 300 test pixels (0 %) lie within the model's patch" in text
    assert "No test pixel lies in a patch that the model was trained on." in text
    assert "hytas search --budget 10K-params" in text
    assert "1 min 15 s" in text
    assert "0" * 64 in text
    assert "1 winner" in text
    assert "diverged <b>here</b>" in text
    assert "40 candidates were scored without training" in text
    assert "hytas classify runs/ip/model.onnx /scenes/field.mat --out map.tif" in text
    assert "more labels" not in text


def test_seeds_have_mean_and_deviation() -> None:
    found = with_seeds(metrics())
    text = text_of(found)
    values = np.array(found["seeds"]["OA"]["values"])
    assert f"{values.mean():.4f} ± {values.std(ddof=1):.4f}" in text
    assert "seeds 0, 1, 2" in text


def test_reference_methods_stand_beside_the_model() -> None:
    found = with_references(metrics())
    text = text_of(found)
    for name, held_out in (("SVM", "0.8750"), ("random forest", "0.7000")):
        entry = next(e for e in found["references"]["methods"].values() if e["title"] == name)
        row = f"{name} {held_out} {entry['test']['OA']:.4f} {entry['smoothed']['OA']:.4f}"
        assert row in text
    smoothed = found["smoothed"]["OA"]
    assert f"this model 0.8500 {found['test']['OA']:.4f} {smoothed:.4f}" in text
    assert "90 of 110 pixels" in text


def test_runs_of_one_split_have_a_mean() -> None:
    runs = [facts(), facts(name="b", metrics=metrics(seed=4), differences=["seed 4 (there 0)"])]
    text = Reader(render(runs)).text
    values = np.array([run.metrics["test"]["OA"] for run in runs if run.metrics])
    assert "All runs train, validate and test on the same pixels of the same scene." in text
    assert "differ in the seed alone" in text
    assert f"{values.mean():.4f} ± {values.std(ddof=1):.4f}" in text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"split": "another"}, "do not split it alike"),
        ({"fingerprint": "other"}, "different scenes: their accuracies are not comparable"),
        ({"split": ""}, "whether they can be compared is unknown"),
    ],
)
def test_runs_that_cannot_be_compared_have_none(changed: dict[str, str], said: str) -> None:
    other = facts(name="b", differences=["budget 1M-params (there 10K-params)"], **changed)
    text = Reader(render([facts(), other])).text
    assert said in text
    assert "mean ± deviation" not in text
    assert "budget 1M-params (there 10K-params)" in text


def test_a_run_that_is_not_finished_is_shown() -> None:
    text = Reader(
        render([facts(metrics=None, pixels=None, layers=[], model=None, finalists=[], split="")])
    ).text
    assert "The run is not finished." in text
    assert "40 candidates" in text
    assert "Nothing was trained to the end yet" in text


def test_the_same_facts_give_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert write_report(path, [facts()]) is True
    before = path.stat().st_mtime_ns
    assert write_report(path, [facts()]) is False
    assert path.stat().st_mtime_ns == before
    assert write_report(path, [facts(path="b")]) is True


def test_every_layer_of_the_map_is_there_without_the_script() -> None:
    page = usual_page()
    for key, *_ in LAYERS:
        assert page.count(f'data-layer="{key}"') == 1
