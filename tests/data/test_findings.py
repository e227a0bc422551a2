"""How findings are worded: every code has a message, and every message a code."""

import ast
import json
import pickle
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import pytest

import hytas
from hytas.data.findings import (
    ERROR,
    WARNING,
    Finding,
    message,
    messages,
    note,
    refusal,
    refuse_warnings,
    warning,
)
from hytas.errors import InputError

PACKAGE = Path(hytas.__file__).parent
TREES = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
PLACES = {"note": 2, "warning": 2, "refusal": 3, "Finding": 4, "Check": 5}
"""Functions, and the place of the case among their arguments."""
CASES = [(code, case) for code, own in messages().items() for case in own.get("cases", ())]


def texts_in(tree: ast.AST) -> set[str]:
    """The literal texts of a source, such as keys of mappings of facts."""
    nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in nodes if isinstance(value, str)}


class Found(NamedTuple):
    """A finding in a source: its code; its cases, or None if they are not literal; its facts."""

    code: str
    cases: set[str] | None
    facts: set[str]
    has_more: bool


def calls_in(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        name = getattr(getattr(node, "func", None), "id", None)
        if isinstance(node, ast.Call) and name in PLACES:
            yield name, node


def findings_of(tree: ast.AST) -> Iterator[Found]:
    """Yield each finding, and whether a mapping holds further facts."""
    for name, call in calls_in(tree):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        place = PLACES[name]
        case = given.get("case", call.args[place] if len(call.args) > place else None)
        cases = {""} if case is None else {case.value} if isinstance(case, ast.Constant) else None
        if None in given and case is None and "case" in texts_in(tree):
            cases = None
        if isinstance(call.args[0], ast.Constant):
            has_more = None in given or name in ("Finding", "Check")
            others = {"where", "argument", "case"} | ({"value"} if name == "refusal" else set())
            facts = {one for one in given if one} - others
            yield Found(call.args[0].value, cases, facts, has_more)


def facts_in(code: str, cases: Iterable[str], *parts: str) -> set[str]:
    texts = [message(code, part, case) for part in parts for case in cases]
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


def cases_of(code: str) -> list[str]:
    return ["", *messages()[code].get("cases", ())]


def test_each_message_is_used() -> None:
    assert {*messages()} - set().union(*map(texts_in, TREES)) == set()


def test_each_finding_has_the_facts_of_its_message() -> None:
    given: dict[str, set[str]] = {}
    for tree in TREES:
        texts = texts_in(tree)
        for code in texts & {*messages()}:
            given.setdefault(code, set()).update(texts)
        for code, cases, facts, has_more in findings_of(tree):
            known = facts_in(code, cases or cases_of(code), "rule", "hint")
            assert facts <= known, code
            assert has_more or not cases or facts_in(code, cases, "rule") <= facts, code
            given[code] |= facts
    for code, facts in given.items():  # a hint may go without its facts, but not always
        worded = {name for own in messages()[code].get("cases", {}).values() for name in own}
        assert facts_in(code, cases_of(code), "hint") - worded <= facts, code


def test_each_case_is_worded_and_used() -> None:
    used: set[tuple[str, str]] = set()
    for tree in TREES:
        for code, cases, _, _ in findings_of(tree):
            literal = {case for case in texts_in(tree) if (code, case) in CASES}
            used |= {(code, case) for case in (literal if cases is None else cases - {""})}
    assert used == {*CASES}


@pytest.mark.parametrize(("code", "case"), CASES)
def test_words_of_a_case_take_the_place_of_words(code: str, case: str) -> None:
    own = messages()[code]
    assert own["cases"][case]
    assert {*own["cases"][case]} <= facts_in(code, [""], "rule", "hint")


class Prose(ast.NodeVisitor):
    """Words of people in an expression, and in what its names are assigned in the same scope."""

    def __init__(self, scope: Iterable[ast.AST]) -> None:
        self.values: dict[str, list[ast.AST]] = {}
        self.words: list[str] = []
        for node in (each for one in scope for each in ast.walk(one)):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            value = getattr(node, "value", None)
            for target in ast.walk(ast.Tuple([one for one in targets if one is not None])):
                if isinstance(target, ast.Name) and isinstance(value, ast.AST):
                    self.values.setdefault(target.id, []).append(value)

    def visit_Name(self, node: ast.Name) -> None:
        for value in self.values.pop(node.id, []):
            self.visit(value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and re.search(r" [A-Za-z]{2}|[A-Za-z]{2}[,:]? ", node.value):
            self.words.append(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Pass by separators that join texts, and what is looked up."""
        is_method = isinstance(node.func, ast.Attribute)
        separates = is_method and isinstance(node.func.value, ast.Constant)
        for one in [*([] if is_method and not separates else node.args), *node.keywords]:
            if not isinstance(one, ast.Constant):
                self.visit(one)
        if is_method and not separates:
            self.visit(node.func.value)


def prose_in(tree: ast.Module) -> Iterator[str]:
    """Yield the words of people among the facts of findings."""
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    constants = [one for one in tree.body if isinstance(one, ast.Assign | ast.AnnAssign)]
    rows = [call for name, call in calls_in(tree) if name == "Check"]
    checks = {name.id for row in rows for name in ast.walk(row) if isinstance(name, ast.Name)}
    others = [one for one in tree.body if not isinstance(one, ast.FunctionDef | ast.ClassDef)]
    for scope in (*([one] for one in functions), others):
        facts: list[ast.AST] = []
        for name, call in (found for one in scope for found in calls_in(one)):
            facts += [one.value for one in call.keywords]
            facts += call.args[3:4] if name == "Finding" else []
        if getattr(scope[0], "name", None) in checks:
            facts += [one for one in ast.walk(scope[0]) if isinstance(one, ast.Yield | ast.Return)]
        prose = Prose([*constants, *scope])
        for fact in facts:
            prose.visit(fact)
        yield from prose.words


def test_only_messages_hold_prose() -> None:
    names = {"class ", "label "}  # of classes without one
    assert {words for tree in TREES for words in prose_in(tree)} - names == set()


def test_prose_among_facts_is_seen() -> None:
    for source in (
        'note("a", what="no text")',
        'note("a", what=f"{n} rows")',
        'Finding("a", NOTE, "", {"what": "no text"})',
        'facts = {"what": "no text"}; note("a", **facts)',
        'if n:\n    how = f"row {n}"\n    facts |= {"how": how}\nwarning("a", **facts)',
        'def f(x):\n    yield {"what": "no text"}\nCheck("a", NOTE, partial(f, 1))',
    ):
        assert [*prose_in(ast.parse(source))], source
    for source in ('note("a", names=" and ".join(names))', 'note("a", size=f"{h} x {w}")'):
        assert [*prose_in(ast.parse(source))] == [], source


@pytest.mark.parametrize("code", messages())
def test_messages_are_sentences(code: str) -> None:
    own = messages()[code]
    assert {*own} <= {"rule", "hint", "cases"}
    words = [text for case in own.get("cases", {}).values() for text in case.values()]
    for text in [own["rule"], own.get("hint", ""), *words]:
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


def test_a_case_has_its_words_and_facts() -> None:
    finding = note("not-used", case="nodata", value="-1")
    assert str(finding) == "not used: its no-data value -1; it is no number that its type can hold"
    assert finding.as_json["case"] == "nodata"
    assert finding.as_json["facts"] == {"value": "-1"}
    assert finding != note("not-used", case="mark", value="-1")
    braces = refusal("unreadable", "data", case="columns-of-one-name", count=2, name="{how}")
    assert braces.rule.endswith("2 columns with the name '{how}'")


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
