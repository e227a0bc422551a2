"""Scores and a whole run, small enough for any device.

As a program it prints both as JSON, computed on the pretended device; test_device.py runs it.
"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "proxies"))
sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from small_networks import SMALL, WIDE
from small_run import small_scene

from hytas import job
from hytas.data import scene_from_arrays
from hytas.models import InputShape
from hytas.proxies import PROXIES, Evaluator
from hytas.run.config import RunConfig
from hytas.run.delivering.files import export_stage
from hytas.train import Recipe

EVERY_PROXY = ",".join(name for name in PROXIES if name != "inherited").replace(
    "logsynflow", "logsynflow:domain=absolute"
)


def scores(device: str) -> dict[str, list[dict[str, float]]]:
    """Of small networks of both spaces."""
    generator = torch.Generator().manual_seed(1)
    found = {}
    cases = {"hytas": (SMALL[:1], 9, 3), "hytas-wide": (WIDE, 20, 5)}
    for name, (networks, bands, side) in cases.items():
        shape = InputShape(bands=bands, classes=4, patch_size=side, band_group=3)
        patches = torch.randn(5, side, side, bands, generator=generator)
        batch = (patches, torch.tensor([0, 1, 2, 3, 1]))
        evaluator = Evaluator(EVERY_PROXY, shape, batch=batch, seed=5, device=device)
        results = evaluator.score(networks)
        assert all(not result["reasons"] for result in results), results
        found[name] = [result["scores"] for result in results]
    return found


def road(device: str, out: str) -> float:
    """Test OA of a tiny search with a race."""
    cube, labels = small_scene()
    recipe = Recipe(epochs=1, class_weights=0.5, band_dropout=0.1)
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
    outcome = job.run_pipeline(config, scene_from_arrays(cube, labels), out, device=device)
    return outcome.metrics["test"]["OA"]


def refuses(device: torch.device) -> bool:
    """Whether the device notices what a GPU would."""
    try:
        torch.ones(2, 2).to(device) @ torch.ones(2, 2)
    except RuntimeError:
        return True
    return False


def export_on_the_cpu() -> None:
    """From now on, hide the pretended device while a model is exported.

    It hides from the tracer that a batch may have any size.
    """
    from torch.utils._python_dispatch import _disable_current_modes

    def on_the_cpu(run):
        with _disable_current_modes():
            export_stage(run)

    job.export_stage = on_the_cpu


if __name__ == "__main__":
    from pretend_device import PretendDevice, register

    torch.set_num_threads(1)
    device = register()  # before the first gradient: autograd counts the devices once
    expected = scores("cpu")
    export_on_the_cpu()
    with PretendDevice():
        found = {
            "refuses": refuses(device),
            "expected": expected,
            "scores": scores(str(device)),
            "oa": road(str(device), sys.argv[1]),
        }
    print(json.dumps(found))
