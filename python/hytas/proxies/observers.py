"""Which code observes the networks of a search space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hytas.proxies.generic import observe_modules
from hytas.proxies.observe import Setting, observe_stacked
from hytas.proxies.spec import ProxySpec
from hytas.spaces import PAPER_SPACE, space_of

Observer = Callable[[Sequence[Any], Sequence[ProxySpec], Setting], dict[str, list[float]]]

# search space -> what observes a group of its networks together. Networks of any other space are
# built as they ship and observed one at a time.
STACKED: dict[str, Observer] = {PAPER_SPACE: observe_stacked}


def together(architecture: Mapping[str, Any]) -> bool:
    """Whether networks like this one are observed in groups."""
    return space_of(architecture) in STACKED


def observe(
    architectures: Sequence[Mapping[str, Any]], specs: Sequence[ProxySpec], setting: Setting
) -> dict[str, list[float]]:
    """Score a group of networks of one space: proxy -> score of each."""
    observer: Observer = STACKED.get(space_of(architectures[0]), observe_modules)
    return observer(architectures, specs, setting)
