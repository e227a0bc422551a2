"""The forward and backward passes that proxies share, of one network or a batch of one kind.

The network is the one that is trained and exported. It runs with initial weights by name
(`initial.py`), and hooks record its linear layers for the proxies (`probe.py`).
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
from hytas.proxies.layer_records import LayerRecord, Product
from hytas.proxies.linalg import nuclear_norms
from hytas.proxies.probe import Probe, Recorder, TooLargeError, Visitor
from hytas.proxies.spec import ProxySpec
from hytas.proxies.table import CURVATURE, FORWARD, INPUT, PERTURBED

CURVED_TOGETHER = 4  # samples whose second derivatives are taken at once
CPU_ACTIVATIONS = 400 << 20
"""Bytes of activations on a CPU; the limit keeps the peak of a process under 1 GiB."""
GPU_SHARE = 0.5  # of the free memory, for activations; the rest is gradients and workspace

# The parts of a score that the option `parts` selects.
PART_OF = dict.fromkeys(MSA, "msa") | dict.fromkeys(MLP, "mlp")


@dataclass(frozen=True)
class Setting:
    """The common settings of all passes.

    Attributes:
        batch: labelled patches, or None.
        ones: one patch of ones, (1, P, P, bands).
        memory: bytes of activations above which they are computed twice rather than kept.
    """

    pool: Pool
    classes: int
    batch: tuple[Tensor, Tensor] | None
    ones: Tensor
    memory: int


def activation_memory(device: torch.device) -> int:
    """Return the bytes of activations that a network may keep on `device`."""
    if device.type != "cuda":
        return CPU_ACTIVATIONS
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    available = int((free + cached) * GPU_SHARE)
    # A power of two, so that the last bits of a score do not depend on small differences.
    return 1 << max(available.bit_length() - 1, 0)


class Tally:
    """Adds up the contributions of layers to one proxy, by part."""

    def __init__(self, spec: ProxySpec) -> None:
        self.spec = spec
        every = spec.options.get("layers") == "all"
        self.kinds = LINEAR if every else spec.proxy.kinds
        self.parts: dict[str, Tensor] = {}

    def visit(self, record: LayerRecord) -> None:
        """Add a layer's contribution, if the proxy reads layers of this kind."""
        if record.kind not in self.kinds:
            return
        value = self.spec.proxy.function(record, **self._options()).double()
        if value.shape[:1] != (record.count,):
            rule = f"returned {tuple(value.shape)}, not a value of each network, ({record.count},)"
            raise InputError("proxy", self.spec.name, rule)
        if record.there is not None:  # padding may give NaN
            there = record.there.view(-1, *[1] * (value.ndim - 1))
            value = torch.where(there, value, 0.0)
        part = PART_OF.get(record.kind, "other")
        self.parts[part] = self.parts[part] + value if part in self.parts else value

    def scores(self) -> list[float]:
        """Return the score of each network."""
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
        finished = total if finish is None else finish(total, **self._options())
        values: list[float] = finished.tolist()
        return values

    def _options(self) -> dict[str, str]:
        """Return the options that the function itself reads."""
        common = ("parts", "layers", "sign")
        return {key: value for key, value in self.spec.options.items() if key not in common}


def score_networks(
    start: Start, specs: Sequence[ProxySpec], setting: Setting
) -> list[dict[str, float]]:
    """Return proxy -> score of each network.

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
    """Return (pass, sign step, whether all tokens are computed) -> its proxies."""
    passes: dict[tuple[str, str, bool], list[ProxySpec]] = {}
    for spec in specs:
        key = (spec.proxy.pass_name, spec.options.get("sign", "none"), spec.proxy.all_tokens)
        passes.setdefault(key, []).append(spec)
    return passes


@contextmanager
def _all_tokens(network: nn.Module) -> Iterator[None]:
    """Let the last layers also compute the tokens that no layer reads."""
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
    """Tally the layers in the pass of one patch of ones; its scalar is the sum of the logits."""
    values = start.signed(sign)
    kinds = {kind for tally in tallies for kind in tally.kinds}
    records: list[LayerRecord] = []
    if not any(layer.kind in kinds for layer in probe.layers):
        return
    if start.outlines and all(tally.spec.proxy.weights_only for tally in tallies):
        records += _with_gradients(probe, values, kinds, setting.ones)
    else:
        probe.use(values)
        recorder = Recorder(
            probe, 1, kinds=kinds, memory=None if start.count == 1 else setting.memory
        )
        with torch.enable_grad(), probe.recorded(recorder):
            _backward(recorder, probe.logits(setting.ones).sum(), records.append)
    if any(tally.spec.proxy.nuclear_norms for tally in tallies):
        _take_norms(records, start, sign, setting.pool)
    for record in records:
        _visit(tallies, record)


def _with_gradients(
    probe: Probe, values: Values, kinds: Collection[str], ones: Tensor
) -> Iterator[LayerRecord]:
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
            yield LayerRecord.of_weight(layer, weight, grad.view_as(weight), probe.real(name))


def _take_norms(records: Sequence[LayerRecord], start: Start, sign: str, pool: Pool) -> None:
    """Compute the nuclear norms of all attention layers together, which is faster on a GPU.

    Norms of weights that several networks share are computed once.
    """
    wanted = [record for record in records if record.kind in MSA]
    if not wanted:
        return
    keys = [start.keys(f"{record.name}.weight", sign) for record in wanted]
    unknown = [
        [row for row, key in enumerate(own) if key is None or key not in pool.norms] for own in keys
    ]
    stacks, real = [record.grad for record in wanted], [_ends(record) for record in wanted]
    for record, rows, ends in zip(wanted, unknown, list(real), strict=True):
        if rows:
            stacks.append(record.weight[rows])
            real.append(None if ends is None else (ends[0], ends[1][rows]))
    norms = nuclear_norms(stacks, real)
    of_unknown = iter(norms[len(wanted) :])
    for record, own, rows, of_grad in zip(wanted, keys, unknown, norms, strict=False):
        fresh = dict(zip(rows, next(of_unknown), strict=True)) if rows else {}
        pool.norms.update({key: fresh[row] for row, key in enumerate(own) if row in fresh and key})
        of_weight = [fresh[row] if row in fresh else pool.norms[key] for row, key in enumerate(own)]
        record.norms = of_grad, torch.stack(of_weight)


def _ends(record: LayerRecord) -> tuple[int, Tensor] | None:
    """Return the axis of an attention's weight that has no heads, and how much of it is real."""
    if record.real is None:
        return None
    return (2, record.real.inputs) if record.kind == "qkv" else (1, record.real.outputs)


class _DataPass:
    """The pass of the labelled patches; its scalar is the mean cross-entropy."""

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
        self.twins: dict[str, list[LayerRecord]] = {}
        self.grads: dict[str, Tensor] = {}
        self.recompute = False
        # The graph and the outputs of the twin are in memory at the same time.
        self.memory = setting.memory // (2 if self.twinned else 1)

    def run(self, start: Start, values: Values) -> None:
        """Tally the layers of the network with the weights `values`."""
        if self.twinned:
            noisy = self.setting.pool.perturbed(self.patches)
            self._watch(start.perturbed(values), noisy, self._remember)
        recorder = self._watch(values, self.patches, self._show)
        if self.curved:
            # Second derivatives are sums of many small terms: never in reduced precision.
            with exactly(self.patches.device):
                batch = (self.patches, self.labels)
                curvature = curvature_of(self.probe, values, batch, self.grads, self._few(recorder))
            curvature = curvature[:, None, None]
            _visit(self.curved, _summary("curvature", Product(curvature, curvature)))

    def _watch(self, values: Values, patches: Tensor, late: Visitor) -> Recorder:
        """Run forward and backward; repeat with recomputation if the graph exceeds the memory."""
        own = patches is self.patches
        early = partial(_visit, self.forward) if own and self.forward else None
        while True:
            self.probe.use(values)
            samples = len(self.patches)
            recorder = Recorder(
                self.probe, samples, early, memory=self.memory, recompute=self.recompute
            )
            try:
                self._pass(recorder, patches, late)
            except TooLargeError:
                if self.probe.count > 1:
                    raise
                self.recompute = True
                for tally in self.forward:
                    tally.parts.clear()
            else:
                return recorder

    def _pass(self, recorder: Recorder, patches: Tensor, late: Visitor) -> None:
        of_input = self.of_input if patches is self.patches else []
        needed = bool(self.backward or self.curved)
        with torch.set_grad_enabled(needed or bool(of_input)), self.probe.recorded(recorder):
            networks = self.probe.count
            if of_input:
                patches = patches.detach().repeat(networks, 1, 1, 1, 1).requires_grad_()
            logits = self.probe.logits(patches)
            if of_input:
                _backward(recorder, logits.sum(), None, again=needed)
                assert patches.grad is not None
                seen = Product(patches.detach(), patches.detach(), patches.grad)
                _visit(of_input, _summary("input", seen))
            if needed:
                losses = F.cross_entropy(
                    logits.flatten(0, 1), self.labels.repeat(networks), reduction="sum"
                )
                _backward(recorder, losses / len(self.labels), late)

    def _remember(self, record: LayerRecord) -> None:
        """Keep outputs, weight and gradient of a twin's layer."""
        _ = record.grad
        record.products = [Product(p.inputs.new_empty(0), p.outputs) for p in record.products]
        self.twins.setdefault(record.name, []).append(record)

    def _show(self, record: LayerRecord) -> None:
        """Tally a layer of the network, with its gradients."""
        if self.twinned:
            record.twin = self.twins[record.name].pop(0)
        _visit(self.backward, record)
        if self.curved:
            before = self.grads.get(record.name)  # of a layer that is called twice
            self.grads[record.name] = record.grad if before is None else before + record.grad

    def _few(self, recorder: Recorder) -> int:
        """Return the number of samples whose second derivatives fit the memory.

        They take about four times the memory of the activations.
        """
        each = 4 * recorder.kept // len(self.patches)
        return max(1, min(CURVED_TOGETHER, self.setting.memory // max(1, each)))


def _visit(tallies: Sequence[Tally], record: LayerRecord) -> None:
    for tally in tallies:
        tally.visit(record)


def _summary(kind: str, product: Product) -> LayerRecord:
    """Return a record of a kind that is not a layer; see `LayerRecord`."""
    none = product.outputs.new_empty(0)
    return LayerRecord(kind, "", none, none, [product])


def _backward(
    recorder: Recorder, scalar: Tensor, late: Visitor | None, *, again: bool = False
) -> None:
    recorder.backward, recorder.late = True, late
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
