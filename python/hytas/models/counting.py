"""Costs of an architecture by its network, where its space has no formula for them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from hytas.models.table import build_network, count_parameters
from hytas.spaces.shape import InputShape


def counted_cost(architecture: Mapping[str, Any], shape: InputShape, name: str) -> float:
    """Return the parameters ("params"), or the multiply-accumulates for one patch ("macs").

    Raises:
        InputError: no network belongs to the architecture's space.
    """
    # Where nothing is computed; and a CPU's attention kernel would not be counted.
    with torch.device("meta"):
        network = build_network(architecture, shape).eval()
        if name == "params":
            return float(count_parameters(network))
        patch = torch.empty(1, shape.patch_size, shape.patch_size, shape.bands)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            network(patch)
    return float(counter.get_total_flops()) / 2.0
