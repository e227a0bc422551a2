"""Explain the model of a run on samples that it was not trained on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.data import Split
from hytas.errors import InputError
from hytas.run.config import RunConfig
from hytas.run.explanation import Explanation, Importance, LayerAttention, explain
from hytas.run.folder import RunFolder
from hytas.run.prepared import PreparedData, prepare_scene
from hytas.run.start import StartingModel
from hytas.run.weights import load_weights

Groups = list[NDArray[np.int64]]


def explain_run(
    run: str | Path, config: RunConfig, *, groups: int = 20, samples: int = 300, repeats: int = 3
) -> dict[str, Any]:
    """Explain the trained model of a run on its test samples; see `hytas.run.explanation`.

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
