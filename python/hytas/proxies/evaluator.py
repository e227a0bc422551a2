"""Scores of many architectures: grouped, passes shared between proxies, failures recorded."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hytas.errors import InputError, is_out_of_memory, one_line
from hytas.machine import PRECISIONS, arithmetic, one_thread
from hytas.models.shape import InputShape
from hytas.proxies.draws import FUSIONS, INITS, Draws, Pool
from hytas.proxies.genes import check_architecture, genes_only
from hytas.proxies.memory import (
    activation_bytes,
    activation_memory,
    held_bytes,
    weight_bytes,
)
from hytas.proxies.observe import Setting
from hytas.proxies.observers import observe, together
from hytas.proxies.results import Scores, record
from hytas.proxies.spec import ProxySpec, base_proxies, parse_proxies
from hytas.spaces import space_of

GROUP_SIZE = 256  # networks run together on a GPU, memory allowing
WIDTHS = 12  # of networks in the HyTAS space; those run together are of one

Batch = tuple[Any, Any]
"""Scaled patches (n, P, P, bands) float, labels (n,) 0-based integers: arrays or tensors."""


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
        workers: networks scored side by side on a CPU, one thread each; None takes torch's threads.
        group_size: most networks run together; None chooses by the device.
        precision: "float32"; "bf16"; "tf32" on a GPU; "float64", for checks.
        init: "supernet", initial weights are slices of the seed's supernet; "own", weights of its
            own for each architecture; "released", of `hytas` networks, the very weights behind the
            published scores (released.py).
        fusions: "shipped", the network as it ships; or "released", as the code behind the
            published scores, which goes on fusing up to layer 10 whatever the depth.

    Raises:
        InputError: a proxy is unknown; it needs data and there is none; the batch does not fit; a
            setting is out of its range.
    """

    def __init__(
        self,
        proxies: str | Sequence[str],
        shape: InputShape,
        *,
        batch: Batch | None = None,
        device: str = "cpu",
        seed: int = 0,
        workers: int | None = None,
        group_size: int | None = None,
        precision: str = PRECISIONS[0],
        init: str = INITS[0],
        fusions: str = FUSIONS[0],
    ) -> None:
        _check_choices(precision=precision, init=init, fusions=fusions)
        self.requested = parse_proxies(proxies)
        self.specs = base_proxies(self.requested)
        self.shape, self.seed, self.precision = shape, seed, precision
        self.device = torch.device(device)
        on_cpu = self.device.type == "cpu"
        if precision == "tf32" and on_cpu:
            raise InputError("precision 'tf32': needs a CUDA device; use float32 or bf16")
        for name, value in (("workers", workers), ("group_size", group_size)):
            if value is not None and value < 1:
                raise InputError(f"{name} {value}: must be 1 or more")
        self.workers = (workers or torch.get_num_threads()) if on_cpu else 1
        # On a CPU a network alone fills a core, and stacking its weights would only copy them.
        self.group_size = group_size or (1 if on_cpu else GROUP_SIZE)
        self._options = (init, fusions)
        self._batch = batch
        dtype = torch.float64 if precision == "float64" else torch.float32
        self.setting = self._make_setting(dtype)
        self._exact: Setting | None = None
        self._lock = threading.Lock()
        self._room = math.inf  # bytes that a group may need, by what did not fit

    @property
    def names(self) -> list[str]:
        """The canonical texts of the proxies that `score` records, in order."""
        return [str(spec) for spec in self.specs]

    @property
    def chunk(self) -> int:
        """As many architectures in a call of `score` as fill the device: groups are of a width."""
        return self.group_size * (1 if self.device.type == "cpu" else WIDTHS)

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[Scores]:
        """Score every architecture; the answer is in their order, and none is missing."""
        architectures = [genes_only(architecture) for architecture in architectures]
        results: list[Scores] = [
            {"scores": {}, "seconds": 0.0, "reasons": {}} for _ in architectures
        ]
        groups = [
            [(architectures[place], results[place]) for place in places]
            for places in self._groups(architectures)
        ]
        if self.device.type != "cpu":
            for group in groups:
                self._score_group(group)
            return results
        # One thread inside a network whatever the number of workers: sums are taken in the same
        # order, so a score does not depend on the threads either, and two networks side by side
        # are faster than one network on two threads.
        with one_thread():
            if self.workers == 1 or len(groups) < 2:
                for group in groups:
                    self._score_group(group)
            else:
                with ThreadPoolExecutor(self.workers, initializer=_quiet_thread) as pool:
                    list(pool.map(self._score_group, groups))
        return results

    def _make_setting(self, dtype: torch.dtype) -> Setting:
        shape = self.shape
        ones = torch.ones(1, shape.patch_size, shape.patch_size, shape.bands)
        return Setting(
            shape,
            Draws(Pool(self.seed, self.device, dtype), *self._options),
            self._checked(self._batch, dtype),
            ones.to(self.device, dtype),
            memory=activation_memory(self.device, self.workers),
            exact=dtype == torch.float64 or self.precision == PRECISIONS[0],
        )

    def _groups(self, architectures: Sequence[Mapping[str, Any]]) -> list[list[int]]:
        """Places of architectures to run together: of one space and width, deepest first, fitting
        the memory; those of a space whose networks run alone, each by itself."""
        widths: dict[tuple[str, str], list[int]] = {}
        for place, architecture in enumerate(architectures):
            key = (space_of(architecture), str(architecture.get("embed_dim")))
            widths.setdefault(key, []).append(place)
        groups: list[list[int]] = []
        for places in widths.values():
            places.sort(key=lambda p: -_depth(architectures[p]))
            most = self.group_size if together(architectures[places[0]]) else 1
            most = math.ceil(len(places) / math.ceil(len(places) / most))  # of like size
            room = 0
            group: list[int] = []
            for place in places:
                size = self._size(architectures[place])
                if not group or room < size or len(group) >= most:
                    group, room = [], self.setting.memory
                    groups.append(group)
                group.append(place)
                room -= size
        return groups

    def _size(self, architecture: Mapping[str, Any]) -> int:
        """Bytes that a network of a group needs; a malformed one fails later, with its reason."""
        setting = self.setting
        patches = setting.ones if setting.batch is None else setting.batch[0]
        try:
            size = activation_bytes(architecture, patches)
            if self.device.type == "cpu":
                return size
            needs = {spec.proxy.extra for spec in self.specs}
            samples = 0 if setting.batch is None else len(setting.batch[0])
            beside = weight_bytes(architecture, self.specs, self.shape, samples)
            return held_bytes(size, needs) + beside
        except (ArithmeticError, KeyError, TypeError, ValueError):
            return 0

    def _score_group(self, members: list[tuple[Mapping[str, Any], Scores]]) -> None:
        if len(members) > 1 and self._needed(members) > self._room:
            self._score_halves(members)
            return
        started = time.perf_counter()
        values: dict[str, list[float]] = {}
        failure = None
        try:
            group = [architecture for architecture, _ in members]
            values = self._measure(group, self.specs, self.setting)
        except Exception as error:
            failure = one_line(error)
        # Only here is the error gone, whose traceback holds the tensors of what failed.
        if failure is not None:
            _release(self.device)
            if len(members) > 1:
                if is_out_of_memory(failure):
                    self._room = self._needed(members) / 2
                # Whatever a group meets (memory, an eigenvalue solver), its halves are tried alone,
                # so that only the network at fault loses a score.
                self._score_halves(members)
                return
            self._score_one_by_one(members[0], failure)
        for name, column in values.items():
            rescued = self._rescued([architecture for architecture, _ in members], name, column)
            for (_, result), value in zip(members, rescued, strict=True):
                record(result, name, value)
        seconds = (time.perf_counter() - started) / len(members)
        for _, result in members:
            result["seconds"] = seconds

    def _needed(self, members: list[tuple[Mapping[str, Any], Scores]]) -> int:
        return sum(self._size(architecture) for architecture, _ in members)

    def _score_halves(self, members: list[tuple[Mapping[str, Any], Scores]]) -> None:
        half = len(members) // 2
        self._score_group(members[:half])
        self._score_group(members[half:])

    def _rescued(
        self, architectures: Sequence[Mapping[str, Any]], name: str, values: Sequence[float]
    ) -> list[float]:
        """Scores of a group; those that left the range of float32 are computed again in float64."""
        spec = next(spec for spec in self.specs if str(spec) == name)
        lost = [place for place, value in enumerate(values) if not math.isfinite(value)]
        found = list(values)
        if not lost or spec.proxy.pass_name == "none" or self._precision_of(spec) == "float64":
            return found
        # Together where they can be; what a group meets, only the network at fault meets alone.
        for places in (lost, *([[place] for place in lost] if len(lost) > 1 else [])):
            some = [architectures[place] for place in places]
            try:
                with arithmetic("float64", self.device):
                    scores = observe(some, [spec], self._in_float64())[name]
            except Exception:
                continue  # the first results, with their own reasons, stand
            for place, score in zip(places, scores, strict=True):
                found[place] = score
            if places is lost:
                break
        return found

    def _score_one_by_one(self, member: tuple[Mapping[str, Any], Scores], failure: str) -> None:
        """After a failure of one network: each proxy alone, so that only those at fault fail."""
        architecture, result = member
        setting = self.setting
        # Libraries of a GPU word a want of memory in many ways.
        short = is_out_of_memory(failure) or self.device.type == "cuda"
        if short:  # once more, with activations computed twice rather than kept
            setting = replace(setting, memory=0)
        for spec in self.specs:
            reason: str | None = failure
            if short or len(self.specs) > 1:
                try:
                    found = self._measure([architecture], [spec], setting)
                    value = self._rescued([architecture], str(spec), found[str(spec)])
                    record(result, str(spec), value[0])
                    reason = None
                except Exception as error:
                    reason = one_line(error)
            if reason is not None:
                _release(self.device)
                result["scores"][str(spec)] = float("nan")
                result["reasons"][str(spec)] = reason

    def _measure(
        self,
        architectures: list[Mapping[str, Any]],
        specs: Sequence[ProxySpec],
        setting: Setting,
    ) -> dict[str, list[float]]:
        """proxy -> score of each architecture of a group."""
        values: dict[str, list[float]] = {}
        for architecture in architectures:
            check_architecture(architecture)
        for spec in specs:
            if spec.proxy.pass_name == "none":
                function: Callable[..., float] = spec.proxy.function
                values[str(spec)] = [function(a, self.shape, self.seed) for a in architectures]
        for sharing, precision in self._by_precision(specs):
            usual = precision == self.precision
            own = setting if usual else replace(self._in_float64(), memory=setting.memory)
            with arithmetic(precision, self.device):
                values.update(observe(architectures, sharing, own))
        return {str(spec): values[str(spec)] for spec in specs}

    def _by_precision(self, specs: Sequence[ProxySpec]) -> list[tuple[list[ProxySpec], str]]:
        """Proxies that need a pass and the precision that each has: float32 is not enough, even to
        tell one network from a batch, for a sum whose terms cancel."""
        found: dict[str, list[ProxySpec]] = {self.precision: []}
        for spec in specs:
            if spec.proxy.pass_name != "none":
                found.setdefault(self._precision_of(spec), []).append(spec)
        return [(sharing, precision) for precision, sharing in found.items() if sharing]

    def _precision_of(self, spec: ProxySpec) -> str:
        return "float64" if spec.cancels and self.precision == PRECISIONS[0] else self.precision

    def _in_float64(self) -> Setting:
        with self._lock:
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
        side, bands = self.shape.patch_size, self.shape.bands
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
    known = {"precision": PRECISIONS, "init": INITS, "fusions": FUSIONS}
    for name, value in values.items():
        if value not in known[name]:
            raise InputError(f"{name} {value!r}: must be one of {', '.join(known[name])}")


def _depth(architecture: Mapping[str, Any]) -> int:
    """Layers; 0 of one that is malformed, which fails later, with its reason."""
    heads = architecture.get("num_heads")
    return len(heads) if isinstance(heads, Sequence) else 0


def _quiet_thread() -> None:
    torch.set_num_threads(1)


def _release(device: torch.device) -> None:
    """Give back what a failed pass held, its cycles of references too."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
