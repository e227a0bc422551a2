"""How findings are worded: every code has a message, and every message a code."""

import ast
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import hytas
from hytas.data.findings import (
    ERROR,
    WARNING,
    Finding,
    messages,
    note,
    refusal,
    refuse_warnings,
    warning,
)
from hytas.errors import InputError

PACKAGE = Path(hytas.__file__).parent


TREES = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]


def texts_in(tree: ast.AST) -> set[str]:
    """The literal texts of a source, such as keys of mappings of facts."""
    nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in nodes if isinstance(value, str)}


def findings_of(tree: ast.AST) -> Iterator[tuple[str, set[str], bool]]:
    """Yield the code and the facts of each finding, and whether a mapping holds further facts."""
    for node in ast.walk(tree):
        name = getattr(getattr(node, "func", None), "id", None)
        if name in ("note", "warning", "refusal") and isinstance(node.args[0], ast.Constant):
            given = {keyword.arg for keyword in node.keywords}
            yield node.args[0].value, given - {None}, None in given


def facts_in(code: str, *parts: str) -> set[str]:
    texts = [messages()[code].get(part, "") for part in parts]
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


def test_each_message_is_used() -> None:
    assert {*messages()} - set().union(*map(texts_in, TREES)) == set()


def test_each_finding_has_the_facts_of_its_message() -> None:
    given: dict[str, set[str]] = {}
    for tree in TREES:
        texts = texts_in(tree)
        for code in texts & {*messages()}:
            given.setdefault(code, set()).update(texts)
        for code, facts, has_more in findings_of(tree):
            others = {"where", "argument", "value"}
            assert facts - others <= facts_in(code, "rule", "hint"), code
            assert has_more or facts_in(code, "rule") <= facts, code
            given[code] |= facts
    for code, facts in given.items():  # a hint may go without its facts, but not always
        assert facts_in(code, "hint") <= facts, code


@pytest.mark.parametrize("code", messages())
def test_messages_are_sentences(code: str) -> None:
    own = messages()[code]
    assert {*own} <= {"rule", "hint"}
    for text in own.values():
        assert text == text.strip()
        assert not text.endswith(".")
        assert not re.search(r"--[a-z]", text), "only the command line names options"


def test_a_finding_is_rendered_by_its_message() -> None:
    counts = {"count": 4, "of": 9, "what": "pixels", "nodata": -9999.0}
    finding = Finding("nodata-undeclared", WARNING, "", {**counts, "values": [-9999.0, 1e20]})
    assert str(finding.at("b.tif").at("a")) == (
        "a: b.tif: 4 of 9 pixels hold -9999, 1e+20, unlike the others; if that is a no-data "
        "value, set nodata to -9999"
    )
    assert "set --nodata to" in finding.render(lambda name: f"--{name}")
    assert json.loads(json.dumps(finding.as_json))["facts"]["nodata"] == -9999
    assert pickle.loads(pickle.dumps(finding)) == finding
    assert "\x1b" not in str(note("gdal-warning", text="a\x1b[2J"))


def test_strict_refuses_warnings_and_not_notes() -> None:
    refuse_warnings([note("cube-chosen", variable="a")], "strict", "a.tif")
    with pytest.raises(InputError, match="GDAL: odd"):
        refuse_warnings(
            [note("cube-chosen", variable="a"), warning("gdal-warning", text="odd")],
            "strict",
            "a.tif",
        )


def test_a_hint_without_its_facts_is_left_out() -> None:
    assert refusal("classes-few", "labels", classes=["corn"]).hint == ""
    assert "`axes`" in refusal("several", "data", what="a", names="b", key="axes").hint
    assert refusal("several", "data", what="a", names="b").hint == ""


def test_a_refusal_has_the_fields_of_its_message() -> None:
    error = refusal("shape-invalid", "labels", "a.json", first=1, reason="twisted")
    assert (error.argument, error.value) == ("labels", "a.json")
    assert error.rule == Finding("shape-invalid", ERROR, "", {"first": 1, "reason": "twisted"}).rule
    assert "repair" in error.hint
