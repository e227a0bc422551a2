"""Final trainings of further seeds, on the workers that a run names."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from hytas.files import atomic_write
from hytas.machine import one_thread
from hytas.run.config import SUPERNET_STRATEGY
from hytas.run.context import Run
from hytas.run.folder import read_json
from hytas.train import LabelledPixels, Recipe, train
from hytas.workers import Shared, open_workers

Parts = tuple[LabelledPixels, LabelledPixels]


def train_side_by_side(run: Run, further: Sequence[Run]) -> None:
    """Train the winner once a seed, where workers are named; each folder gets a checkpoint.

    It is one of a training that has ended, so the stage of the final training only reads it. A
    training has one thread of a CPU, so that it is the same on any workers.

    Args:
        run: its winner is trained.
        further: the same run with other seeds; those whose training began are left out.

    Raises:
        DivergedError: the loss or the logits of a training are not finite any more.
        OSError: a worker was lost.
    """
    context = run.context
    missing = [inner for inner in further if not inner.folder.checkpoint.exists()]
    if run.workers is None or not missing or context.config.strategy == SUPERNET_STRATEGY:
        return
    architecture, (_, recipe) = read_json(run.folder.architecture), run.recipe
    learnt, watched = map(context.data.labelled, context.final_pixels)
    sent = sum(part.patch_bytes for part in (learnt, watched) if len(part))
    on_cpu = context.device.type == "cpu"
    with open_workers(run.workers, on_cpu=on_cpu, sent_bytes=sent) as pool:
        if pool.elsewhere:
            learnt, watched = learnt.in_memory(), watched.in_memory()
        pixels = pool.share((learnt, watched))
        seeds = ", ".join(str(inner.context.config.seed) for inner in missing)
        run.report.line(f"final training with seeds {seeds} side by side: {pool.name}")
        jobs = (
            (
                pixels,
                inner.context.network(architecture, recipe),
                recipe,
                inner.context.config.seed,
                context.device,
            )
            for inner in missing
        )
        for inner, content in zip(missing, pool.run(_train, jobs, len(missing)), strict=True):
            with atomic_write(inner.folder.checkpoint) as path:
                path.write_bytes(content)


def _train(
    pixels: Shared[Parts], network: nn.Module, recipe: Recipe, seed: int, device: torch.device
) -> bytes:
    """Train a network; return the file of the checkpoint at the end."""
    with TemporaryDirectory() as folder, one_thread() if device.type == "cpu" else nullcontext():
        path = Path(folder) / "checkpoint.safetensors"
        train(network, *pixels.get(), recipe, seed=seed, device=device, checkpoint=path, keep=True)
        return path.read_bytes()
