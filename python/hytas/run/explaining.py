"""Explain the network of a run: importance of bands and neighbours, and its attention."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.data import Split
from hytas.errors import InputError
from hytas.models.layers import attention_observed, probabilities
from hytas.models.network import Network
from hytas.models.streams import TokenStream
from hytas.run.config import RunConfig
from hytas.run.folder import RunFolder
from hytas.run.prepared import PreparedData, prepare_scene
from hytas.run.start import StartingModel
from hytas.run.weights import load_weights
from hytas.train import LabelledPixels
from hytas.types import Floats

Groups = list[NDArray[np.int64]]
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


def explain_run(
    run: str | Path, config: RunConfig, *, groups: int = 20, samples: int = 300, repeats: int = 3
) -> dict[str, Any]:
    """Explain the trained model of a run on its test samples.

    Args:
        run: its folder, which is only read.
        config: of the run; its files may have moved.
        groups: of neighbouring bands, at most.
        samples: at most, drawn by the seed of the run.

    Returns:
        JSON-ready: "bands", of each group its label, first and last band from 1, wavelengths and
        importance; "order" of their numbers, the most important first; "neighbours", the
        importance of each cell of a patch or an image; "attention" of each layer.
    """
    folder = RunFolder(run)
    model = load_weights(folder.weights)
    scene = config.load_scene()
    if scene.fingerprint != folder.read_config()[1]:
        raise InputError("data", config.first_data, "is not the data of the run")
    # A model that began with another one kept its bands, classes and scaling.
    own = replace(model, card=replace(model.card, learnt_from=()))
    start = None if config.start is None else StartingModel(folder, own)
    data = prepare_scene(config, scene, Split.load(folder.split), start)
    pixels = data.split.test if len(data.split.test) else data.split.train_and_validation
    if len(pixels) > samples:
        drawn = np.random.default_rng(config.seed).choice(pixels, samples, replace=False)
        pixels = np.sort(drawn)
    chosen = neighbouring(data.preprocessing.bands, groups)
    explanation = explain(
        model.network,
        data.labelled(pixels),
        chosen,
        temperature=model.card.temperature,
        repeats=repeats,
        seed=config.seed,
    )
    stride = int(model.card.architecture.get("band_stride", 1))
    return {
        "data": data.scene.name,
        "unit": data.unit,
        "part": "test" if len(data.split.test) else "training",
        "samples": explanation.samples,
        "accuracy": explanation.accuracy,
        "probability": explanation.probability,
        "bands": _bands(data, chosen, explanation.bands),
        "order": explanation.bands.order(),
        "neighbours": _cells(explanation),
        "attention": [_layer(one, data, stride) for one in explanation.attention],
    }


def neighbouring(bands: NDArray[np.int64], most: int) -> Groups:
    """Return groups of neighbouring bands, `most` at most, as places in `bands`.

    Bands on both sides of a gap, where bands were left out, are in different groups if `most`
    allows it.

    Args:
        bands: (b,) indices into the sensor's bands, ascending.
    """
    runs = np.split(np.arange(len(bands)), np.flatnonzero(np.diff(bands) > 1) + 1)
    if len(runs) > most:
        runs = [np.arange(len(bands))]
    lengths = np.array([len(run) for run in runs])
    counts = np.ones(len(runs), np.int64)
    while counts.sum() < most and (counts < lengths).any():
        counts[np.argmax(np.where(counts < lengths, lengths / counts, 0))] += 1
    return [
        part for run, count in zip(runs, counts, strict=True) for part in np.array_split(run, count)
    ]


def _bands(data: PreparedData, groups: Groups, importance: Importance) -> list[dict[str, Any]]:
    kept = data.preprocessing.bands
    return [
        {
            "label": _label(data, kept[group]),
            "bands": [int(kept[group[0]]) + 1, int(kept[group[-1]]) + 1],
            "nm": _nanometres(data, kept[group]),
            **{name: float(values[at]) for name, values in importance._asdict().items()},
        }
        for at, group in enumerate(groups)
    ]


def _nanometres(data: PreparedData, bands: NDArray[np.int64]) -> list[float] | None:
    if data.scene.wavelengths is None:
        return None
    return [float(data.scene.wavelengths[band]) for band in (bands[0], bands[-1])]


def _label(data: PreparedData, bands: NDArray[np.int64]) -> str:
    """Return bands in words: "bands 11-20 (412-451 nm)"."""
    word, alone = "channel" if data.unit == "images" else "band", len(bands) == 1
    first, last = bands[0] + 1, bands[-1] + 1
    text = f"{word} {first}" if alone else f"{word}s {first}-{last}"
    if (waves := _nanometres(data, bands)) is None:
        return text
    return f"{text} ({waves[0]:.0f} nm)" if alone else f"{text} ({waves[0]:.0f}-{waves[1]:.0f} nm)"


def _cells(explanation: Explanation) -> dict[str, Any] | None:
    if explanation.cells is None:
        return None
    return {
        name: values.reshape(explanation.side, explanation.side).tolist()
        for name, values in explanation.cells._asdict().items()
    }


def _layer(layer: LayerAttention, data: PreparedData, stride: int) -> dict[str, Any]:
    """Return the attention of a layer, and which bands its tokens stand for."""
    tokens = layer.tokens
    values = {**layer._asdict(), "tokens": None if tokens is None else tokens.tolist()}
    if tokens is not None and layer.stream == "band":
        kept = data.preprocessing.bands
        values["bands"] = (kept[::stride][: tokens.shape[1] - 1] + 1).tolist()
    return values


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
