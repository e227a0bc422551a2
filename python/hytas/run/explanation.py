"""Explain a trained network: importance of bands and neighbours, and its attention."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.models.layers import attention_observed, probabilities
from hytas.models.network import Network
from hytas.models.streams import TokenStream
from hytas.train import LabelledPixels
from hytas.types import Floats

BATCH = 64
"""Samples of a pass: the attention of a batch is in memory."""
MOST_CELLS = 8
"""Cells along an image whose importance is measured; those of a patch of a scene are its pixels."""


class Importance(NamedTuple):
    """The importance of parts of the input to a network.

    Attributes:
        accuracy: (n,) loss of overall accuracy if samples exchange their values of a part.
        probability: (n,) loss of the mean probability of the true class.
        gradient: (n,) shares of sum |gradient * (value - mean)|; the gradient is that of the log
            probability of the true class.
    """

    accuracy: Floats
    probability: Floats
    gradient: Floats

    def order(self) -> list[int]:
        """Return the places of the parts, the most important first."""
        return [int(at) for at in np.argsort(-self.probability, kind="stable")]


class LayerAttention(NamedTuple):
    """The attention of a layer, over samples.

    Attributes:
        layer: in the stream, from 1.
        tokens: (h, T) the mean weight that the tokens which are read give to each token, a row a
            head; the first is the class token. None where attention has windows.
        alike: mean correlation between the weights of two heads; None for one head.
    """

    stream: str
    layer: int
    tokens: Floats | None
    alike: float | None


class Explanation(NamedTuple):
    """The explanation of a network.

    Attributes:
        samples: number of those that it was measured on.
        accuracy, probability: overall accuracy, and mean probability of the true class, on them.
        bands: importance of the groups of bands, in order.
        cells: importance of the cells of a patch or an image, row by row; None for one cell.
        side: cells along a side.
    """

    samples: int
    accuracy: float
    probability: float
    bands: Importance
    cells: Importance | None
    side: int
    attention: list[LayerAttention]


def explain(
    network: nn.Module,
    labelled: LabelledPixels,
    groups: Sequence[NDArray[np.int64]],
    *,
    temperature: float = 1.0,
    repeats: int = 3,
    seed: int = 0,
) -> Explanation:
    """Measure the importance of parts of the input, by permutation (Breiman, 2001).

    If a network does not use a part, samples may exchange their values of it without a loss.

    Args:
        labelled: samples that it did not train on, all of which are read at once.
        groups: bands of each group, as places among those of a patch.
        temperature: divisor of the logits, which calibrates probabilities.
        repeats: random exchanges of each part; their mean counts.
    """
    network = network.cpu().eval()
    patches, targets = labelled.batch(np.arange(len(labelled)), torch.device("cpu"))
    if isinstance(network, Network):
        patches = network.seen(patches)
    size = patches.shape[1]
    side = size if size % 2 or size <= MOST_CELLS else MOST_CELLS
    gradient = _gradient(network, patches, targets, temperature)
    of_bands = [(slice(None), slice(None), torch.from_numpy(group)) for group in groups]
    edges = np.array_split(torch.arange(size), side)
    of_cells = [(rows[:, None], columns, slice(None)) for rows in edges for columns in edges]
    worth = _Worth(network, patches, targets, temperature, repeats, seed)
    return Explanation(
        len(targets),
        *worth.whole,
        worth.importance(of_bands, gradient),
        worth.importance(of_cells, gradient) if side > 1 else None,
        side,
        _attention(network, patches),
    )


class _Worth:
    """Measures parts of patches (N, P, P, bands) by permutation."""

    def __init__(
        self,
        network: nn.Module,
        patches: Tensor,
        targets: Tensor,
        temperature: float,
        repeats: int,
        seed: int,
    ) -> None:
        self.network, self.patches, self.targets = network, patches, targets
        self.temperature = temperature
        generator = np.random.default_rng(seed)
        self.orders = [generator.permutation(len(targets)) for _ in range(repeats)]
        self.whole = self._reached(patches)

    def importance(self, parts: Sequence[tuple[Any, Any, Any]], gradient: Tensor) -> Importance:
        lost = np.zeros((len(parts), 2))
        for number, part in enumerate(parts):
            for order in self.orders:
                mixed = self.patches.clone()
                mixed[(slice(None), *part)] = self.patches[order][(slice(None), *part)]
                lost[number] += np.subtract(self.whole, self._reached(mixed)) / len(self.orders)
        shares = np.array([float(gradient[part].sum()) for part in parts])
        return Importance(lost[:, 0], lost[:, 1], shares / max(shares.sum(), 1e-30))

    @torch.no_grad()
    def _reached(self, patches: Tensor) -> tuple[float, float]:
        logits = torch.cat([self.network(part) for part in torch.split(patches, BATCH)])
        true = probabilities(logits, self.temperature).gather(1, self.targets[:, None])
        right = (logits.argmax(1) == self.targets).double().mean()
        return float(right), float(true.double().mean())


def _gradient(network: nn.Module, patches: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Return (P, P, bands): the mean |gradient * (value - mean)| over samples."""
    deviation = patches - patches.mean(0)
    total = torch.zeros(patches.shape[1:], dtype=torch.float64)
    for at in range(0, len(patches), BATCH):
        part = patches[at : at + BATCH].clone().requires_grad_()
        logits = network(part) / temperature
        true = logits.log_softmax(1).gather(1, targets[at : at + BATCH, None])
        (slope,) = torch.autograd.grad(true.sum(), part)
        total += (slope * deviation[at : at + BATCH]).abs().double().sum(0)
    return total / len(patches)


@torch.no_grad()
def _attention(network: nn.Module, patches: Tensor) -> list[LayerAttention]:
    streams = network.token_streams if isinstance(network, Network) else {}
    owner = {
        f"{prefix}.": (name, stream)
        for name, stream in streams.items()
        for prefix, module in network.named_modules()
        if module is stream
    }
    tokens: dict[str, Tensor | None] = {}
    products: dict[str, Tensor] = defaultdict(lambda: torch.zeros(()))
    samples = 0

    def observe(name: str, weights: Tensor) -> None:
        stream = next((s for prefix, (_, s) in owner.items() if name.startswith(prefix)), None)
        read = _read(weights, stream)
        if len(weights) == samples and stream is not None:
            tokens[name] = tokens.get(name, 0) + read.double().mean(2).sum(0)  # type: ignore[operator]
        else:  # windows: a token has another place in each
            tokens[name] = None
        deviations = (weights - weights.mean(-1, keepdim=True)).double()
        flat = deviations.transpose(0, 1).flatten(1)  # (h, N * Q * T)
        products[name] = products[name] + flat @ flat.T

    with attention_observed(network, observe):
        for part in torch.split(patches, BATCH):
            samples = len(part)
            network(part)
    result, layers = [], Counter[str]()
    for name, sums in tokens.items():
        own = next((n for prefix, (n, _) in owner.items() if name.startswith(prefix)), "")
        layers[own] += 1
        mean = None if sums is None else (sums / len(patches)).numpy()
        result.append(LayerAttention(own, layers[own], mean, _alike(products[name])))
    return result


def _read(weights: Tensor, stream: TokenStream | None) -> Tensor:
    """Return the rows of weights (N, h, Q, T) that belong to tokens which are read."""
    whole = weights.shape[2] == weights.shape[3]
    return weights[:, :, stream.read] if whole and stream is not None else weights


def _alike(products: Tensor) -> float | None:
    """Return the mean correlation of two heads, from the products (h, h) of all pairs."""
    heads = len(products)
    if heads < 2:
        return None
    norms = products.diagonal().clamp_min(1e-30).sqrt()
    cosines = products / norms[:, None] / norms
    return float((cosines.sum() - cosines.trace()) / (heads * (heads - 1)))
