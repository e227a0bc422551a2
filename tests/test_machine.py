"""The settings of torch that decide what a GPU computes; they can be set without one."""

import pytest
import torch

from hytas.machine import _exact_settings, _on_gpu


def held() -> list[object]:
    return [getattr(place, name) for place, name, _ in _exact_settings(reduced=False)]


@pytest.mark.parametrize("precision", ["float32", "float64", "bf16", "tf32"])
def test_only_tf32_reduces_products_and_all_is_put_back(precision: str) -> None:
    before = held()
    with _on_gpu(precision):
        expected = _exact_settings(reduced=precision == "tf32")
        assert held() == [value for _, _, value in expected]
        assert torch.backends.cudnn.deterministic
        assert torch.backends.cuda.flash_sdp_enabled() == (precision == "bf16")
    assert held() == before
    assert torch.backends.cuda.flash_sdp_enabled()


def test_networks_that_are_passed_once_are_not_planned() -> None:
    for plans in (True, False):
        with _on_gpu("float32", plans):
            assert torch.backends.cudnn.enabled == plans
            with _on_gpu("float32"):  # second derivatives inside
                assert torch.backends.cudnn.enabled == plans
    assert torch.backends.cudnn.enabled


def fail_inside() -> None:
    with _on_gpu("float32"):
        raise KeyError


def test_a_failure_puts_all_back_too() -> None:
    before = held()
    with pytest.raises(KeyError):
        fail_inside()
    assert held() == before
