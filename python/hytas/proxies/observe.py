"""Runs the passes that a set of proxies needs on one group of networks, each pass once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import torch
from torch import Tensor

from hytas.machine import exactly
from hytas.models.shape import InputShape
from hytas.proxies.curvature import curvature_along
from hytas.proxies.draws import Draws, perturbed_patches
from hytas.proxies.formulas import LINEAR, MLP, MSA, take_norms
from hytas.proxies.memory import activation_bytes, held_bytes
from hytas.proxies.network import Group, Tap
from hytas.proxies.passes import Pass, cross_entropy_grad, input_gradient
from hytas.proxies.spec import ProxySpec
from hytas.proxies.table import CURVATURE, FORWARD, INPUT, PERTURBED
from hytas.proxies.weights import draw_weights

Architecture = Mapping[str, Any]

CURVED_TOGETHER = 4  # samples whose second derivatives are taken at once

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


@dataclass(frozen=True)
class Setting:
    """What all groups of an evaluator share.

    Attributes:
        shape: what the scene fixes.
        draws: the draws of the seed.
        batch: labelled patches, or None.
        ones: one patch of ones, (1, P, P, bands).
        memory: bytes of activations above which they are computed twice rather than kept.
        exact: whether passes run in the precision of their numbers, not in a reduced one.
    """

    shape: InputShape
    draws: Draws
    batch: tuple[Tensor, Tensor] | None
    ones: Tensor
    memory: int
    exact: bool = True


@dataclass
class _Noted:
    """What the curvature needs of a backward pass.

    Attributes:
        grads: id of a stacked weight -> its gradient.
        layers: id of a stacked weight -> its layer; None if there is no memory to keep them, or
            they are in reduced precision.
    """

    grads: dict[int, Tensor] = field(default_factory=dict)
    layers: dict[int, Tap] | None = None

    def note(self, tap: Tap) -> None:
        """Keep what is needed of a layer, and nothing that was computed for other proxies."""
        key = id(tap.weight)
        self.grads[key] = tap.grad
        if self.layers is not None:
            self.layers[key] = replace(tap, twin=None, norms=None)


def by_passes(specs: Sequence[ProxySpec]) -> dict[tuple[str, str], list[ProxySpec]]:
    """(pass, sign step) -> the proxies that share it."""
    found: dict[tuple[str, str], list[ProxySpec]] = {}
    for spec in specs:
        key = (spec.proxy.pass_name, spec.options.get("sign", "none"))
        found.setdefault(key, []).append(spec)
    return found


def observe_stacked(
    architectures: Sequence[Architecture], specs: Sequence[ProxySpec], setting: Setting
) -> dict[str, list[float]]:
    """Score a group of HyTAS networks, their weights stacked: proxy -> score of each.

    Args:
        architectures: of one embedding width, deepest first.
        specs: proxies that need a pass.
        setting: what all groups share.
    """
    setting = replace(setting, draws=setting.draws.of_group())
    networks = [draw_weights(a, setting.shape, setting.draws) for a in architectures]
    values: dict[str, list[float]] = {}
    for (name, sign), sharing in by_passes(specs).items():
        memo = setting.draws.memo
        signed = [network.signed(sign, memo) for network in networks]
        group = Group(signed, setting.shape.band_group)
        tallies = [Tally(spec, len(networks), setting.ones.device) for spec in sharing]
        if name == "ones":
            _ones_pass(group, tallies, setting)
        else:
            _data_pass(group, tallies, setting, architectures)
        values.update({str(tally.spec): tally.score() for tally in tallies})
    return values


def _ones_pass(group: Group, tallies: Sequence[Tally], setting: Setting) -> None:
    """The pass of one patch of ones; its scalar is the sum of the logits."""
    run = Pass(group, setting.ones)
    steps = run.backward(torch.ones_like(run.logits))
    norms = any(tally.spec.proxy.nuclear_norms for tally in tallies)
    if norms and setting.ones.device.type != "cpu":  # all at once: of one patch, they are small
        steps = iter([[tap for step in steps for tap in step]])
    for taps in steps:
        if norms:
            take_norms(taps, setting.draws.pool.norms)
        _visit(tallies, taps)


def _data_pass(
    group: Group,
    tallies: Sequence[Tally],
    setting: Setting,
    architectures: Sequence[Architecture],
) -> None:
    """The pass of the labelled patches; its scalar is the mean cross-entropy."""
    if setting.batch is None:
        raise ValueError("batch: these proxies need labelled patches")
    patches, labels = setting.batch
    by_need: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_need.setdefault(tally.spec.proxy.extra, []).append(tally)
    early = by_need.pop(FORWARD, [])
    needed = sum(activation_bytes(architecture, patches) for architecture in architectures)
    keep = held_bytes(needed, by_need) <= setting.memory
    run = Pass(
        group,
        patches,
        keep=keep and bool(by_need),
        visit=(lambda taps: _visit(early, taps)) if early else None,
    )
    if INPUT in by_need:
        _look_at_input(run, by_need.pop(INPUT), last=not by_need)
    if not by_need:
        return
    noted = _Noted(layers={} if keep and setting.exact else None) if CURVATURE in by_need else None
    twins: Iterable[list[Tap] | None] = repeat(None)
    if PERTURBED in by_need:
        pairs = zip(group.networks, architectures, strict=True)
        twin = Group(
            [n.perturbed(a, setting.shape, setting.draws) for n, a in pairs], group.band_group
        )
        moved = Pass(twin, perturbed_patches(patches, setting.draws.pool), keep=keep)
        twins = moved.backward(cross_entropy_grad(moved.logits, labels))
    readers = [*samples_first(by_need.get("", [])), *by_need.get(PERTURBED, [])]
    keeps_layers = noted is not None and noted.layers is not None
    steps = run.backward(cross_entropy_grad(run.logits, labels), entering=keeps_layers)
    for taps, others in zip(steps, twins, strict=False):
        _look_at_pairs(taps, others, readers, noted)
    if noted is not None:
        room = setting.memory * len(patches) // max(1, 4 * needed)  # samples whose pass fits
        _look_at_curvature(group, by_need[CURVATURE], setting.batch, noted, room)


def _look_at_pairs(
    taps: list[Tap],
    twins: list[Tap] | None,
    readers: Sequence[Tally],
    noted: _Noted | None,
) -> None:
    """Show a segment's layers, each with its twin, and free them: most of the peak is theirs."""
    for tap, twin in zip(taps, twins or repeat(None), strict=False):
        tap.twin = twin
        _visit(readers, [tap])
        if noted is not None:
            noted.note(tap)
        tap.__dict__.pop("sample_grads", None)  # the samples' gradients are by far the largest
    taps.clear()
    if twins is not None:
        twins.clear()


def _look_at_input(run: Pass, tallies: Sequence[Tally], last: bool) -> None:
    for _ in run.backward(torch.ones_like(run.logits), taps=False, again=not last):
        pass
    group = run.group
    grad = input_gradient(group, run.tokens_grad, run.patches)
    everyone, empty = group.everyone(), grad.new_empty(0)
    _visit(tallies, [Tap("input", everyone, everyone, empty, run.patches, empty, grad)])


def _look_at_curvature(
    group: Group,
    tallies: Sequence[Tally],
    batch: tuple[Tensor, Tensor],
    noted: _Noted,
    room: int,
) -> None:
    grads = {key: grad.to(group.head) for key, grad in noted.grads.items()}
    samples = max(1, min(CURVED_TOGETHER, room))
    # Second derivatives are sums of many small terms: never in reduced precision.
    with exactly(batch[0].device):
        value = curvature_along(group, *batch, grads, samples, noted.layers)
    everyone, empty = group.everyone(), value.new_empty(0)
    _visit(tallies, [Tap("curvature", everyone, everyone, empty, empty, value)])


def samples_first(tallies: Sequence[Tally]) -> list[Tally]:
    """Those that read each sample's gradients first: their sum is cheaper than a second product."""
    return sorted(tallies, key=lambda tally: not tally.spec.proxy.sample_grads)


def _visit(tallies: Sequence[Tally], taps: Sequence[Tap]) -> None:
    for tap in taps:
        for tally in tallies:
            tally.visit(tap)
