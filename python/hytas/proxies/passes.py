"""The forward and backward passes that proxies share.

The network is the one that is trained and exported. It runs with initial weights by name
(`initial.py`), and hooks record its linear layers for the proxies (`probe.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from hytas.proxies.initial import DrawnPool, InitialNetwork, _Values
from hytas.proxies.layer_records import LayerProduct, LayerRecord
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
class PassSetting:
    """The common settings of all passes.

    Attributes:
        batch: labelled patches, or None.
        ones: one patch of ones, (1, P, P, bands).
        memory: bytes of activations above which they are computed twice rather than kept.
    """

    pool: DrawnPool
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
        if value.ndim and self.spec.proxy.finish is None:
            rule = f"returned {tuple(value.shape)} for a layer, not one number"
            raise InputError("proxy", self.spec.name, rule)
        part = PART_OF.get(record.kind, "other")
        self.parts[part] = self.parts[part] + value if part in self.parts else value

    def score(self) -> float:
        """Return the score of the network."""
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
        return float(total if finish is None else finish(total, **self._options()))

    def _options(self) -> dict[str, str]:
        """Return the options that the function itself reads."""
        common = ("parts", "layers", "sign")
        return {key: value for key, value in self.spec.options.items() if key not in common}


def score_network(
    start: InitialNetwork, specs: Sequence[ProxySpec], setting: PassSetting
) -> dict[str, float]:
    """Return proxy -> score of a network."""
    probe = Probe(start, setting.classes)
    scores: dict[str, float] = {}
    for (name, sign, every), sharing in _by_passes(specs).items():
        tallies = [Tally(spec) for spec in sharing]
        with _all_tokens(start.network) if every else nullcontext():
            if name == "ones":
                ones_pass(probe, start, sign, tallies, setting)
            else:
                _DataPass(probe, tallies, setting).run(start, start.signed(sign))
        scores.update({str(tally.spec): tally.score() for tally in tallies})
    return scores


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
    probe: Probe, start: InitialNetwork, sign: str, tallies: Sequence[Tally], setting: PassSetting
) -> None:
    """Tally the layers in the pass of one patch of ones; its scalar is the sum of the logits."""
    values = start.signed(sign)
    kinds = {kind for tally in tallies for kind in tally.kinds}
    records: list[LayerRecord] = []
    if not any(layer.kind in kinds for layer in probe.layers):
        return
    if start.slots and all(tally.spec.proxy.weights_only for tally in tallies):
        records += _with_gradients(probe, values, kinds, setting.ones)
    else:
        recorder = Recorder(probe, 1, kinds=kinds)
        with torch.enable_grad(), probe.recorded(recorder):
            logits = probe.run(values, partial(probe.logits, setting.ones))
            _backward(recorder, logits.sum(), records.append)
    if any(tally.spec.proxy.nuclear_norms for tally in tallies):
        _take_norms(records, start, sign, setting.pool)
    for record in records:
        _visit(tallies, record)


def _with_gradients(
    probe: Probe, values: _Values, kinds: Collection[str], ones: Tensor
) -> Iterator[LayerRecord]:
    """Yield weights and their gradients, the last layer first."""
    layers = [layer for layer in reversed(probe.layers) if layer.kind in kinds]
    leaves = _leaves(values, [layer.name for layer in layers])
    with torch.enable_grad():
        logits = probe.run({**values, **leaves}, partial(probe.logits, ones))
        grads = torch.autograd.grad(logits.sum(), list(leaves.values()), allow_unused=True)
    for layer, weight, grad in zip(layers, leaves.values(), grads, strict=True):
        if grad is not None:
            yield LayerRecord.of_weight(layer, weight.detach(), grad)


def _leaves(values: _Values, layers: Iterable[str]) -> _Values:
    """Return the weights of layers by name, as leaves of autograd."""
    names = [f"{layer}.weight" for layer in layers]
    return {name: values[name].detach().requires_grad_() for name in names}


def _take_norms(
    records: Sequence[LayerRecord], start: InitialNetwork, sign: str, pool: DrawnPool
) -> None:
    """Compute the nuclear norms of all attention layers together.

    Norms of weights that several networks share are computed once.
    """
    wanted = [record for record in records if record.kind in MSA]
    keys = [start.keys.get(f"{record.name}.weight") for record in wanted]
    unknown = [
        record
        for record, key in zip(wanted, keys, strict=True)
        if key is None or (key, sign) not in pool.norms
    ]
    norms = nuclear_norms([*(r.grad for r in wanted), *(r.weight for r in unknown)])
    of_weights = {r.name: norm for r, norm in zip(unknown, norms[len(wanted) :], strict=True)}
    for record, key, of_grad in zip(wanted, keys, norms, strict=False):
        if record.name not in of_weights:
            of_weights[record.name] = pool.norms[key, sign]
        elif key is not None:
            pool.norms[key, sign] = of_weights[record.name]
        record.norms = of_grad, of_weights[record.name]


class _DataPass:
    """The pass of the labelled patches; its scalar is the mean cross-entropy."""

    def __init__(self, probe: Probe, tallies: Sequence[Tally], setting: PassSetting) -> None:
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

    def run(self, start: InitialNetwork, values: _Values) -> None:
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
            curvature = curvature.view(1, 1)
            _visit(self.curved, _summary("curvature", LayerProduct(curvature, curvature)))

    def _watch(self, values: _Values, patches: Tensor, late: Visitor) -> Recorder:
        """Run forward and backward; repeat with recomputation if the graph exceeds the memory."""
        own = patches is self.patches
        early = partial(_visit, self.forward) if own and self.forward else None
        while True:
            samples = len(self.patches)
            recorder = Recorder(
                self.probe, samples, early, memory=self.memory, recompute=self.recompute
            )
            try:
                self.probe.run(values, partial(self._pass, recorder, patches, late))
            except TooLargeError:
                self.recompute = True
                for tally in self.forward:
                    tally.parts.clear()
            else:
                return recorder

    def _pass(self, recorder: Recorder, patches: Tensor, late: Visitor) -> None:
        of_input = self.of_input if patches is self.patches else []
        needed = bool(self.backward or self.curved)
        with torch.set_grad_enabled(needed or bool(of_input)), self.probe.recorded(recorder):
            if of_input:
                patches = patches.detach().clone().requires_grad_()
            logits = self.probe.logits(patches)
            if of_input:
                _backward(recorder, logits.sum(), None, again=needed)
                assert patches.grad is not None
                seen = LayerProduct(patches.detach(), patches.detach(), patches.grad)
                _visit(of_input, _summary("input", seen))
            if needed:
                loss = F.cross_entropy(logits, self.labels, reduction="sum") / len(self.labels)
                _backward(recorder, loss, late)

    def _remember(self, record: LayerRecord) -> None:
        """Keep outputs, weight and gradient of a twin's layer."""
        _ = record.grad
        record.products = [LayerProduct(p.inputs.new_empty(0), p.outputs) for p in record.products]
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


def _summary(kind: str, product: LayerProduct) -> LayerRecord:
    """Return a record of a kind that is not a layer; see `LayerRecord`."""
    none = product.outputs.new_empty(0)
    return LayerRecord(kind, "", 0, none, [product])


def _backward(
    recorder: Recorder, scalar: Tensor, late: Visitor | None, *, again: bool = False
) -> None:
    recorder.backward, recorder.late = True, late
    torch.autograd.backward(scalar, retain_graph=again)


def curvature_of(
    probe: Probe,
    values: _Values,
    batch: tuple[Tensor, Tensor],
    grads: Mapping[str, Tensor],
    samples: int,
) -> Tensor:
    """Return w' H g, H the Hessian of the mean cross-entropy by the linear weights.

    Args:
        batch: patches (N, P, P, bands) and labels (N,).
        grads: name of a linear layer -> g, the direction, (out, in).
        samples: patches taken together, through one graph that is differentiated twice.
    """
    foreign = not isinstance(probe.network, Network)
    leaves = _leaves(values, grads)
    along = [g.view_as(leaf) for leaf, g in zip(leaves.values(), grads.values(), strict=True)]
    total = batch[0].new_zeros(())
    for patches, labels in zip(*(torch.split(each, samples) for each in batch), strict=True):
        with torch.enable_grad(), attention_written_out(foreign):
            logits = probe.run({**values, **leaves}, partial(probe.logits, patches))
            loss = F.cross_entropy(logits, labels, reduction="sum") / len(batch[0])
            first = torch.autograd.grad(loss, list(leaves.values()), create_graph=True)
            slope = torch.stack([(g * f).sum() for g, f in zip(along, first, strict=True)]).sum()
        second = torch.autograd.grad(slope, list(leaves.values()))
        for leaf, curved in zip(leaves.values(), second, strict=True):
            total = total + (leaf.detach() * curved).flatten().sum()
    return total
