"""The settings of torch that decide what a GPU computes; they can be set without one."""

import pytest
import torch

from hytas.machine import arithmetic

NEWER = hasattr(torch.backends.cuda.matmul, "fp32_precision")
"""Whether torch has the newer of two interfaces, which must not be mixed."""


def reduced() -> list[bool]:
    """Whether products and convolutions may be in tf32."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    if NEWER:
        return [part.fp32_precision == "tf32" for part in (matmul, cudnn.conv)]
    return [part.allow_tf32 for part in (matmul, cudnn)]


def held() -> list[object]:
    return [*reduced(), torch.backends.cudnn.deterministic]


@pytest.mark.filterwarnings("ignore:CUDA is not available:UserWarning")
@pytest.mark.parametrize("precision", ["float32", "float64", "bf16", "tf32"])
def test_only_tf32_reduces_products_and_all_is_put_back(precision: str) -> None:
    before = held()
    with arithmetic(precision, "cuda"):
        assert reduced() == [precision == "tf32"] * 2
        assert torch.backends.cudnn.deterministic
        assert torch.backends.cuda.flash_sdp_enabled() == (precision == "bf16")
    assert held() == before
    assert torch.backends.cuda.flash_sdp_enabled()


def test_networks_that_are_passed_once_are_not_planned() -> None:
    for plans in (True, False):
        with arithmetic("float32", "cuda", plans=plans):
            assert torch.backends.cudnn.enabled == plans
            with arithmetic("float32", "cuda"):  # second derivatives inside
                assert torch.backends.cudnn.enabled == plans
    assert torch.backends.cudnn.enabled


def fail_inside() -> None:
    with arithmetic("float32", "cuda"):
        raise KeyError


def test_a_failure_puts_all_back_too() -> None:
    before = held()
    with pytest.raises(KeyError):
        fail_inside()
    assert held() == before
