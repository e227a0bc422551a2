"""Scores of networks of any search space: the passes of observe.py, run on modules with hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from hytas.machine import exactly
from hytas.models.spectral import crop
from hytas.models.table import patch_size_of
from hytas.proxies.draws import perturbed_patches
from hytas.proxies.initial import Values, blueprint, load
from hytas.proxies.modules import Look, Probe, TooLargeError, Visitor
from hytas.proxies.network import Tap
from hytas.proxies.observe import Setting, Tally, by_passes, samples_first
from hytas.proxies.passes import cross_entropy_grad
from hytas.proxies.spec import ProxySpec
from hytas.proxies.table import CURVATURE, FORWARD, INPUT, PERTURBED

Grads = dict[int, Tensor]
"""Place of a layer, from 1 -> the gradient of its weight, (out, in)."""


class Start(Protocol):
    """A network and its initial weights: `Blueprint`, or what a test gives in its place."""

    @property
    def network(self) -> nn.Module: ...

    def values(self, sign: str = "none") -> Values: ...

    def perturbed(self, values: Values) -> Values: ...


def observe_modules(
    architectures: Sequence[Mapping[str, Any]], specs: Sequence[ProxySpec], setting: Setting
) -> dict[str, list[float]]:
    """Score networks of any space, one after another: proxy -> score of each.

    Args:
        architectures: of spaces that `NETWORKS` (hytas.models) builds.
        specs: proxies that need a pass.
        setting: what all groups share.
    """
    values: dict[str, list[float]] = {str(spec): [] for spec in specs}
    for architecture in architectures:
        start = blueprint(architecture, setting.shape, setting.draws)
        for name, value in score_network(start, specs, _seen(setting, architecture)).items():
            values[name].append(value)
    return values


def _seen(setting: Setting, architecture: Mapping[str, Any]) -> Setting:
    """The setting with as much of its patches as the network looks at: scores read them, too."""
    if setting.batch is None:
        return setting
    patches, labels = setting.batch
    side = patch_size_of(architecture, setting.shape)
    return replace(setting, batch=(crop(patches, side), labels))


def score_network(start: Start, specs: Sequence[ProxySpec], setting: Setting) -> dict[str, float]:
    """Score one network: proxy -> score."""
    probe = Probe(start.network, setting.shape.classes)
    scores: dict[str, float] = {}
    for (name, sign), sharing in by_passes(specs).items():
        values = start.values(sign)
        load(probe.network, values)
        tallies = [Tally(spec, 1, setting.ones.device) for spec in sharing]
        if name == "ones":
            _ones_pass(probe, tallies, setting)
        else:
            _DataPass(probe, tallies, setting).run(start, values)
        scores.update({str(tally.spec): tally.score()[0] for tally in tallies})
    return scores


def _ones_pass(probe: Probe, tallies: Sequence[Tally], setting: Setting) -> None:
    """The pass of one patch of ones; its scalar is the sum of the logits."""
    look = Look(1)
    with torch.enable_grad(), probe.watched(look):
        logits = probe.logits(setting.ones)
        _go_back(look, logits, torch.ones_like(logits), _visitor(tallies))


class _DataPass:
    """The pass of the labelled patches; its scalar is the mean cross-entropy."""

    def __init__(self, probe: Probe, tallies: Sequence[Tally], setting: Setting) -> None:
        if setting.batch is None:
            raise ValueError("batch: these proxies need labelled patches")
        self.probe, self.setting = probe, setting
        self.patches, self.labels = setting.batch
        self.by_need: dict[str, list[Tally]] = {}
        for tally in tallies:
            self.by_need.setdefault(tally.spec.proxy.extra, []).append(tally)
        self.early = self.by_need.pop(FORWARD, [])
        self.twins: dict[float, Tap] = {}
        self.grads: Grads = {}
        self.recompute = False
        # The twin's outputs are kept beside the graph of the network itself.
        self.memory = setting.memory // (2 if PERTURBED in self.by_need else 1)

    def run(self, start: Start, values: Values) -> None:
        """Look at the network, with its weights `values`, through every tally."""
        if PERTURBED in self.by_need:
            load(self.probe.network, start.perturbed(values))
            moved = perturbed_patches(self.patches, self.setting.draws.pool)
            self._watch(moved, None, self._remember)
            load(self.probe.network, values)
        look = self._watch(self.patches, _visitor(self.early), self._show)
        if CURVATURE in self.by_need:
            # Second derivatives are sums of many small terms: never in reduced precision.
            with exactly(self.patches.device):
                found = curvature_of(
                    self.probe,
                    look.order,
                    (self.patches, self.labels),
                    self.grads,
                    self._few(look),
                )
            _visitor(self.by_need[CURVATURE])(_summary("curvature", outputs=found[None]))

    def _watch(self, patches: Tensor, early: Visitor | None, late: Visitor) -> Look:
        """Forward and backward, again with less memory where the graph is too large to keep."""
        while True:
            look = Look(len(patches), early, memory=self.memory, recompute=self.recompute)
            try:
                self._pass(look, patches, late)
            except TooLargeError:
                self.recompute = True
                for tally in self.early:
                    tally.parts.clear()
            else:
                return look

    def _pass(self, look: Look, patches: Tensor, late: Visitor) -> None:
        own = patches is self.patches
        of_input = self.by_need.get(INPUT, []) if own else []
        needed = [need for need in self.by_need if need != INPUT]
        with torch.set_grad_enabled(bool(self.by_need)), self.probe.watched(look):
            if of_input:
                patches = patches.detach().requires_grad_()
            logits = self.probe.logits(patches)
            if of_input:
                ones = torch.ones_like(logits)
                _go_back(look, logits, ones, None, again=bool(needed))
                assert patches.grad is not None
                _visitor(of_input)(_summary("input", output_grad=patches.grad[None]))
            if needed:
                grad = cross_entropy_grad(logits.detach()[None], self.labels)[0]
                _go_back(look, logits, grad, late)

    def _remember(self, tap: Tap) -> None:
        """Keep of a twin's layer what is compared: outputs, weight, and its gradient."""
        _ = tap.grad
        empty = tap.outputs.new_empty(0)
        tap.inputs, tap.output_grad = empty, empty
        self.twins[float(tap.order)] = tap

    def _show(self, tap: Tap) -> None:
        if PERTURBED in self.by_need:
            tap.twin = self.twins.pop(float(tap.order), None)
        readers = samples_first(self.by_need.get("", []))
        _visitor([*readers, *self.by_need.get(PERTURBED, [])])(tap)
        if CURVATURE in self.by_need:
            self.grads[int(tap.order)] = tap.grad[0]

    def _few(self, look: Look) -> int:
        """Samples whose second derivatives fit the memory: about four times their activations."""
        each = 4 * look.kept // len(self.patches)
        return max(1, min(4, self.setting.memory // max(1, each)))


def _visitor(tallies: Sequence[Tally]) -> Visitor:
    def visit(tap: Tap) -> None:
        for tally in tallies:
            tally.visit(tap)

    return visit


def _summary(kind: str, **tensors: Tensor) -> Tap:
    """A tap that is no layer: see `Tap`."""
    some = next(iter(tensors.values()))
    place, empty = torch.zeros(1, dtype=torch.int64, device=some.device), some.new_empty(0)
    outputs, grad = tensors.get("outputs", empty), tensors.get("output_grad")
    return Tap(kind, place, place, empty, empty, outputs, grad)


def _go_back(
    look: Look, logits: Tensor, grad: Tensor, late: Visitor | None, *, again: bool = False
) -> None:
    look.backward, look.late = True, late
    torch.autograd.backward(logits, grad.to(logits), retain_graph=again)


class _WrittenOut(TorchFunctionMode):
    """Attention written out: its fused kernels cannot be differentiated twice."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is F.scaled_dot_product_attention and len(args) == 3 and not kwargs:
            query, key, value = args
            scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
            return scores.softmax(-1) @ value
        return func(*args, **(kwargs or {}))


def curvature_of(
    probe: Probe,
    order: Mapping[nn.Module, int],
    batch: tuple[Tensor, Tensor],
    grads: Grads,
    samples: int,
) -> Tensor:
    """w' H g, H the Hessian of the mean cross-entropy by the linear weights, differentiating twice.

    Args:
        probe: the network.
        order: places of its layers, as the pass numbered them.
        batch: patches (N, P, P, bands) and labels (N,).
        grads: g.
        samples: patches taken together.

    Returns:
        A scalar.
    """
    names = {module: f"{name}.weight" for name, module in probe.network.named_modules()}
    known = dict(probe.network.named_parameters())
    weights = {names[m]: known[names[m]].detach().requires_grad_() for m in order}
    along = [grads[place].view_as(weights[names[module]]) for module, place in order.items()]
    total = batch[0].new_zeros(())
    pieces = zip(*(torch.split(each, samples) for each in batch), strict=True)
    for patches, labels in pieces:
        with torch.enable_grad(), _WrittenOut():
            found = functional_call(probe.network, weights, (patches,))
            logits = found[0] if isinstance(found, tuple) else found
            loss = F.cross_entropy(logits, labels, reduction="sum") / len(batch[0])
            first = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            slope = torch.stack([(g * f).sum() for g, f in zip(along, first, strict=True)]).sum()
        second = torch.autograd.grad(slope, list(weights.values()))
        for weight, curved in zip(weights.values(), second, strict=True):
            total = total + (weight.detach() * curved).sum()
    return total
