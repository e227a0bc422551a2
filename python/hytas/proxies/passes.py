"""The passes that a set of proxies needs of one network, or of several of a kind, each pass once.

The network is the one that is trained and exported. It runs with initial weights by name
(`initial.py`), and hooks show its linear layers to the proxies (`probe.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.machine import exactly
from hytas.models.layers import attention_written_out
from hytas.models.network import Network
from hytas.proxies.formulas import LINEAR, MLP, MSA
from hytas.proxies.initial import Pool, Start, Values
from hytas.proxies.linalg import nuclear_norms
from hytas.proxies.probe import Look, Probe, TooLargeError, Visitor
from hytas.proxies.spec import ProxySpec
from hytas.proxies.table import CURVATURE, FORWARD, INPUT, PERTURBED
from hytas.proxies.taps import Product, Tap

CURVED_TOGETHER = 4  # samples whose second derivatives are taken at once

# The parts of which a score may be asked alone, or on a logarithmic scale each.
PART_OF = dict.fromkeys(MSA, "msa") | dict.fromkeys(MLP, "mlp")


@dataclass(frozen=True)
class Setting:
    """What the passes of all networks share.

    Attributes:
        pool: initial weights of the seed.
        classes: C.
        batch: labelled patches, or None.
        ones: one patch of ones, (1, P, P, bands).
        memory: bytes of activations above which they are computed twice rather than kept.
    """

    pool: Pool
    classes: int
    batch: tuple[Tensor, Tensor] | None
    ones: Tensor
    memory: int


class Tally:
    """Adds up what the layers give one proxy, part by part."""

    def __init__(self, spec: ProxySpec) -> None:
        self.spec = spec
        every = spec.options.get("layers") == "all"
        self.kinds = LINEAR if every else spec.proxy.kinds
        self.parts: dict[str, Tensor] = {}

    def visit(self, tap: Tap) -> None:
        """Add a layer's contribution, if the proxy reads layers of this kind."""
        if tap.kind not in self.kinds:
            return
        value = self.spec.proxy.function(tap, **self._options()).double()
        if tap.there is not None:  # of a layer that is not there, it may have no value
            there = tap.there.view(-1, *[1] * (value.ndim - 1))
            value = torch.where(there, value, 0.0)
        part = PART_OF.get(tap.kind, "other")
        self.parts[part] = self.parts[part] + value if part in self.parts else value

    def scores(self) -> list[float]:
        """Return the score of each network.

        Raises:
            InputError: the networks have none of the layers that the proxy reads.
        """
        choice = self.spec.options.get("parts", "sum")
        wanted = {"msa", "mlp"} if choice == "log" else {choice} - {"sum"}
        if not self.parts or not wanted <= self.parts.keys():
            kinds = ", ".join(self.kinds)
            raise InputError(f"reads layers of the kinds {kinds}; the network has none")
        if choice == "log":
            # Supplementary 7.4: attention and MLP differ in scale; NaN where a part is negative.
            parts = [self.parts[part].log() for part in ("msa", "mlp")]
        else:
            parts = list(self.parts.values()) if choice == "sum" else [self.parts[choice]]
        total = torch.stack(parts).sum(0)
        finish = self.spec.proxy.finish
        found = total if finish is None else finish(total, **self._options())
        values: list[float] = found.tolist()
        return values

    def _options(self) -> dict[str, str]:
        """Return the options that the function itself reads."""
        common = ("parts", "layers", "sign")
        return {key: value for key, value in self.spec.options.items() if key not in common}


def score_networks(
    start: Start, specs: Sequence[ProxySpec], setting: Setting
) -> list[dict[str, float]]:
    """Score networks: of each proxy -> score.

    Args:
        start: the networks and their initial weights.
        specs: proxies that need a pass.
        setting: what all networks share.

    Raises:
        TooLargeError: a batch of several networks needs more memory than there is.
    """
    probe = Probe(start, setting.classes)
    scores: dict[str, list[float]] = {}
    for (name, sign, every), sharing in _by_passes(specs).items():
        tallies = [Tally(spec) for spec in sharing]
        with _all_tokens(start.network) if every else nullcontext():
            if name == "ones":
                ones_pass(probe, start, sign, tallies, setting)
            else:
                _DataPass(probe, tallies, setting).run(start, start.signed(sign))
        scores.update({str(tally.spec): tally.scores() for tally in tallies})
    return [dict(zip(scores, values, strict=True)) for values in zip(*scores.values(), strict=True)]


def _by_passes(specs: Sequence[ProxySpec]) -> dict[tuple[str, str, bool], list[ProxySpec]]:
    """Return (pass, sign step, whether all tokens are computed) -> the proxies that share it."""
    found: dict[tuple[str, str, bool], list[ProxySpec]] = {}
    for spec in specs:
        key = (spec.proxy.pass_name, spec.options.get("sign", "none"), spec.proxy.all_tokens)
        found.setdefault(key, []).append(spec)
    return found


@contextmanager
def _all_tokens(network: nn.Module) -> Iterator[None]:
    """Let the last layers compute the tokens that nothing reads, too."""
    streams = network.token_streams.values() if isinstance(network, Network) else ()
    for stream in streams:
        stream.observer = lambda _: None
    try:
        yield
    finally:
        for stream in streams:
            stream.observer = None


def ones_pass(
    probe: Probe, start: Start, sign: str, tallies: Sequence[Tally], setting: Setting
) -> None:
    """Show the layers in the pass of one patch of ones; its scalar is the sum of the logits."""
    values = start.signed(sign)
    kinds = {kind for tally in tallies for kind in tally.kinds}
    taps: list[Tap] = []
    if not any(layer.kind in kinds for layer in probe.layers):
        return
    if start.outlines and all(tally.spec.proxy.weights_only for tally in tallies):
        taps += _with_gradients(probe, values, kinds, setting.ones)
    else:
        probe.use(values)
        look = Look(probe, 1, kinds=kinds, memory=None if start.count == 1 else setting.memory)
        with torch.enable_grad(), probe.watched(look):
            _go_back(look, probe.logits(setting.ones).sum(), taps.append)
    if any(tally.spec.proxy.nuclear_norms for tally in tallies):
        _take_norms(taps, start, sign, setting.pool)
    for tap in taps:
        _visit(tallies, tap)


def _with_gradients(
    probe: Probe, values: Values, kinds: Collection[str], ones: Tensor
) -> Iterator[Tap]:
    """Yield weights and their gradients, the last layer first."""
    layers = [layer for layer in reversed(probe.layers) if layer.kind in kinds]
    names = [f"{layer.name}.weight" for layer in layers]
    leaves = [probe.leaf(values[name]) for name in names]
    probe.use(values, dict(zip(names, leaves, strict=True)))
    with torch.enable_grad():
        grads = torch.autograd.grad(probe.logits(ones).sum(), leaves, allow_unused=True)
    for layer, name, grad in zip(layers, names, grads, strict=True):
        if grad is not None:
            weight = values[name]
            yield Tap.of_weight(layer, weight, grad.view_as(weight), probe.real(name))


def _take_norms(taps: Sequence[Tap], start: Start, sign: str, pool: Pool) -> None:
    """Take the nuclear norms of all attention layers together, which pays on a GPU.

    Those of weights that several networks have are taken once.
    """
    wanted = [tap for tap in taps if tap.kind in MSA]
    if not wanted:
        return
    keys = [start.keys(f"{tap.name}.weight", sign) for tap in wanted]
    unknown = [
        [row for row, key in enumerate(own) if key is None or key not in pool.norms] for own in keys
    ]
    stacks, real = [tap.grad for tap in wanted], [_ends(tap) for tap in wanted]
    for tap, rows, ends in zip(wanted, unknown, list(real), strict=True):
        if rows:
            stacks.append(tap.weight[rows])
            real.append(None if ends is None else (ends[0], ends[1][rows]))
    norms = nuclear_norms(stacks, real)
    of_unknown = iter(norms[len(wanted) :])
    for tap, own, rows, of_grad in zip(wanted, keys, unknown, norms, strict=False):
        fresh = dict(zip(rows, next(of_unknown), strict=True)) if rows else {}
        pool.norms.update({key: fresh[row] for row, key in enumerate(own) if row in fresh and key})
        of_weight = [fresh[row] if row in fresh else pool.norms[key] for row, key in enumerate(own)]
        tap.norms = of_grad, torch.stack(of_weight)


def _ends(tap: Tap) -> tuple[int, Tensor] | None:
    """Return the axis of an attention's weight that has no heads, and how much of it is real."""
    if tap.real is None:
        return None
    return (2, tap.real.inputs) if tap.kind == "qkv" else (1, tap.real.outputs)


class _DataPass:
    """The pass of the labelled patches; its scalar is the mean cross-entropy.

    Args:
        probe: the network.
        tallies: of the proxies that share the pass.
        setting: what all networks share.
    """

    def __init__(self, probe: Probe, tallies: Sequence[Tally], setting: Setting) -> None:
        if setting.batch is None:
            raise ValueError("batch: these proxies need labelled patches")
        self.probe, self.setting = probe, setting
        patches, self.labels = setting.batch
        # A score reads only the pixels that the network sees.
        network = probe.network
        self.patches = network.seen(patches) if isinstance(network, Network) else patches
        needing: dict[str, list[Tally]] = {}
        for tally in tallies:
            needing.setdefault(tally.spec.proxy.extra, []).append(tally)
        self.forward = needing.get(FORWARD, [])
        self.of_input = needing.get(INPUT, [])
        self.curved = needing.get(CURVATURE, [])
        self.twinned = bool(needing.get(PERTURBED))
        self.backward = [*needing.get("", []), *needing.get(PERTURBED, [])]
        # Each sample's gradients first: their sum is cheaper than a second product.
        self.backward.sort(key=lambda tally: not tally.spec.proxy.sample_grads)
        self.twins: dict[str, list[Tap]] = {}
        self.grads: dict[str, Tensor] = {}
        self.recompute = False
        # The twin's outputs are kept beside the graph of the network itself.
        self.memory = setting.memory // (2 if self.twinned else 1)

    def run(self, start: Start, values: Values) -> None:
        """Show the layers of the network, with its weights `values`, to every tally."""
        if self.twinned:
            noisy = self.setting.pool.perturbed(self.patches)
            self._watch(start.perturbed(values), noisy, self._remember)
        look = self._watch(values, self.patches, self._show)
        if self.curved:
            # Second derivatives are sums of many small terms: never in reduced precision.
            with exactly(self.patches.device):
                batch = (self.patches, self.labels)
                found = curvature_of(self.probe, values, batch, self.grads, self._few(look))
            found = found[:, None, None]
            _visit(self.curved, _summary("curvature", Product(found, found)))

    def _watch(self, values: Values, patches: Tensor, late: Visitor) -> Look:
        """Go forward and backward; once more with less memory if the graph is too large to keep."""
        own = patches is self.patches
        early = partial(_visit, self.forward) if own and self.forward else None
        while True:
            self.probe.use(values)
            samples = len(self.patches)
            look = Look(self.probe, samples, early, memory=self.memory, recompute=self.recompute)
            try:
                self._pass(look, patches, late)
            except TooLargeError:
                if self.probe.count > 1:
                    raise
                self.recompute = True
                for tally in self.forward:
                    tally.parts.clear()
            else:
                return look

    def _pass(self, look: Look, patches: Tensor, late: Visitor) -> None:
        of_input = self.of_input if patches is self.patches else []
        needed = bool(self.backward or self.curved)
        with torch.set_grad_enabled(needed or bool(of_input)), self.probe.watched(look):
            networks = self.probe.count
            if of_input:
                patches = patches.detach().repeat(networks, 1, 1, 1, 1).requires_grad_()
            logits = self.probe.logits(patches)
            if of_input:
                _go_back(look, logits.sum(), None, again=needed)
                assert patches.grad is not None
                seen = Product(patches.detach(), patches.detach(), patches.grad)
                _visit(of_input, _summary("input", seen))
            if needed:
                losses = F.cross_entropy(
                    logits.flatten(0, 1), self.labels.repeat(networks), reduction="sum"
                )
                _go_back(look, losses / len(self.labels), late)

    def _remember(self, tap: Tap) -> None:
        """Keep what is compared of a twin's layer: outputs, weight, and its gradient."""
        _ = tap.grad
        tap.products = [Product(p.inputs.new_empty(0), p.outputs) for p in tap.products]
        self.twins.setdefault(tap.name, []).append(tap)

    def _show(self, tap: Tap) -> None:
        """Show a layer of the network itself, with its gradients."""
        if self.twinned:
            tap.twin = self.twins[tap.name].pop(0)
        _visit(self.backward, tap)
        if self.curved:
            known = self.grads.get(tap.name)  # of a layer that is called twice
            self.grads[tap.name] = tap.grad if known is None else known + tap.grad

    def _few(self, look: Look) -> int:
        """Return how many samples' second derivatives fit the memory.

        They take about four times the memory of the activations.
        """
        each = 4 * look.kept // len(self.patches)
        return max(1, min(CURVED_TOGETHER, self.setting.memory // max(1, each)))


def _visit(tallies: Sequence[Tally], tap: Tap) -> None:
    for tally in tallies:
        tally.visit(tap)


def _summary(kind: str, product: Product) -> Tap:
    """Return a tap of the kinds that are no layers; see `Tap`."""
    none = product.outputs.new_empty(0)
    return Tap(kind, "", none, none, [product])


def _go_back(look: Look, scalar: Tensor, late: Visitor | None, *, again: bool = False) -> None:
    look.backward, look.late = True, late
    torch.autograd.backward(scalar, retain_graph=again)


def curvature_of(
    probe: Probe,
    values: Values,
    batch: tuple[Tensor, Tensor],
    grads: Mapping[str, Tensor],
    samples: int,
) -> Tensor:
    """Return w' H g, H the Hessian of the mean cross-entropy by the linear weights.

    Args:
        probe: the networks.
        values: their weights by name.
        batch: patches (N, P, P, bands) and labels (N,).
        grads: name of a linear layer -> g, the direction, (K, out, in).
        samples: patches taken together, through one graph that is differentiated twice.

    Returns:
        Of each network, (K,).
    """
    foreign = not isinstance(probe.network, Network)
    names = [f"{name}.weight" for name in grads]
    weights = {name: probe.leaf(values[name]) for name in names}
    along = [g.view_as(weights[name]) for name, g in zip(names, grads.values(), strict=True)]
    probe.use(values, weights)
    total = batch[0].new_zeros(probe.count)

    def differentiate(patches: Tensor, labels: Tensor) -> None:
        nonlocal total
        with torch.enable_grad(), attention_written_out(foreign):
            logits = probe.logits(patches).flatten(0, 1)
            losses = F.cross_entropy(logits, labels.repeat(probe.count), reduction="sum")
            loss = losses / len(batch[0])
            first = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            slope = torch.stack([(g * f).sum() for g, f in zip(along, first, strict=True)]).sum()
        second = torch.autograd.grad(slope, list(weights.values()))
        for weight, curved in zip(weights.values(), second, strict=True):
            total = total + (weight.detach() * curved).view(probe.count, -1).sum(1)

    for patches, labels in zip(*(torch.split(each, samples) for each in batch), strict=True):
        differentiate(patches, labels)
    return total
