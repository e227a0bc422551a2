"""Findings on the input: a code, how severe it is, where, and facts.

Rules and checks return findings. The words of each code are in `messages.toml`, and nowhere else.
"""

import string
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

from hytas.data.limits import listed, printable
from hytas.errors import InputError, arguments_named, escaped

Subject = TypeVar("Subject")
NOTE, WARNING, ERROR = "note", "warning", "error"
"""A fact to know; a guess or a contradiction, which `strict` refuses; and what cannot be used."""


@dataclass(frozen=True)
class Finding:
    """Something found in the input.

    Attributes:
        code: a table of `messages.toml`.
        where: the file, the map or the scene; "" if it is clear.
        facts: values of the placeholders of the message, JSON-ready.
        case: of the code; its words take the places of placeholders.
    """

    code: str
    severity: str = NOTE
    where: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    case: str = ""

    def __hash__(self) -> int:
        return hash((self.code, self.case, self.where))

    @property
    def rule(self) -> str:
        """Return what was found, in words."""
        return self._filled("rule")

    @property
    def hint(self) -> str:
        """Return what to do, or "", also without its facts; arguments are in backticks."""
        try:
            return self._filled("hint")
        except KeyError:
            return ""

    def _filled(self, part: str) -> str:
        return _Words().vformat(message(self.code, part, self.case), (), self.facts)

    def at(self, where: str) -> Self:
        """Return the finding with a place before its own."""
        return replace(self, where=f"{where}: {self.where}" if self.where else where)

    def render(self, name: Callable[[str], str] = str) -> str:
        """Return the message on one line, with `name(argument)` for the name of each argument."""
        text = "; ".join(filter(None, (self.rule, self.hint)))
        text = f"{self.where}: {text}" if self.where else text
        return escaped(arguments_named(text, name))

    def __str__(self) -> str:
        return self.render()

    @property
    def as_json(self) -> dict[str, Any]:
        """Return the fields and the message."""
        facts = {name: _plain(value) for name, value in self.facts.items()}
        place = {"severity": self.severity, "where": self.where, "facts": facts}
        return {"code": self.code, "case": self.case, **place, "message": str(self)}

    def error(self, argument: str, value: Any = None) -> InputError:
        """Return the exception that refuses the input because of this finding."""
        rule = f"{self.where}: {self.rule}" if self.where else self.rule
        error = InputError(argument, rule=rule, hint=self.hint)
        if value is not None:
            error = InputError(argument, value, rule, self.hint)
        error.code, error.case = self.code, self.case
        return error


class Noted:
    """A value with findings."""

    findings: tuple[Finding, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the messages of the findings."""
        return tuple(map(str, self.findings))

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the codes of the findings."""
        return tuple(finding.code for finding in self.findings)


def note(code: str, where: str = "", case: str = "", **facts: Any) -> Finding:
    """Return a finding of severity `NOTE`."""
    return Finding(code, NOTE, where, facts, case)


def warning(code: str, where: str = "", case: str = "", **facts: Any) -> Finding:
    """Return a finding of severity `WARNING`: a guess or a contradiction."""
    return Finding(code, WARNING, where, facts, case)


def refusal(
    code: str, argument: str, value: Any = None, case: str = "", **facts: Any
) -> InputError:
    """Return the exception of a finding of severity `ERROR`."""
    return Finding(code, ERROR, "", facts, case).error(argument, value)


def refuse_warnings(findings: Iterable[Finding], argument: str, value: Any = None) -> None:
    """Refuse input with warnings, as `strict` demands; the error has the first one."""
    for finding in findings:
        if finding.severity != NOTE:
            raise finding.error(argument, value)


class Check(NamedTuple, Generic[Subject]):
    """A row of a table of checks.

    Attributes:
        code: of the findings, or of the refusal.
        find: returns the facts of each finding on what is checked.
        where: names the place of the findings; of a refusal it is the value.
        argument: of a refusal.
        case: of the code.
    """

    code: str
    severity: str
    find: Callable[[Subject], Iterable[Mapping[str, Any]]]
    where: Callable[[Subject], str] = lambda subject: ""
    argument: str = "labels"
    case: str = ""


def found(checks: Iterable[Check[Subject]], subject: Subject) -> list[Finding]:
    """Return the findings of a table of checks, in its order."""
    findings = []
    for check in checks:
        for facts in check.find(subject):
            where = check.where(subject)
            place = "" if check.severity == ERROR else where
            finding = Finding(check.code, check.severity, place, facts, check.case)
            if check.severity == ERROR:
                raise finding.error(check.argument, where or None)
            findings.append(finding)
    return findings


@cache
def messages() -> Mapping[str, Mapping[str, Any]]:
    """Return rule, hint and cases of each code."""
    text = Path(__file__).with_name("messages.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def message(code: str, part: str, case: str = "") -> str:
    """Return the rule or the hint of a code, with the words of a case, and facts in braces."""
    text: str = messages()[code].get(part, "")
    for name, words in messages()[code]["cases"][case].items() if case else ():
        text = text.replace(f"{{{name}}}", words)
    return text


class _Words(string.Formatter):
    """Texts from files on one line and shortened; the first names of a list."""

    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, list | tuple):
            return listed([f"{one:.9g}" if isinstance(one, float) else one for one in value])
        return printable(value) if isinstance(value, str) and not spec else format(value, spec)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and value != value:
        return "nan"
    return value.item() if hasattr(value, "item") else value
