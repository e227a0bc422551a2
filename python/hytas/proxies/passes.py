"""One forward and one backward pass of a group of networks, layer by layer.

The backward pass goes through one segment (embedding, layer, head) at a time and hands out its
linear layers as soon as their gradients exist, so the gradients of only one layer are held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import torch
from torch import Tensor

from hytas.proxies.network import Group, Tap, stack_bands

Visitor = Callable[[list[Tap]], None]


@dataclass
class _Segment:
    """A piece of the network: how to run it, what entered it, and, if kept, its graph."""

    leaves: list[Tensor]
    outputs: list[Tensor] = field(default_factory=list)
    taps: list[Tap] = field(default_factory=list)


@dataclass(frozen=True)
class _Wanted:
    """What a backward pass is to hand out, and whether it keeps the graph (`Pass.backward`)."""

    taps: bool
    again: bool
    entering: bool


@dataclass(frozen=True)
class _Found:
    """Gradients of what entered a segment, and its linear layers with theirs."""

    grads: list[Tensor]
    taps: list[Tap]


class Pass:
    """The forward pass of a group on one batch, ready for backward passes.

    Args:
        group: the networks.
        patches: (N, P, P, bands), the same for all.
        keep: keep the graph of every segment (fast), or only what entered each and compute it
            again in the backward pass (a third more work, a fraction of the memory).
        visit: called with the linear layers of every segment as the forward pass meets them.
    """

    def __init__(
        self, group: Group, patches: Tensor, *, keep: bool = True, visit: Visitor | None = None
    ) -> None:
        self.group, self.patches, self.keep = group, patches, keep
        self.visit = visit
        self.stacked = stack_bands(patches, group.band_group)
        self.segments: list[_Segment] = []
        self.tokens_grad = patches.new_empty(0)
        with torch.set_grad_enabled(keep):
            self.logits = self._forward()

    def backward(
        self,
        logits_grad: Tensor,
        *,
        taps: bool = True,
        again: bool = False,
        entering: bool = False,
    ) -> Iterator[list[Tap]]:
        """Go back from a gradient of the logits, yielding the linear layers of one segment a time.

        When the iterator is spent, `tokens_grad` holds the gradient of the embedding's output,
        (A, N, bands, E).

        Args:
            logits_grad: (A, N, classes) gradient of the pass's scalar with respect to `logits`.
            taps: whether gradients of the linear layers' outputs are wanted.
            again: keep the graph for another backward pass.
            entering: whether gradients of what enters the linear layers are wanted, too.
        """
        wanted = _Wanted(taps, again, entering)
        head = self._step(-1, [logits_grad], wanted)
        yield head.taps
        from_head = head.grads[0]  # (A, N, E)
        entered_grads: dict[int, Tensor] = {}
        grad: Tensor | None = None
        for layer in reversed(range(self.group.depths[0])):
            grad = self._join(layer, grad, from_head)
            outputs = [grad]
            extra = entered_grads.pop(layer, None)
            inside = layer >= 2 and not self.group.skips_fusion
            if extra is not None and inside:
                outputs.append(_padded(extra, len(grad)))
            found = self._step(layer + 1, outputs, wanted)
            yield found.taps
            grad = found.grads[0]
            if layer >= 2:
                entered_grads[layer - 2] = found.grads[1]
            if extra is not None and not inside:  # what entered is the leaf itself
                grad = grad + _padded(extra, len(grad))
        if grad is None:
            raise ValueError("networks: at least one layer is needed")
        found = self._step(0, [grad], wanted)
        self.tokens_grad = found.grads[0]
        yield found.taps

    def _forward(self) -> Tensor:
        group = self.group
        entered: list[Tensor] = []
        leaving: list[Tensor] = []
        left = self._run(0, [])[0]
        for layer in range(group.depths[0]):
            count = group.alive(layer)
            leaves = [left[:count]]
            if layer >= 2:
                leaves.append(entered[layer - 2][:count])
            left, inside = self._run(layer + 1, leaves)
            entered.append(leaves[0] if group.skips_fusion else inside)
            leaving.append(left[group.alive(layer + 1) :, :, 0])
        return self._run(-1, [torch.cat(leaving[::-1])])[0]

    def _run(self, place: int, leaves: list[Tensor]) -> list[Tensor]:
        """Run a segment on detached leaves and remember it."""
        segment = _Segment([leaf.detach() for leaf in leaves])
        self._compute(place, segment)
        outputs = [output.detach() for output in segment.outputs]
        if self.visit is not None:
            self.visit(segment.taps)
        if not self.keep:
            segment.outputs, segment.taps = [], []
        self.segments.append(segment)
        return outputs

    def _compute(self, place: int, segment: _Segment) -> None:
        segment.taps = []
        if torch.is_grad_enabled():
            segment.leaves = [leaf.detach().requires_grad_() for leaf in segment.leaves]
        if place == 0:
            segment.outputs = [self.group.run_embedding(self.stacked, segment.taps)]
        elif place == -1:
            segment.outputs = [self.group.run_head(segment.leaves[0], segment.taps)]
        else:
            now, before = (*segment.leaves, None)[:2]
            assert now is not None
            inside, left = self.group.run_layer(place - 1, now, before, segment.taps)
            segment.outputs = [left, inside]

    def _step(self, place: int, grads: list[Tensor], wanted: _Wanted) -> _Found:
        """Back through one segment."""
        segment = self.segments[place]
        if not self.keep:
            with torch.enable_grad():
                self._compute(place, segment)
        again = wanted.again and self.keep
        tapped = segment.taps if wanted.taps or place == 0 else []
        entered = [tap.entered for tap in tapped if wanted.entering and tap.entered is not None]
        outputs = [tap.outputs for tap in tapped]
        found = torch.autograd.grad(
            segment.outputs[: len(grads)],
            [*segment.leaves, *outputs, *entered],
            grads,
            retain_graph=again,
        )
        through = iter(found)
        entering = list(islice(through, len(segment.leaves)))
        leaving = list(islice(through, len(outputs)))
        seen = [
            _seen(tap, grad, next(through) if wanted.entering and tap.entered is not None else None)
            for tap, grad in zip(tapped, leaving, strict=True)
            if wanted.taps
        ]
        if not again:
            segment.outputs, segment.taps = [], []
        # The embedding has no leaf of its own: its output is one.
        return _Found(entering or [leaving[0]], seen)

    def _join(self, layer: int, after: Tensor | None, from_head: Tensor) -> Tensor:
        """Gradient of a layer's output: from the next layer, and from the head where it is last."""
        group = self.group
        first, last = group.alive(layer + 1), group.alive(layer)
        if first == last and after is not None:
            return after
        samples, width = from_head.shape[1:]
        tokens = self.stacked.shape[1] + 1
        leaving = from_head.new_zeros(last - first, samples, tokens, width)
        leaving[:, :, 0] = from_head[first:last]
        return leaving if after is None else torch.cat([after, leaving])


def _seen(tap: Tap, output_grad: Tensor, input_grad: Tensor | None) -> Tap:
    """A linear layer after the backward pass, without its graph."""
    exact = tap.weight.dtype  # reduced precision ends at the matrix products
    return replace(
        tap,
        outputs=tap.outputs.detach().to(exact),
        output_grad=output_grad.to(exact),
        entered=None,
        input_grad=None if input_grad is None else input_grad.to(exact),
    )


def cross_entropy_grad(logits: Tensor, labels: Tensor) -> Tensor:
    """Gradient of the mean cross-entropy with respect to logits (A, N, classes)."""
    wanted = torch.nn.functional.one_hot(labels, logits.shape[-1]).to(logits.dtype)
    return (logits.softmax(-1) - wanted) / logits.shape[1]


def _padded(grad: Tensor, count: int) -> Tensor:
    """Zeros for the networks that end before the layer that the gradient comes from."""
    if len(grad) == count:
        return grad
    return torch.cat([grad, grad.new_zeros(count - len(grad), *grad.shape[1:])])


def input_gradient(group: Group, tokens_grad: Tensor, patches: Tensor) -> Tensor:
    """Gradient of the embedding's output (A, N, bands, E) -> of the patches (A, N, P, P, bands)."""
    stacked_grad = tokens_grad.flatten(1, 2) @ group.embed  # (A, N * bands, P * P * c)
    networks, samples = tokens_grad.shape[:2]
    with torch.enable_grad():
        leaf = patches.new_zeros(networks * samples, *patches.shape[1:], requires_grad=True)
        stacked = stack_bands(leaf, group.band_group)
    (found,) = torch.autograd.grad(stacked, leaf, stacked_grad.reshape(stacked.shape))
    return found.view(networks, *patches.shape)
