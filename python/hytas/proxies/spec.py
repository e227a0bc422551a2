"""A proxy as the user writes it: `snip`, `dss:sign=weights:parts=log`, `rank-mean(snip,dss)`."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from hytas.errors import InputError
from hytas.proxies.table import COMBINATIONS, CURVATURE, PROXIES, SYNONYMS, Proxy
from hytas.spaces import space_of
from hytas.spaces.checks import check_genes


class Scores(TypedDict):
    """The scores of an architecture.

    scores: proxy -> score, NaN where it failed; seconds: share of its batch's time; reasons:
    proxy -> reason of its NaN.
    """

    scores: dict[str, float]
    seconds: float
    reasons: dict[str, str]


@dataclass(frozen=True)
class ProxySpec:
    """One proxy with its options, or a combination of several.

    Attributes:
        name: key of `PROXIES`, or of `COMBINATIONS`.
        options: every option of the proxy, defaults included.
        members: of a combination; empty for a proxy.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    members: tuple["ProxySpec", ...] = ()

    @property
    def proxy(self) -> Proxy:
        """The table's entry; a combination has none."""
        return PROXIES[self.name]

    @property
    def cancels(self) -> bool:
        """Whether its terms have both signs, so that their sum needs more than float32."""
        if self.proxy.extra == CURVATURE:
            return True
        return any(self.options[key] != value for key, value in self.proxy.positive.items())

    def __str__(self) -> str:
        """The canonical text: only the options that differ from their defaults, sorted."""
        if self.members:
            return f"{self.name}({','.join(map(str, self.members))})"
        chosen = [
            f":{key}={value}"
            for key, value in sorted(self.options.items())
            if value != self.proxy.options[key][0]
        ]
        return self.name + "".join(chosen)


def parse_proxies(text: str | Sequence[str]) -> tuple[ProxySpec, ...]:
    """Return the proxies of a comma-separated text (or of several), without duplicates.

    Raises:
        InputError: nothing is named, or a name, an option or a value is unknown.
    """
    texts = [text] if isinstance(text, str) else list(text)
    specs = [_parse_one(part) for each in texts for part in _split(each)]
    if not specs:
        raise InputError("proxy", text, f"name at least one of {', '.join(PROXIES)}")
    return tuple({str(spec): spec for spec in specs}.values())


def canonical(text: str) -> str:
    """Return the canonical text of one proxy, or `text` if it names none."""
    try:
        return str(_parse_one(text))
    except InputError:
        return text


def base_proxies(specs: Sequence[ProxySpec]) -> tuple[ProxySpec, ...]:
    """Return the proxies to evaluate: combinations are replaced by their members."""
    flat = [member for spec in specs for member in (spec.members or (spec,))]
    return tuple({str(spec): spec for spec in flat}.values())


def fitness(spec: ProxySpec, scores: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """Return the fitness (n,) of architectures by a proxy or a combination.

    Args:
        spec: from `parse_proxies`.
        scores: proxy -> score for each architecture, as `Evaluator.score` returns them.
    """
    names = [str(member) for member in spec.members or (spec,)]
    columns = [np.array([each.get(name, np.nan) for each in scores], np.float64) for name in names]
    return COMBINATIONS[spec.name](columns) if spec.members else columns[0]


def record_score(result: Scores, name: str, value: float) -> None:
    """Record a score; a value that is not finite becomes NaN, with its reason."""
    result["scores"][name] = value
    if value != value:
        proxy = name.partition(":")[0]
        hint = f"; `hytas proxies {proxy}` lists its options" if PROXIES[proxy].options else ""
        result["reasons"][name] = f"not a number: the formula has no value here{hint}"
    elif value in (float("inf"), float("-inf")):
        result["scores"][name] = float("nan")
        result["reasons"][name] = f"{value}: the score has no finite value"


def check_architecture(architecture: Mapping[str, Any]) -> None:
    """Refuse an architecture that no network can be built of.

    Raises:
        InputError: its space has no network; or, in a space of `hytas.spaces.checks.FREE`, a gene
            is missing or genes contradict each other.
    """
    from hytas.models.table import NETWORKS

    if (space := space_of(architecture)) not in NETWORKS:
        raise InputError("architecture space", space, f"not one of {', '.join(NETWORKS)}")
    check_genes(architecture)


def _split(text: str) -> list[str]:
    """Split at the commas outside parentheses."""
    parts, level, start = [], 0, 0
    for position, letter in enumerate(text):
        level += (letter == "(") - (letter == ")")
        if level < 0:
            break
        if letter == "," and level == 0:
            parts.append(text[start:position])
            start = position + 1
    if level:
        raise InputError("proxy", text, "the parentheses do not match")
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _parse_one(text: str) -> ProxySpec:
    text = SYNONYMS.get(text.strip(), text)
    name, bracket, rest = text.partition("(")
    if bracket:
        return _parse_combination(name.strip(), rest)
    name, *settings = (part.strip() for part in text.split(":"))
    if name in COMBINATIONS:
        raise InputError("proxy", name, f"say of which, such as {name}(snip,dss)")
    if name not in PROXIES:
        raise InputError("proxy", name, f"unknown{_nearest(name, [*PROXIES, *COMBINATIONS])}")
    allowed = PROXIES[name].options
    chosen: dict[str, str] = {}
    for setting in settings:
        key, _, value = (part.strip() for part in setting.partition("="))
        if key not in allowed:
            rule = f"its options are {', '.join(allowed)}" if allowed else "it has no options"
            raise InputError("proxy", text, f"{name} has no option {key!r}", hint=rule)
        if value not in allowed[key]:
            raise InputError("proxy", text, f"{key} must be one of {', '.join(allowed[key])}")
        if key in chosen:
            raise InputError("proxy", text, f"{key} is given twice")
        chosen[key] = value
    options = {key: values[0] for key, values in allowed.items()} | chosen
    _check_together(text, PROXIES[name], options)
    return ProxySpec(name, options)


def _check_together(text: str, proxy: Proxy, options: Mapping[str, str]) -> None:
    """Refuse options that are each allowed and have no meaning together."""
    if options.get("layers") == "all" and options.get("parts", "sum") != "sum":
        raise InputError(
            "proxy",
            text,
            f"layers=all adds layers to the sum, and parts={options['parts']} reads attention "
            "and MLP alone",
            hint="leave one of the two out",
        )
    signed = [f"{key}={value}" for key, value in proxy.positive.items() if options[key] != value]
    if options.get("parts") == "log" and signed:
        rule = "parts=log takes the logarithm of each part, and these terms have both signs"
        hint = f"add {', '.join(signed)}"
        raise InputError("proxy", text, rule, hint)


def _parse_combination(name: str, rest: str) -> ProxySpec:
    if not name:
        one = next(iter(COMBINATIONS))
        rule = f"a combination has a name, such as {one}(snip,dss)"
        raise InputError("proxy", f"({rest}", rule)
    if name not in COMBINATIONS:
        raise InputError("proxy", name, f"unknown{_nearest(name, list(COMBINATIONS))}")
    inside, _, after = rest.rpartition(")")
    if after.strip():
        raise InputError("proxy", f"{name}({rest}", "nothing may follow the closing parenthesis")
    members = tuple(_parse_one(part) for part in _split(inside))
    if len(set(map(str, members))) < max(len(members), 2) or any(one.members for one in members):
        rule = "combine two or more different plain proxies"
        raise InputError("proxy", f"{name}({inside})", rule)
    return ProxySpec(name, members=members)


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower().replace("-", "_"), names, 1, 0.5)
    near = near or difflib.get_close_matches(name.lower(), names, 1, 0.5)
    return f"; did you mean {near[0]}?" if near else f"; choose from {', '.join(names)}"
