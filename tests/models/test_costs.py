"""The engine's costs against the networks that ship, and against the published counts."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hytas._engine import Feasible
from hytas.models import InputShape, build_network, count_parameters
from hytas.models.counting import counted_layers
from hytas.spaces import open_space

SHAPES = st.builds(
    InputShape,
    bands=st.integers(3, 220),
    classes=st.integers(2, 20),
    patch_size=st.sampled_from([1, 3, 5, 7, 9]),
    band_group=st.sampled_from([1, 3]),
)


def macs(network: nn.Module, patches: torch.Tensor) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(patches)
    return counter.get_total_flops() // 2


@pytest.mark.parametrize("name", ["hytas", "hytas-wide", "hytas-tiny"])
@settings(max_examples=12, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 2**32))
def test_params_and_macs_are_those_of_the_network(name: str, shape: InputShape, seed: int) -> None:
    space, _ = open_space(name, offered=shape.variables())
    (architecture,) = space.unpack(Feasible(space).sample(1, seed, "choices"))
    cost = space.cost(architecture)
    with torch.device("meta"):
        network = build_network(architecture, shape).eval()
        patches = torch.empty(1, shape.patch_size, shape.patch_size, shape.bands)
        shipped = macs(network, patches)
        for stream in network.token_streams.values():
            stream.observer = lambda tokens: None  # so that the last layer computes all its tokens
        whole = macs(network, patches)
    assert cost["params"] == count_parameters(network)
    assert cost["macs"] == whole
    assert shipped <= whole
    assert cost["bytes_fp32"] == 4 * cost["params"]


@pytest.mark.parametrize("name", ["hytas", "hytas-wide"])
def test_the_layers_of_a_network_add_up_to_its_costs(name: str) -> None:
    shape = InputShape(bands=40, classes=7, patch_size=9)
    space, _ = open_space(name, offered=shape.variables())
    for architecture in space.unpack(Feasible(space).sample(6, 3, "choices")):
        layers = counted_layers(architecture, shape)
        cost = space.cost(architecture)
        assert sum(layer.params for layer in layers) == cost["params"]
        assert sum(layer.macs for layer in layers) == cost["macs"]
        depth = sum(value for gene, value in architecture.items() if gene.endswith("depth"))
        assert sum(".blocks." in layer.name for layer in layers) == depth
        assert layers[-1].name == "head"
        assert {layer.stream for layer in layers} - {""} <= {"band", "pixel"}
