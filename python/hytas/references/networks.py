"""Published networks, trained as published, without any part of hytas' own recipe."""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from hytas.data import Preprocessing
from hytas.machine import arithmetic
from hytas.models import InputShape, build_network, check_band_group, count_parameters
from hytas.models.layers import probabilities
from hytas.models.spectralformer import SpectralFormer
from hytas.references.task import Fit, Progress, Task

TEST_BATCH = 128
HYTAS = {
    "space": "hytas",
    "depth": 7,
    "embed_dim": 112,
    "num_heads": [4] * 7,
    "mlp_ratio": [4] * 7,
}
Schedule = Callable[[float], float]
"""Share of the training that is done -> share of the peak learning rate."""


def spectralformer(task: Task, progress: Progress) -> Fit:
    """Train SpectralFormer on patches, with the published size and recipe.

    The recipe is Adam at 5e-4 with weight decay 5e-3 (as an L2 penalty), batch 64 and
    cross-entropy. The learning rate falls by a tenth after each tenth of the training. Training
    takes 3300 steps, like the 300 epochs on Indian Pines in the paper.
    Published for Indian Pines: OA .818, AA .878, kappa .792.
    Source: Hong et al., IEEE TGRS 60, 2022, and its released code.
    """
    scaling = task.fit_scaling("minmax")
    network = _seeded(task, lambda: SpectralFormer(_shape(task, scaling)))
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4, weight_decay=5e-3)
    steps = task.steps or 3300

    def schedule(done: float) -> float:
        return 0.9 ** math.floor(10 * done)

    _train(network, optimizer, task, scaling, (steps, 64, schedule), progress)
    return _test(network, task, scaling, steps, progress)


def hytas(task: Task, progress: Progress) -> Fit:
    """Train a network of the HyTAS space on patches, as in the HyTAS benchmark.

    The network has depth 7 and width 112, the medians of the 2000 published networks (the paper
    names no default), 4 heads and MLP ratio 4. The recipe is AdamW at 3.1e-4 with weight decay
    5e-3, a warm-up of 5 of 300 epochs, then a cosine down to 1e-5, drop-path 0.1, batch 320 and
    cross-entropy. The benchmark's sampler shows every pixel three times in a batch, so a step has
    107 pixels. On Indian Pines it makes one step per epoch, so training takes 300 steps. Larger
    scenes get the number of steps that this sampler makes there.
    Published for this size on Indian Pines: OA .79 (median), .85 (best of 2000).
    Source: Zhou et al., HyTAS, ECCV 2024, and its released code.
    """
    scaling = task.fit_scaling("minmax")
    network = _seeded(
        task,
        lambda: build_network(HYTAS, _shape(task, scaling), drop_path=0.1, seed=task.seed),
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=3.1e-4, weight_decay=5e-3)
    # Five processes with batch 64 share whole multiples of 256 pixels; the others are dropped.
    an_epoch = max(1, len(task.train) // 256 * 256 // 5 // 64)
    steps = task.steps or 300 * an_epoch

    def schedule(done: float) -> float:
        least, warmup = 1e-5 / 3.1e-4, 5 / 300
        if done < warmup:
            return max(done / warmup, 1e-6 / 3.1e-4)
        return least + (1.0 - least) * 0.5 * (1.0 + math.cos(math.pi * done))

    _train(network, optimizer, task, scaling, (steps, 107, schedule), progress)
    return _test(network, task, scaling, steps, progress)


def _shape(task: Task, scaling: Preprocessing) -> InputShape:
    check_band_group(task.band_group, len(scaling.bands))
    return InputShape(len(scaling.bands), task.classes, task.patch_size, task.band_group)


def _seeded(task: Task, make: Callable[[], nn.Module]) -> nn.Module:
    """Return a network initialised from the seed; this also seeds the global generator."""
    torch.manual_seed(task.seed)  # dropout uses the global generator
    return make().to(task.device)


def _train(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: Task,
    scaling: Preprocessing,
    plan: tuple[int, int, Schedule],
    progress: Progress,
) -> None:
    """Train with `plan`: number of steps, pixels in a step, and schedule."""
    steps, batch, schedule = plan
    peaks = [group["lr"] for group in optimizer.param_groups]
    generator = np.random.default_rng(task.seed)
    order = np.empty(0, dtype=np.int64)
    size = min(batch, len(task.train))
    network.train()
    for step in range(steps):
        progress("train", step, steps)
        if len(order) < size:  # both recipes drop the rest of a pass
            order = generator.permutation(len(task.train))
        chosen, order = order[:size], order[size:]
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * schedule(step / steps)
        patches = torch.from_numpy(task.patches(task.train[chosen], scaling)).to(task.device)
        targets = torch.from_numpy(task.targets[chosen]).to(task.device)
        with arithmetic("float32", task.device):
            loss = F.cross_entropy(network(patches), targets)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@torch.inference_mode()
def _test(
    network: nn.Module, task: Task, scaling: Preprocessing, steps: int, progress: Progress
) -> Fit:
    network.eval()
    parts = []
    for start in range(0, len(task.test), TEST_BATCH):
        progress("test", start, len(task.test))
        patches = task.patches(task.test[start : start + TEST_BATCH], scaling)
        with arithmetic("float32", task.device):
            logits = network(torch.from_numpy(patches).to(task.device))
        parts.append(probabilities(logits.double()).cpu().numpy())
    progress("test", len(task.test), len(task.test))
    found = np.concatenate(parts)
    details = {"parameters": count_parameters(network), "steps": steps}
    return Fit(found.argmax(axis=1).astype(np.int64), found, details)
