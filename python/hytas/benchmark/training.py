"""Train the networks of a benchmark, each once a seed."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from hytas.errors import InputError, is_out_of_memory, one_line
from hytas.machine import one_thread_on_cpu
from hytas.metrics import accuracy_report
from hytas.run.context import Run
from hytas.search import Training
from hytas.tensors import read_tensors
from hytas.train import LabelledPixels, Recipe, logits_of, train
from hytas.workers import Shared, WorkersLike, open_workers

FIGURES = ("OA", "AA", "kappa")
VALIDATION = "validation"


class Trial(NamedTuple):
    """One training to be done: the number of a network, its genes, and the seed."""

    number: int
    architecture: Mapping[str, Any]
    seed: int


@dataclass(frozen=True)
class _Pixels:
    train_pixels: LabelledPixels
    watched: LabelledPixels
    test: LabelledPixels
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class _Job:
    trial: Trial
    network: nn.Module
    recipe: Recipe
    name: str
    device: torch.device
    checkpoint: Path | None


def trained_name(preset: str, seed: int) -> str:
    """Return the name of a recipe with a seed, as the store keeps it."""
    return f"{preset}:seed={seed}"


def run_trainings(
    run: Run, trials: Sequence[Trial], workers: WorkersLike = None
) -> Iterator[Training]:
    """Train a network for each of the trials; yield the trainings in the order of the trials.

    A network is trained on training pixels, and validation pixels choose the best epoch. It is
    tested once, at the end. A training that diverges, runs out of memory or cannot follow the
    recipe has no figures but a reason.

    Args:
        run: its first recipe trains all networks; its folder keeps where each training stands.
        workers: that train networks in parallel (`hytas.workers.open_workers`).
    """
    if not trials:
        return
    context = run.context
    labelled = context.data.labelled
    parts = [labelled(pixels) for pixels in (*context.final_pixels, context.data.split.test)]
    preset, recipe = run.recipe
    folder = run.folder.path / "trainings"
    folder.mkdir(exist_ok=True)

    def job(trial: Trial) -> tuple[_Job, Shared[_Pixels]]:
        seeded = replace(context, config=replace(context.config, seed=trial.seed))
        network = seeded.network(trial.architecture, recipe)
        name = trained_name(preset, trial.seed)
        checkpoint = folder / f"{trial.number}-{trial.seed}.safetensors"
        seen = checkpoint if pool.sees_files else None
        return _Job(trial, network, recipe, name, context.device, seen), pixels

    on_cpu, sent = context.device.type == "cpu", sum(p.patch_bytes for p in parts if len(p))
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=sent) as pool:
        train_pixels, watched, test = (
            part.in_memory() if pool.elsewhere else part for part in parts
        )
        pixels = pool.share(_Pixels(train_pixels, watched, test, context.data.scene.class_names))
        yield from pool.run(_train_one, map(job, trials), len(trials))
    shutil.rmtree(folder, ignore_errors=True)  # a kill may leave half a file


def _train_one(job: _Job, shared: Shared[_Pixels]) -> Training:
    started, reason, pixels = time.monotonic(), "", shared.get()
    figures: dict[str, float] = {}
    steps = job.recipe.epochs_for(len(pixels.train_pixels))
    steps *= job.recipe.steps_per_epoch(len(pixels.train_pixels))
    try:
        with one_thread_on_cpu(job.device):
            figures = _figures(job, pixels)
    except (InputError, MemoryError, RuntimeError) as error:
        reason = one_line(error)
        if not isinstance(error, InputError) and not is_out_of_memory(reason):
            raise
    if job.checkpoint is not None:
        job.checkpoint.unlink(missing_ok=True)
    if reason and job.device.type == "cuda":
        torch.cuda.empty_cache()  # for the next network
    seconds = time.monotonic() - started
    number, tested = job.trial.number, len(pixels.test)
    return Training(number, job.name, steps, 0, tested, figures, seconds, reason)


def _figures(job: _Job, pixels: _Pixels) -> dict[str, float]:
    """Train the network; measure it on test pixels, and on validation pixels if there are any."""
    _forget_damaged(job.checkpoint)
    result = train(
        job.network,
        pixels.train_pixels,
        pixels.watched,
        job.recipe,
        seed=job.trial.seed,
        device=job.device,
        checkpoint=job.checkpoint,
    )
    logits = logits_of(job.network, pixels.test, job.device)
    if not np.isfinite(logits).all():
        raise InputError("the network's logits are not finite")
    report = accuracy_report(pixels.test.targets, logits.argmax(axis=1), pixels.class_names)
    figures = {name: float(report[name]) for name in FIGURES}
    if result.history and (best := result.history[result.best_epoch - 1]).validation_oa is not None:
        figures[VALIDATION] = best.validation_oa
    return figures


def _forget_damaged(checkpoint: Path | None) -> None:
    if checkpoint is not None and checkpoint.exists():
        try:
            read_tensors(checkpoint)
        except InputError:
            checkpoint.unlink()
