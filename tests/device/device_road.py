"""Scores and the whole road on the pretended device, printed as JSON; run by test_device.py."""

import json
import sys
from pathlib import Path

import torch
from torch.utils._python_dispatch import _disable_current_modes

sys.path.insert(0, str(Path(__file__).parents[1] / "proxies"))
sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from pretend_device import PretendDevice, register
from small_networks import SMALL, WIDE
from small_run import small_scene

from hytas.data import scene_from_arrays
from hytas.models import InputShape
from hytas.proxies import PROXIES, Evaluator
from hytas.run import mission
from hytas.run.config import RunConfig
from hytas.train import Recipe

EVERY_PROXY = ",".join(PROXIES).replace("logsynflow", "logsynflow:domain=symmetric")


def scores(device: str) -> dict[str, list[dict[str, float]]]:
    """Of small networks of both spaces, and of one with the released weights."""
    generator = torch.Generator().manual_seed(1)
    found = {}
    cases = {"hytas": (SMALL[:3], 9, 3, "supernet"), "own": (SMALL[:1], 9, 3, "own")}
    cases |= {"hytas-wide": (WIDE, 20, 5, "supernet"), "released": (SMALL[:1], 9, 3, "released")}
    for name, (networks, bands, side, init) in cases.items():
        shape = InputShape(bands=bands, classes=4, patch_size=side, band_group=3)
        patches = torch.randn(5, side, side, bands, generator=generator)
        batch = (patches, torch.tensor([0, 1, 2, 3, 1]))
        evaluator = Evaluator(EVERY_PROXY, shape, batch=batch, seed=5, device=device, init=init)
        results = evaluator.score(networks)
        assert all(not result["reasons"] for result in results), results
        found[name] = [result["scores"] for result in results]
    return found


def road(device: str, out: str) -> float:
    """Test OA of a tiny search with a race."""
    cube, labels = small_scene()
    recipe = Recipe(epochs=1, alignment=0.1, class_weights=0.5, band_dropout=0.1)
    config = RunConfig(
        budget="100K-params",
        proxy="dss",
        population=6,
        generations=2,
        finalists=2,
        race_steps=1,
        split="random",
        recipe=recipe,
    )
    export_stage = mission.export_stage

    def on_the_cpu(*arguments):
        with _disable_current_modes():  # they hide from the tracer that a batch may have any size
            return export_stage(*arguments)

    mission.export_stage = on_the_cpu
    outcome = mission.run_mission(config, scene_from_arrays(cube, labels), out, device=device)
    return outcome.metrics["test"]["OA"]


def refuses(device: torch.device) -> bool:
    """Whether the device notices what a GPU would."""
    try:
        torch.ones(2, 2).to(device) @ torch.ones(2, 2)
    except RuntimeError:
        return True
    return False


if __name__ == "__main__":
    torch.set_num_threads(1)
    device = register()  # before the first gradient: autograd counts the devices once
    expected = scores("cpu")
    with PretendDevice():
        found = {
            "refuses": refuses(device),
            "expected": expected,
            "scores": scores(str(device)),
            "oa": road(str(device), sys.argv[1]),
        }
    print(json.dumps(found))
