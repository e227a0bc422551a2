"""The contribution of each layer to a score, for proxies that need no data."""

from collections.abc import Mapping
from typing import Any

import torch

from hytas.errors import InputError
from hytas.proxies.initial import DrawnPool, start_of
from hytas.proxies.layer_records import LayerRecord
from hytas.proxies.passes import PassSetting, Tally, activation_memory, ones_pass
from hytas.proxies.probe import Probe
from hytas.proxies.spec import ProxySpec
from hytas.proxies.table import ONES
from hytas.spaces.genes import genes_only
from hytas.spaces.shape import InputShape


class _Recorded(Tally):
    """A tally that keeps the contribution of each layer."""

    def __init__(self, spec: ProxySpec) -> None:
        super().__init__(spec)
        self.layers: list[tuple[str, float]] = []

    def visit(self, record: LayerRecord) -> None:
        """Add a layer's contribution, and keep it."""
        if record.kind in self.kinds:
            before = sum(map(float, self.parts.values()))
            super().visit(record)
            after = sum(map(float, self.parts.values()))
            self.layers.append((record.name, after - before))


def layer_scores(
    architecture: Mapping[str, Any], shape: InputShape, spec: ProxySpec, seed: int = 0
) -> list[tuple[str, float]]:
    """Return the name and the contribution of each layer that a proxy reads, the first one last.

    The layers are in the order of the backward pass, and their sum is the score.

    Args:
        spec: of a proxy that needs no labelled patches, such as dss or synflow.
    """
    if spec.members or spec.proxy.pass_name != ONES:
        raise InputError("proxy", spec.name, "it has no scores of single layers")
    device = torch.device("cpu")
    pool = DrawnPool(seed, device, torch.float32)
    ones = torch.ones(1, shape.patch_size, shape.patch_size, shape.bands)
    setting = PassSetting(pool, shape.classes, None, ones, activation_memory(device))
    start = start_of(genes_only(architecture), shape, pool)
    tally = _Recorded(spec)
    probe = Probe(start, shape.classes)
    ones_pass(probe, start, spec.options["sign"], [tally], setting)
    return tally.layers
