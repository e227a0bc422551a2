"""Estimate the time of every network of a search space on this device, from some measured networks.

The time is a sum of terms, such as the multiply-accumulates or the number of layers. A term is a
formula in the language of space files. Nonnegative least squares fits the cost of a unit of each.
"""

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from scipy.optimize import nnls

from hytas._engine import Feasible, SearchSpace
from hytas.data import Preprocessing
from hytas.deploy import DeployedModel
from hytas.deploy.bench import example, fastest
from hytas.errors import InputError
from hytas.export.onnx_file import to_onnx
from hytas.model_card import ModelCard
from hytas.models import SensorModel, build_network
from hytas.models.table import input_shape, patch_size_of
from hytas.spaces import open_space, parse_budget
from hytas.spaces.costs import shipped_costs
from hytas.spaces.opening import space_text
from hytas.types import Architecture, Progress


def time_models(
    models: Sequence[tuple[SensorModel, ModelCard]],
    *,
    threads: int = 1,
    batch: int = 1,
    seconds: float = 0.3,
    progress: Progress | None = None,
) -> list[float]:
    """Return the milliseconds of a call of each model in onnxruntime, the fastest of its calls.

    The models are measured in turn, so that a busy moment slows them all. On one thread it is the
    processor time, which other programs do not add to. The time does not depend on the values of
    the weights.

    Args:
        progress: called with the number of exported models and of all models.
    """
    calls: list[Callable[[], Any]] = []
    for model, card in models:
        content = to_onnx(model, card).SerializeToString()
        deployed = DeployedModel.from_bytes(
            content, "finalist", "cpu", threads=threads, one_call=True
        )
        side = card.patch_size
        patches = example(deployed, (batch, side, side, card.bands))
        calls.append(partial(deployed.run, patches))
        if progress is not None:
            progress(len(calls), len(models))
    return fastest(calls, seconds, time.process_time if threads == 1 else time.perf_counter)


Term = dict[str, Any]
"""A cost as a space file has it: "global", a formula, and "layers", depth gene -> formula."""

NETWORKS = 96
"""Measured networks."""
PARTS = 10**9
"""Of a microsecond: the unit of a formula's factors."""

_LAST_P = "(few_p if att_p == 1 else 1 if pooling == 'centre' and layer == pixel_depth - 1 else Tp)"
# Stream -> names in a formula of a layer: tokens that enter it and tokens that leave it, of which
# the last layer may have fewer.
_STREAMS = {
    "band": {"s": "b", "stream": "band", "into": "Tb", "out": "few_b"},
    "pixel": {
        "s": "p",
        "stream": "pixel",
        "into": f"(Tp if att_p + near_p > 0 else {_LAST_P})",
        "out": _LAST_P,
    },
}
# Of `hytas-wide`: what grows with the whole network, and with a layer of either stream.
_WIDE: tuple[tuple[str, str], ...] = (
    ("flat", "0"),
    ("has_band", "0"),
    ("has_pixel", "0"),
    (  # multiply-accumulates
        "embed_p * area + has_band * B * token * E",
        "2 * (T{s} + {out}) * E * q_{s} + 2 * {out} * E * f_{s} if plain_{s} == 1 "
        "else ({into} + (1 + gate_{s}) * {out}) * E * f_{s} "
        "+ att_{s} * 2 * (T{s} + {out}) * f_{s} * qf_{s}",
    ),
    ("embed_b + embed_p + classes * read", "linear_{s}"),  # weights
    ("0", "floor(linear_{s} / {into})"),  # the memory sets the pace of a few tokens
    ("fused_b * 2 * Tb * Tb * E + fused_p * 2 * Tp * Tp * E", "0"),
    ("0", "att_{s} * {stream}_heads * {out} * T{s}"),  # of the softmax
    ("0", "att_{s} * {stream}_heads"),
    ("0", "T{s}"),
    ("0", "{out} * E"),
    ("0", "{out} * f_{s} if plain_{s} == 1 else ({into} + gate_{s} * {out}) * f_{s}"),
    ("0", "T{s} * f_{s} if near_{s} > 0 else 0"),
    ("0", "1 if near_{s} > 0 else 0"),
    ("0", "att_{s} - plain_{s}"),
)


def _terms(file: Mapping[str, Any]) -> list[Term]:
    """Return the terms of a space: of any but `hytas-wide`, its costs, layers and their genes."""
    genes = {gene["name"]: gene for gene in file["genes"]}
    if genes.keys() >= {"tokens", "band_mixer", "pixel_mixer"}:
        return [
            {
                "global": whole,
                "layers": {
                    f"{stream}_depth": layer.format(**names) for stream, names in _STREAMS.items()
                },
            }
            for whole, layer in _WIDE
        ]
    depths = dict.fromkeys(gene["per"] for gene in genes.values() if "per" in gene)
    counts: list[Term] = [{"global": "1"}, *({"layers": {depth: "1"}} for depth in depths)]
    for name, gene in genes.items():
        if "per" in gene and not isinstance(gene["values"][0], str):
            counts.append({"layers": {gene["per"]: f"floor({name})"}})
    return counts + [file["costs"][name] for name in ("params", "macs") if name in file["costs"]]


def profile(
    card: ModelCard, *, threads: int = 1, batch: int = 1, progress: Progress | None = None
) -> dict[str, Any]:
    """Measure networks of the card's search space on this device, and fit formulas to their times.

    Args:
        card: gives space, sensor and patch; its architecture does not matter.
        batch: patches at a time; a cost is the time of one call.
        progress: called with the number of exported networks and of all networks.

    Returns:
        The table as JSON, which the engine's `latency@` budgets read.
    """
    name = card.architecture["space"]
    file, offered = json.loads(space_text(name)), input_shape(card).variables()
    variables = {key: offered[key] for key in file["variables"] if key in offered}
    sides = [gene["values"] for gene in file["genes"] if gene["name"] == "patch"]
    # Networks that choose their patch choose the width of their tokens as well.
    free = {"patch_size": max(sides[0]), "band_group": 1} if sides else {}
    terms = _terms(file)
    architectures, values = _drawn(file, terms, variables | free)
    models = [_model(architecture, card) for architecture in architectures]
    times = time_models(models, threads=threads, batch=batch, progress=progress)
    factors = _fitted(values, 1000.0 * np.array(times))
    depths = {depth for term in terms for depth in term.get("layers", ())}
    return {
        "format": "hytas-latency",
        "version": 1,
        "space": name,
        "unit": "us",
        "about": f"onnxruntime {onnxruntime.__version__} on the CPU, {threads} thread(s), "
        f"{batch} patch(es) per call, {platform.processor() or platform.machine()}",
        "conditions": {"threads": threads, "batch": batch},
        "variables": {key: variables[key] for key in variables if key not in free},
        "global": _formula(factors, [term.get("global", "0") for term in terms]),
        "layers": {
            depth: _formula(factors, [term.get("layers", {}).get(depth, "0") for term in terms])
            for depth in sorted(depths)
        },
    }


def _drawn(
    file: Mapping[str, Any], terms: Sequence[Term], variables: Mapping[str, int]
) -> tuple[list[dict[str, Any]], npt.NDArray[np.float64]]:
    """Draw architectures, every value of a gene as often, and return their terms (N, K)."""
    genes = [{key: gene[key] for key in gene if key != "weights"} for gene in file["genes"]]
    costs = {f"term_{number}": term for number, term in enumerate(terms)}
    space = SearchSpace.parse(json.dumps({**file, "genes": genes, "costs": costs}), variables)
    genomes = Feasible(space, parse_budget([])).sample(NETWORKS, seed=0, uniform="choices")
    columns = [space.costs(genomes, name) for name in costs]
    return space.unpack(genomes), np.stack(columns, axis=1).astype(np.float64)


def _fitted(
    values: npt.NDArray[np.float64], times: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the factors (K,) of terms (N, K) with the least relative errors of times (N,)."""
    largest = np.maximum(values.max(axis=0), 1.0)
    factors, _ = nnls(values / largest / times[:, None], np.ones(len(times)))
    return np.asarray(factors / largest)


def _formula(factors: npt.NDArray[np.float64], terms: Sequence[str]) -> str:
    """Return a formula in whole microseconds, so that the engine sees fewer different sums."""
    pairs = zip(np.rint(PARTS * factors).astype(np.int64).tolist(), terms, strict=True)
    parts = [f"{factor} * ({term})" for factor, term in pairs if factor and term != "0"]
    return f"({' + '.join([*parts, str(PARTS // 2)])}) // {PARTS}"


def _model(architecture: Architecture, card: ModelCard) -> tuple[SensorModel, ModelCard]:
    shape, scaling = input_shape(card), Preprocessing.from_dict(card.preprocessing)
    model = SensorModel(build_network(architecture, shape), scaling).eval()
    side = patch_size_of(architecture, shape)
    return model, replace(card, architecture=dict(architecture), patch_size=side)


def predicted_latency(table: Mapping[str, Any], card: ModelCard, name: str = "here") -> float:
    """Return the milliseconds of the card's architecture in a table; `name` is for messages."""
    try:
        space, _ = open_space(card.architecture["space"], offered=input_shape(card).variables())
        space = space.with_table(name, json.dumps(table))
        costs = shipped_costs(card.architecture, space, input_shape(card))
        cost = float(costs[f"latency@{name}"])
    except ValueError as error:
        raise InputError(str(error)) from None
    if table["unit"] not in ("ns", "us", "ms", "s"):
        raise InputError(
            f"latency table '{name}'", rule=f"its unit is {table['unit']!r}", hint="must be time"
        )
    return cost / 1e6  # from ns


def threads_and_batch(table: Mapping[str, Any]) -> tuple[int, int]:
    """Return threads and patches per call of a table; 1 and 1 if it does not name them."""
    stated = table.get("conditions", {})
    read = stated.get if isinstance(stated, dict) else lambda name, usual: 0
    values = [read("threads", 1), read("batch", 1)]
    if not all(type(value) is int and value > 0 for value in values):
        rule = f'"conditions" is {json.dumps(stated)}'
        hint = 'must hold "threads" and "batch", whole numbers of 1 or more'
        raise InputError("latency_table", rule=rule, hint=hint)
    threads, batch = values
    return threads, batch
