"""Scores of many architectures: passes shared between proxies, failures recorded."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.errors import InputError, is_out_of_memory, one_line
from hytas.machine import PRECISIONS, arithmetic, choose_device, one_thread_on_cpu
from hytas.models.skeletons import Skeletons
from hytas.models.table import build_network
from hytas.proxies.initial import DrawnPool, start_of
from hytas.proxies.no_pass import needs_supernet
from hytas.proxies.passes import PassSetting, activation_memory, score_network
from hytas.proxies.spec import (
    ProxySpec,
    Scores,
    base_proxies,
    check_architecture,
    parse_proxies,
    record_score,
)
from hytas.proxies.table import RESOURCE_NETWORK
from hytas.spaces.genes import genes_only
from hytas.spaces.shape import Shape

if TYPE_CHECKING:
    from hytas.data import LabelledData, Preprocessing

Batch = tuple[Any, Any]
"""Scaled patches (n, P, P, bands) float, labels (n,) 0-based integers: arrays or tensors."""
Inherited = Callable[[Mapping[str, Any]], float]
MOST_SAMPLES = 64
"""Most images of a proxy batch; of more classes, a random choice."""


class Evaluator:
    """Scores architectures with several proxies at once.

    A score depends on the seed and the architecture alone, not on other architectures or proxies.
    A failure is recorded, and never raised.

    Args:
        proxies: text or texts, e.g. "snip,dss:sign=weights"; a combination such as
            "rank-mean(snip,dss)" adds its members (`hytas.proxies.fitness` combines them).
        shape: of patches or images, and classes.
        batch: labelled patches, for the proxies that need data; see `proxy_batch`.
        device: "cpu", a CUDA device, or "auto".
        seed: of the initial weights.
        precision: "float32"; "bf16"; "tf32" on a GPU; "float64", for checks.
        inherited: architecture -> its score with the weights of a supernet, for the proxy of that
            name.

    Raises:
        InputError: an unknown proxy, missing data or supernet, a batch of another shape, a missing
            device, or a setting out of range.
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
        inherited: Inherited | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise InputError("precision", precision, f"must be one of {', '.join(PRECISIONS)}")
        self.requested = parse_proxies(proxies)
        self.specs = base_proxies(self.requested)
        if inherited is None and any(spec.proxy.needs_supernet for spec in self.specs):
            raise needs_supernet()
        self._inherited = inherited
        self.shape, self.seed, self.precision = shape, seed, precision
        self.device = choose_device(device)
        if precision == "tf32" and self.device.type == "cpu":
            raise InputError("precision", "tf32", "needs a CUDA device", "use float32 or bf16")
        self._batch = batch
        dtype = torch.float64 if precision == "float64" else torch.float32
        self.setting = self._make_setting(dtype)
        self._exact: PassSetting | None = None
        self._skeletons = Skeletons(shape)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a worker."""
        return {**vars(self), "_exact": None}

    @property
    def names(self) -> list[str]:
        """The canonical texts of the proxies that `score` records, in order."""
        return [str(spec) for spec in self.specs]

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[Scores]:
        """Return the scores of each architecture, in their order, one after another.

        A CPU uses one thread. `hytas.proxies.with_workers` scores in several processes.
        """
        with one_thread_on_cpu(self.device):
            return [self._scores_of(genes_only(architecture)) for architecture in architectures]

    def _scores_of(self, architecture: Mapping[str, Any]) -> Scores:
        started, failure, result = time.perf_counter(), "", _no_scores()
        try:
            for name, value in self.measure(architecture, self.specs, self.setting).items():
                record_score(result, name, self._rescued(architecture, name, value))
        except Exception as error:
            failure = one_line(error)
        # Outside the handler, because the error's traceback keeps the tensors of the failed pass.
        if failure:
            _release(self.device)
            result = self._score_one_by_one(architecture, failure)
        result["seconds"] = time.perf_counter() - started
        return result

    def _make_setting(self, dtype: torch.dtype) -> PassSetting:
        shape = self.shape
        ones = torch.ones(1, shape.side, shape.side, shape.bands)
        return PassSetting(
            DrawnPool(self.seed, self.device, dtype),
            shape.classes,
            self._checked(self._batch, dtype),
            ones.to(self.device, dtype),
            memory=activation_memory(self.device),
        )

    def _rescued(self, architecture: Mapping[str, Any], name: str, value: float) -> float:
        """Return a score; one outside the range of float32 is computed again in float64."""
        spec = next(spec for spec in self.specs if str(spec) == name)
        if math.isfinite(value) or not spec.proxy.observes:
            return value
        if self._precision_of(spec) == "float64":
            return value
        try:
            return self._observed(architecture, [spec], self._in_float64(), "float64")[name]
        except Exception:
            return value  # keep the first result and its reason

    def _score_one_by_one(self, architecture: Mapping[str, Any], failure: str) -> Scores:
        """Score by each proxy alone, so that only the failing proxies have no score."""
        setting, result = self.setting, _no_scores()
        # GPU libraries word out-of-memory errors differently.
        short = is_out_of_memory(failure) or self.device.type == "cuda"
        if short:  # again, with activations that are recomputed
            setting = replace(setting, memory=0)
        for spec in self.specs:
            reason: str | None = failure
            if short or len(self.specs) > 1:
                try:
                    values = self.measure(architecture, [spec], setting)
                    value = self._rescued(architecture, str(spec), values[str(spec)])
                    record_score(result, str(spec), value)
                    reason = None
                except Exception as error:
                    reason = one_line(error)
            if reason is not None:
                _release(self.device)
                result["scores"][str(spec)] = float("nan")
                result["reasons"][str(spec)] = reason
        return result

    def measure(
        self, architecture: Mapping[str, Any], specs: Sequence[ProxySpec], setting: PassSetting
    ) -> dict[str, float]:
        """Return proxy -> score of an architecture."""
        check_architecture(architecture)
        values = {str(spec): self._unobserved(architecture, spec) for spec in specs}
        for sharing, precision in self._by_precision(specs):
            default = precision == self.precision
            own = setting if default else replace(self._in_float64(), memory=setting.memory)
            values |= self._observed(architecture, sharing, own, precision)
        return values

    def _unobserved(self, architecture: Mapping[str, Any], spec: ProxySpec) -> float:
        """Return the score of a proxy that needs no observed pass; NaN for others."""
        if spec.proxy.observes:
            return math.nan
        function: Callable[..., float] = spec.proxy.function
        if spec.proxy.needs_supernet:
            return function(architecture, self._inherited)
        if spec.proxy.pass_name == RESOURCE_NETWORK:
            assert self.setting.batch is not None  # checked by the constructor
            return float(function(self._built(architecture), *self.setting.batch))
        return function(architecture, self.shape, self.seed)

    def _built(self, architecture: Mapping[str, Any]) -> nn.Module:
        """Return the untrained network of an architecture, with the weights of the seed's pool."""
        pool = self.setting.pool
        values = start_of(architecture, self.shape, pool).values
        network = build_network(architecture, self.shape, seed=self.seed)
        network = network.eval().to(pool.device, pool.dtype)
        network.load_state_dict(values, strict=False)
        return network

    def _observed(
        self,
        architecture: Mapping[str, Any],
        specs: Sequence[ProxySpec],
        setting: PassSetting,
        precision: str,
    ) -> dict[str, float]:
        with arithmetic(precision, self.device, plans=False):
            start = start_of(architecture, self.shape, setting.pool, self._skeletons)
            return score_network(start, specs, setting)

    def _by_precision(self, specs: Sequence[ProxySpec]) -> list[tuple[list[ProxySpec], str]]:
        """Return groups of proxies that need a pass, and their precision; sums whose terms cancel
        need float64."""
        groups: dict[str, list[ProxySpec]] = {self.precision: []}
        for spec in specs:
            if spec.proxy.observes:
                groups.setdefault(self._precision_of(spec), []).append(spec)
        return [(sharing, precision) for precision, sharing in groups.items() if sharing]

    def _precision_of(self, spec: ProxySpec) -> str:
        return "float64" if spec.cancels and self.precision == PRECISIONS[0] else self.precision

    def _in_float64(self) -> PassSetting:
        if self._exact is None:
            self._exact = self._make_setting(torch.float64)
        return self._exact

    def _checked(self, batch: Batch | None, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
        needing = [str(spec) for spec in self.specs if spec.proxy.needs_data]
        if not needing:
            return None
        if batch is None:
            raise InputError("proxy", needing[0], "it needs labelled patches, and none are given")
        if not len(batch[0]) or np.ndim(batch[1]) != 1:
            raise InputError(
                f"batch of {len(batch[0])} patches and labels of {np.ndim(batch[1])} axes",
                rule="there must be a patch at least, and labels must be (n,)",
            )
        patches = torch.as_tensor(batch[0]).detach().to(self.device, dtype)
        labels = torch.as_tensor(batch[1]).to(self.device, torch.int64)
        side, bands = self.shape.side, self.shape.bands
        if tuple(patches.shape[1:]) != (side, side, bands) or len(labels) != len(patches):
            raise InputError(
                f"batch {tuple(patches.shape)} with {len(labels)} labels",
                rule=f"patches must be (n, {side}, {side}, {bands}), one label each",
            )
        if not bool(patches.isfinite().all()):
            raise InputError(
                "batch", rule="its patches hold NaN or infinite values", hint="all must be finite"
            )
        if not bool(((labels >= 0) & (labels < self.shape.classes)).all()):
            raise InputError("batch labels", rule=f"each must lie in 0..{self.shape.classes - 1}")
        return patches, labels


def _no_scores() -> Scores:
    return {"scores": {}, "seconds": 0.0, "reasons": {}}


def _release(device: torch.device) -> None:
    """Release the memory of a failed pass, including reference cycles."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def proxy_batch(
    scene: LabelledData,
    pixels: NDArray[np.int64],
    preprocessing: Preprocessing,
    patch_size: int,
    seed: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return one random training pixel, or image, of each class, for proxies that need data.

    Args:
        pixels: (n,) flat indices of the training pixels, never of test pixels.

    Returns:
        Patches (C', P, P, bands) scaled, labels (C',) 0-based, in class order; C' counts the
        classes that occur among `pixels`.
    """
    labels = scene.targets(pixels)
    random = np.random.default_rng([seed, 0x70726F78])
    chosen = [
        int(random.choice(pixels[labels == label])) for label in np.unique(labels) if label >= 0
    ]
    indices = np.array(chosen, dtype=np.int64)
    if not scene.has_map and len(indices) > MOST_SAMPLES:
        indices = np.sort(random.permutation(indices)[:MOST_SAMPLES])
    patches = preprocessing.apply(scene.reader(patch_size)(indices))
    return np.ascontiguousarray(patches, dtype=np.float32), scene.targets(indices)
