"""Runs the passes that a set of proxies needs on one group of networks, each pass once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..models.shape import InputShape
from .formulas import LINEAR, MLP, MSA
from .network import Group, Tap
from .passes import Pass
from .spec import ProxySpec
from .weights import Weights

# The parts of which a score may be asked alone, or on a logarithmic scale each.
PART_OF = dict.fromkeys(MSA, "msa") | dict.fromkeys(MLP, "mlp")


class Tally:
    """Adds up what the layers give one proxy, part by part.

    Args:
        spec: the proxy.
        networks: A, the size of the group.
    """

    def __init__(self, spec: ProxySpec, networks: int, device: torch.device) -> None:
        self.spec, self.networks, self.device = spec, networks, device
        every = spec.options.get("layers") == "all"
        self.kinds = LINEAR if every else spec.proxy.kinds
        self.parts: dict[str, Tensor] = {}

    def visit(self, tap: Tap) -> None:
        """Add a layer's contribution, if the proxy reads layers of this kind."""
        if tap.kind not in self.kinds:
            return
        value = self.spec.proxy.function(tap, **self._options()).double()
        part = PART_OF.get(tap.kind, "other")
        if part not in self.parts:
            self.parts[part] = value.new_zeros(self.networks, *value.shape[1:])
        self.parts[part].index_add_(0, tap.members, value)

    def score(self) -> list[float]:
        """The score of each network."""
        choice = self.spec.options.get("parts", "sum")
        if choice == "log":
            # Supplementary 7.4: attention and MLP differ in scale; NaN where a part is negative.
            total = sum((self.parts[part].log() for part in ("msa", "mlp")), self._zeros())
        elif choice == "sum":
            total = sum(self.parts.values(), torch.zeros((), device=self.device))
        else:
            total = self.parts[choice]
        finish = self.spec.proxy.finish
        result: Tensor = finish(total, **self._options()) if finish is not None else total
        return [float(value) for value in result.tolist()]

    def _zeros(self) -> Tensor:
        return torch.zeros(self.networks, dtype=torch.float64, device=self.device)

    def _options(self) -> dict[str, str]:
        """The options that the function itself reads: what is left of the common ones."""
        common = ("parts", "layers", "sign")
        return {key: value for key, value in self.spec.options.items() if key not in common}


class Observation:
    """One group of networks, and the passes that proxies ask of it.

    Args:
        networks: weights, deepest first, of one embedding width.
        shape: what the scene fixes.
        batch: labelled patches, or None.
        ones: one patch of ones, (1, P, P, bands).
        seed: of the perturbation.
    """

    def __init__(
        self,
        networks: Sequence[Weights],
        shape: InputShape,
        batch: tuple[Tensor, Tensor] | None,
        ones: Tensor,
        seed: int,
    ) -> None:
        self.networks, self.shape = networks, shape
        self.batch, self.ones, self.seed = batch, ones, seed

    def measure(self, specs: Sequence[ProxySpec]) -> dict[str, list[float]]:
        """proxy -> score of each network."""
        by_pass: dict[tuple[str, str], list[ProxySpec]] = {}
        for spec in specs:
            key = (spec.proxy.pass_name, spec.options.get("sign", "none"))
            by_pass.setdefault(key, []).append(spec)
        values: dict[str, list[float]] = {}
        for (name, sign), sharing in by_pass.items():
            group = Group([n.signed(sign) for n in self.networks], self.shape.band_group)
            run = self._data if name == "data" else self._ones
            values.update(run(group, sharing))
        return values

    def _ones(self, group: Group, specs: Sequence[ProxySpec]) -> dict[str, list[float]]:
        """The pass of one patch of ones; its scalar is the sum of the logits."""
        run = Pass(group, self.ones)
        tallies = self._tallies(specs)
        run.backward(torch.ones_like(run.logits), _visit_all(tallies))
        return {str(tally.spec): tally.score() for tally in tallies}

    def _data(self, group: Group, specs: Sequence[ProxySpec]) -> dict[str, list[float]]:
        """The pass of the labelled patches; its scalar is the mean cross-entropy."""
        if self.batch is None:
            raise ValueError("batch: these proxies need labelled patches")
        patches, labels = self.batch
        run = Pass(group, patches)
        tallies = self._tallies(specs)
        run.backward(cross_entropy_grad(run.logits, labels), _visit_all(tallies))
        return {str(tally.spec): tally.score() for tally in tallies}

    def _tallies(self, specs: Sequence[ProxySpec]) -> list[Tally]:
        return [Tally(spec, len(self.networks), self.ones.device) for spec in specs]


def cross_entropy_grad(logits: Tensor, labels: Tensor) -> Tensor:
    """Gradient of the mean cross-entropy with respect to logits (A, N, classes)."""
    wanted = torch.nn.functional.one_hot(labels, logits.shape[-1]).to(logits.dtype)
    return (logits.softmax(-1) - wanted) / logits.shape[1]


def _visit_all(tallies: Sequence[Tally]) -> Callable[[Tap], Any]:
    def visit(tap: Tap) -> None:
        for tally in tallies:
            tally.visit(tap)

    return visit
