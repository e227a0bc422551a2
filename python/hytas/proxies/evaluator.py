"""Scores of many architectures: grouped, passes shared between proxies, failures recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor

from ..errors import InputError
from ..models.shape import InputShape
from .keys import architecture_key
from .observe import Setting, observe
from .spec import ProxySpec, base_proxies, parse_proxies
from .weights import FUSIONS, INITS, Draws, Pool

# Bytes of kept activations: the CPU's cap keeps the peak of a process under 1 GiB.
MEMORY = {"cpu": 400 << 20, "cuda": 16 << 30}

Batch = tuple[Any, Any]
"""Scaled patches (n, P, P, bands) float, labels (n,) 0-based integers: arrays or tensors."""


class Scores(TypedDict):
    """What an architecture got.

    scores: proxy -> score, NaN where it failed; seconds: share of the group's time; reasons:
    proxy -> why its score is NaN.
    """

    scores: dict[str, float]
    seconds: float
    reasons: dict[str, str]


class Evaluator:
    """Scores architectures with several proxies at once.

    A score is a function of the seed and the architecture alone: not of the other architectures,
    their number or order, nor of the other proxies. What goes wrong is recorded, never raised.

    Args:
        proxies: text or texts, e.g. "snip,dss:sign=weights"; a combination such as
            "rank-mean(snip,dss)" adds its members, and itself is left to `combine`.
        shape: what the scene fixes.
        batch: labelled patches, for the proxies that need data; see `proxy_batch`.
        device: "cpu" or a CUDA device.
        seed: of the initial weights.
        group_size: most networks run together; None chooses by the device.
        init: "supernet", initial weights are slices of the seed's supernet; or "own", weights of
            its own for each architecture (noisier rankings).
        fusions: "shipped", the network as it ships; or "released", as the code behind the
            published scores, which goes on fusing up to layer 10 whatever the depth.
        dtype: torch.float32, or torch.float64 for checks.

    Raises:
        InputError: a proxy is unknown; it needs data and there is none; the batch does not fit.
    """

    def __init__(
        self,
        proxies: str | Sequence[str],
        shape: InputShape,
        *,
        batch: Batch | None = None,
        device: str = "cpu",
        seed: int = 0,
        group_size: int | None = None,
        init: str = INITS[0],
        fusions: str = FUSIONS[0],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        for name, value, known in (("init", init, INITS), ("fusions", fusions, FUSIONS)):
            if value not in known:
                raise InputError(f"{name} {value!r}: must be one of {', '.join(known)}")
        self.requested = parse_proxies(proxies)
        self.specs = base_proxies(self.requested)
        self.shape, self.seed = shape, seed
        self.device = torch.device(device)
        self.group_size = group_size or (1 if self.device.type == "cpu" else 256)
        ones = torch.ones(1, shape.patch_size, shape.patch_size, shape.bands)
        self.setting = Setting(
            shape,
            Draws(Pool(seed, self.device, dtype), init, fusions),
            self._checked(batch, dtype),
            ones.to(self.device, dtype),
            memory=MEMORY[self.device.type],
        )

    @property
    def names(self) -> list[str]:
        """The canonical texts of the proxies that `score` records, in order."""
        return [str(spec) for spec in self.specs]

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[Scores]:
        """Score every architecture; the answer is in their order, and none is missing."""
        results: list[Scores] = [
            {"scores": {}, "seconds": 0.0, "reasons": {}} for _ in architectures
        ]
        for places in self._groups(architectures):
            self._score_group([(architectures[p], results[p]) for p in places])
        return results

    def _groups(self, architectures: Sequence[Mapping[str, Any]]) -> list[list[int]]:
        """Places of architectures to run together: one width, deepest first."""
        widths: dict[Any, list[int]] = {}
        for place, architecture in enumerate(architectures):
            widths.setdefault(architecture.get("embed_dim"), []).append(place)
        groups = []
        for places in widths.values():
            places.sort(key=lambda p: -len(architectures[p].get("num_heads", ())))
            size = self.group_size
            groups += [places[start : start + size] for start in range(0, len(places), size)]
        return groups

    def _score_group(self, members: list[tuple[Mapping[str, Any], Scores]]) -> None:
        started = time.perf_counter()
        values: dict[str, list[float]] = {}
        try:
            values = self._measure([architecture for architecture, _ in members])
        except Exception as error:
            # Whatever a group meets (memory, an eigenvalue solver), its halves are tried alone, so
            # that only the network at fault loses a score.
            if len(members) > 1:
                _release(self.device)
                half = len(members) // 2
                self._score_group(members[:half])
                self._score_group(members[half:])
                return
            self._score_one_by_one(members[0], error)
        seconds = (time.perf_counter() - started) / len(members)
        for place, (_, result) in enumerate(members):
            result["seconds"] = seconds
            for name, column in values.items():
                _record(result, name, column[place])

    def _score_one_by_one(self, member: tuple[Mapping[str, Any], Scores], error: Exception) -> None:
        """After a failure of one network: each proxy alone, so that only those at fault fail."""
        architecture, result = member
        for spec in self.specs:
            try:
                if len(self.specs) == 1:
                    raise error
                _record(result, str(spec), self._measure([architecture], [spec])[str(spec)][0])
            except Exception as failure:
                result["scores"][str(spec)] = float("nan")
                result["reasons"][str(spec)] = _one_line(failure)

    def _measure(
        self, architectures: list[Mapping[str, Any]], specs: Sequence[ProxySpec] | None = None
    ) -> dict[str, list[float]]:
        """proxy -> score of each architecture of a group."""
        specs = self.specs if specs is None else specs
        values: dict[str, list[float]] = {}
        with_pass = [spec for spec in specs if spec.proxy.pass_name != "none"]
        for spec in specs:
            if spec.proxy.pass_name == "none":
                function: Callable[..., float] = spec.proxy.function
                values[str(spec)] = [function(a, self.shape, self.seed) for a in architectures]
        if with_pass:
            for architecture in architectures:
                _check_space(architecture)
            values.update(observe(architectures, with_pass, self.setting))
        return {str(spec): values[str(spec)] for spec in specs}

    def _checked(self, batch: Batch | None, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
        needing = [str(spec) for spec in self.specs if spec.proxy.needs_data]
        if not needing:
            return None
        if batch is None:
            raise InputError(f"proxy {needing[0]!r}: it needs labelled patches, and none are given")
        patches = torch.as_tensor(batch[0]).to(self.device, dtype)
        labels = torch.as_tensor(batch[1]).to(self.device, torch.int64)
        side, bands = self.shape.patch_size, self.shape.bands
        if tuple(patches.shape[1:]) != (side, side, bands) or len(labels) != len(patches):
            raise InputError(
                f"batch {tuple(patches.shape)} with {len(labels)} labels: patches must be "
                f"(n, {side}, {side}, {bands}), one label each"
            )
        if not bool(((labels >= 0) & (labels < self.shape.classes)).all()):
            raise InputError(f"batch labels: each must lie in 0..{self.shape.classes - 1}")
        return patches, labels


def score_key(architecture: Mapping[str, Any]) -> str:
    """The text by which two architectures are the same to a score."""
    return architecture_key(architecture)


def _check_space(architecture: Mapping[str, Any]) -> None:
    if architecture.get("space", "hytas") != "hytas":
        raise InputError(
            f"architecture space {architecture['space']!r}: the proxies score hytas networks"
        )


def _record(result: Scores, name: str, value: float) -> None:
    result["scores"][name] = value
    if value != value:
        result["reasons"][name] = "not a number: the formula is undefined here"
    elif value in (float("inf"), float("-inf")):
        result["scores"][name] = float("nan")
        result["reasons"][name] = f"{value}: the score overflows"


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__}: {text}"[:300]


def _release(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()
