"""Every tensor is where a GPU needs it, told on a device that computes on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch.utils.backend_registration

from hytas.machine import choose_device
from refusals import refuses

DEVICE = hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend")


def test_cuda_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with refuses("device", "cuda", "torch finds no CUDA device here; use cpu or auto"):
        choose_device("cuda")
    assert choose_device("auto") == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:99", "gpu", "vulkan", "", "cpu,cuda", None])
def test_a_device_that_is_not_here_is_refused(name: str) -> None:
    with refuses("device", name, "torch finds no such device here; use cpu or auto"):
        choose_device(name)


@pytest.mark.slow
@pytest.mark.skipif(not DEVICE, reason="this torch has no devices written in Python")
def test_scores_and_the_road_need_nothing_from_another_device(tmp_path) -> None:
    script = Path(__file__).parent / "device_road.py"
    command = [sys.executable, str(script), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["refuses"]
    assert found["oa"] > 0.5
    assert list(found["scores"]) == ["hytas", "hytas-wide"]
    for name, expected in found["expected"].items():
        for one, other in zip(expected, found["scores"][name], strict=True):
            for proxy, value in one.items():
                # A sum of signed logarithms may be near zero: there its terms' rounding counts.
                assert other[proxy] == pytest.approx(value, rel=1e-4, abs=1e-6), (name, proxy)
