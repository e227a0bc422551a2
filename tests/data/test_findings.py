"""How findings are worded: every code has a message, and every message a code."""

import ast
import json
import pickle
import re
from pathlib import Path

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


def used() -> dict[str, set[str] | None]:
    """The codes in the source, and their facts; None where they are not literal."""
    codes: dict[str, set[str] | None] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if node.value in messages():
                codes.setdefault(node.value, None)
    return codes


def test_each_message_is_used() -> None:
    assert {*messages()} - {*used()} == set()


def test_each_code_has_a_message() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name, code in re.findall(r"\b(note|warning|refusal)\(\s*\"([a-z0-9-]+)\"", text):
            assert code in messages(), (path, name)


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
    refuse_warnings([note("opacity")], "strict", "a.tif")
    with pytest.raises(InputError, match="GDAL: odd"):
        refuse_warnings([note("opacity"), warning("gdal-warning", text="odd")], "strict", "a.tif")


def test_a_hint_without_its_facts_is_left_out() -> None:
    assert refusal("classes-few", "labels", classes=["corn"]).hint == ""
    assert "`axes`" in refusal("cube-too-small", "data", shape="3", key="axes").hint
    assert refusal("cube-too-small", "data", shape="3").hint == ""


def test_a_refusal_has_the_fields_of_its_message() -> None:
    error = refusal("shape-invalid", "labels", "a.json", first=1, reason="twisted")
    assert (error.argument, error.value) == ("labels", "a.json")
    assert error.rule == Finding("shape-invalid", ERROR, "", {"first": 1, "reason": "twisted"}).rule
    assert "repair" in error.hint
