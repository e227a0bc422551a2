"""Scores of many architectures: passes shared between proxies, failures recorded."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hytas.errors import InputError, is_out_of_memory, one_line
from hytas.machine import PRECISIONS, arithmetic, one_thread_on_cpu
from hytas.proxies.check import check_architecture
from hytas.proxies.initial import INITS, Pool, start_of
from hytas.proxies.memory import activation_memory
from hytas.proxies.no_pass import NEEDS_SUPERNET
from hytas.proxies.passes import Setting, score_network
from hytas.proxies.results import Scores, record
from hytas.proxies.spec import ProxySpec, base_proxies, parse_proxies
from hytas.spaces.genes import genes_only
from hytas.spaces.shape import Shape

Batch = tuple[Any, Any]
"""Scaled patches (n, P, P, bands) float, labels (n,) 0-based integers: arrays or tensors."""
Inherited = Callable[[Mapping[str, Any]], float]


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
        precision: "float32"; "bf16"; "tf32" on a GPU; "float64", for checks.
        init: "pool", initial weights are slices of the seed's pool; "own", weights of its own for
            each architecture.
        inherited: architecture -> its score with the weights of a supernet, for the proxy of that
            name.

    Raises:
        InputError: a proxy is unknown; it needs data or a supernet and there is none; the batch
            does not fit; a setting is out of its range.
    """

    def __init__(
        self,
        proxies: str | Sequence[str],
        shape: Shape,
        *,
        batch: Batch | None = None,
        device: str = "cpu",
        seed: int = 0,
        precision: str = PRECISIONS[0],
        init: str = INITS[0],
        inherited: Inherited | None = None,
    ) -> None:
        _check_choices(precision=precision, init=init)
        self.requested = parse_proxies(proxies)
        self.specs = base_proxies(self.requested)
        if inherited is None and any(spec.proxy.needs_supernet for spec in self.specs):
            raise InputError(NEEDS_SUPERNET)
        self._inherited = inherited
        self.shape, self.seed, self.precision = shape, seed, precision
        self.device = torch.device(device)
        if precision == "tf32" and self.device.type == "cpu":
            raise InputError("precision 'tf32': needs a CUDA device; use float32 or bf16")
        self.init = init
        self._batch = batch
        dtype = torch.float64 if precision == "float64" else torch.float32
        self.setting = self._make_setting(dtype)
        self._exact: Setting | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to a worker."""
        return {**vars(self), "_exact": None}

    @property
    def names(self) -> list[str]:
        """The canonical texts of the proxies that `score` records, in order."""
        return [str(spec) for spec in self.specs]

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[Scores]:
        """Score every architecture; the answer is in their order, and none is missing.

        One after another, on one thread of a CPU: `hytas.proxies.spread_over` scores them side by
        side.
        """
        with one_thread_on_cpu(self.device):
            return [self._score_one(genes_only(architecture)) for architecture in architectures]

    def _make_setting(self, dtype: torch.dtype) -> Setting:
        shape = self.shape
        ones = torch.ones(1, shape.side, shape.side, shape.bands)
        return Setting(
            Pool(self.seed, self.device, dtype),
            shape.classes,
            self._checked(self._batch, dtype),
            ones.to(self.device, dtype),
            memory=activation_memory(self.device),
        )

    def _score_one(self, architecture: Mapping[str, Any]) -> Scores:
        result: Scores = {"scores": {}, "seconds": 0.0, "reasons": {}}
        started = time.perf_counter()
        failure = None
        try:
            values = self._measure(architecture, self.specs, self.setting)
            for name, value in values.items():
                record(result, name, self._rescued(architecture, name, value))
        except Exception as error:
            failure = one_line(error)
        # Only here is the error gone, whose traceback holds the tensors of what failed.
        if failure is not None:
            _release(self.device)
            self._score_one_by_one(architecture, result, failure)
        result["seconds"] = time.perf_counter() - started
        return result

    def _rescued(self, architecture: Mapping[str, Any], name: str, value: float) -> float:
        """A score; one that left the range of float32 is computed again in float64."""
        spec = next(spec for spec in self.specs if str(spec) == name)
        if math.isfinite(value) or not spec.proxy.observes:
            return value
        if self._precision_of(spec) == "float64":
            return value
        try:
            return self._observed(architecture, [spec], self._in_float64(), "float64")[name]
        except Exception:
            return value  # the first result, with its own reason, stands

    def _score_one_by_one(
        self, architecture: Mapping[str, Any], result: Scores, failure: str
    ) -> None:
        """After a failure: each proxy alone, so that only those at fault fail."""
        setting = self.setting
        # Libraries of a GPU report out-of-memory in many wordings.
        short = is_out_of_memory(failure) or self.device.type == "cuda"
        if short:  # once more, with activations computed twice rather than kept
            setting = replace(setting, memory=0)
        for spec in self.specs:
            reason: str | None = failure
            if short or len(self.specs) > 1:
                try:
                    found = self._measure(architecture, [spec], setting)
                    value = self._rescued(architecture, str(spec), found[str(spec)])
                    record(result, str(spec), value)
                    reason = None
                except Exception as error:
                    reason = one_line(error)
            if reason is not None:
                _release(self.device)
                result["scores"][str(spec)] = float("nan")
                result["reasons"][str(spec)] = reason

    def _measure(
        self, architecture: Mapping[str, Any], specs: Sequence[ProxySpec], setting: Setting
    ) -> dict[str, float]:
        """proxy -> score."""
        check_architecture(architecture)
        values: dict[str, float] = {}
        for spec in specs:
            if spec.proxy.needs_supernet:
                assert self._inherited is not None
                values[str(spec)] = self._inherited(architecture)
            elif not spec.proxy.observes:
                function: Callable[..., float] = spec.proxy.function
                values[str(spec)] = function(architecture, self.shape, self.seed)
        for sharing, precision in self._by_precision(specs):
            usual = precision == self.precision
            own = setting if usual else replace(self._in_float64(), memory=setting.memory)
            values.update(self._observed(architecture, sharing, own, precision))
        return {str(spec): values[str(spec)] for spec in specs}

    def _observed(
        self,
        architecture: Mapping[str, Any],
        specs: Sequence[ProxySpec],
        setting: Setting,
        precision: str,
    ) -> dict[str, float]:
        with arithmetic(precision, self.device, plans=False):
            start = start_of(architecture, self.shape, setting.pool, self.init)
            return score_network(start, specs, setting)

    def _by_precision(self, specs: Sequence[ProxySpec]) -> list[tuple[list[ProxySpec], str]]:
        """Proxies that need a pass and the precision that each has: float32 is not enough, even to
        tell one network from a batch, for a sum whose terms cancel."""
        found: dict[str, list[ProxySpec]] = {self.precision: []}
        for spec in specs:
            if spec.proxy.observes:
                found.setdefault(self._precision_of(spec), []).append(spec)
        return [(sharing, precision) for precision, sharing in found.items() if sharing]

    def _precision_of(self, spec: ProxySpec) -> str:
        return "float64" if spec.cancels and self.precision == PRECISIONS[0] else self.precision

    def _in_float64(self) -> Setting:
        if self._exact is None:
            self._exact = self._make_setting(torch.float64)
        return self._exact

    def _checked(self, batch: Batch | None, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
        needing = [str(spec) for spec in self.specs if spec.proxy.needs_data]
        if not needing:
            return None
        if batch is None:
            raise InputError(f"proxy {needing[0]!r}: it needs labelled patches, and none are given")
        if not len(batch[0]) or np.ndim(batch[1]) != 1:
            raise InputError(
                f"batch of {len(batch[0])} patches and labels of {np.ndim(batch[1])} axes: there "
                "must be a patch at least, and labels must be (n,)"
            )
        patches = torch.as_tensor(batch[0]).detach().to(self.device, dtype)
        labels = torch.as_tensor(batch[1]).to(self.device, torch.int64)
        side, bands = self.shape.side, self.shape.bands
        if tuple(patches.shape[1:]) != (side, side, bands) or len(labels) != len(patches):
            raise InputError(
                f"batch {tuple(patches.shape)} with {len(labels)} labels: patches must be "
                f"(n, {side}, {side}, {bands}), one label each"
            )
        if not bool(patches.isfinite().all()):
            raise InputError("batch: its patches hold NaN or infinite values; all must be finite")
        if not bool(((labels >= 0) & (labels < self.shape.classes)).all()):
            raise InputError(f"batch labels: each must lie in 0..{self.shape.classes - 1}")
        return patches, labels


def _check_choices(**values: str) -> None:
    known = {"precision": PRECISIONS, "init": INITS}
    for name, value in values.items():
        if value not in known[name]:
            raise InputError(f"{name} {value!r}: must be one of {', '.join(known[name])}")


def _release(device: torch.device) -> None:
    """Give back what a failed pass held, its cycles of references too."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
