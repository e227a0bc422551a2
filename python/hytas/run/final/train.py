"""Final trainings: one kind of task for folds, the winner and further seeds."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.machine import one_thread_on_cpu
from hytas.run.final.records import HeldOut
from hytas.run.prepared import PreparedData
from hytas.run.progress import Report
from hytas.tensors import read_facts, read_tensors
from hytas.train import Epoch, LabelledPixels, Recipe, TrainingResult, logits_of, train
from hytas.train.loop import CHECKPOINT_SECONDS
from hytas.types import Logits, Pixels
from hytas.workers import Shared, WorkersLike, open_workers

PROGRESS_SECONDS = CHECKPOINT_SECONDS
MOST_PIXELS = 5000
"""Held-out pixels of a record that fit a temperature; one number needs no more."""
Progress = Callable[[Epoch], None]


@dataclass(frozen=True, eq=False)
class FinalTask:
    """A training of an architecture by the recipe of a run.

    Its checkpoint is kept when it ends, so a task that is fitted twice is trained once.

    Attributes:
        network: as training begins with it.
        labelled: all labelled pixels of the run.
        trained: flat indices of the pixels that it trains on.
        watched: of those that choose its best epoch; may be empty.
        recipe: how it trains.
        seed: of its randomness.
        device: where it trains.
        checkpoint: where the training stands, and its result.
        one_thread: whether it uses one CPU thread, so that its result is the same on any worker.
        deadline: when it ends at the latest, by `time.time()`.
    """

    network: nn.Module
    labelled: LabelledPixels
    trained: Pixels
    watched: Pixels
    recipe: Recipe
    seed: int
    device: torch.device
    checkpoint: Path
    one_thread: bool
    deadline: float = math.inf

    def threads(self) -> AbstractContextManager[None]:
        """Return what limits the training to its threads."""
        return one_thread_on_cpu(self.device) if self.one_thread else nullcontext()

    def round_checkpoint(self, number: int) -> Path:
        """Return the checkpoint of a round of self-training that follows."""
        return self.checkpoint.with_stem(f"{self.checkpoint.stem}-self-training-{number}")

    def forget_checkpoints(self) -> None:
        """Remove its checkpoints; the first training's goes last, as it fixes the recipe."""
        rounds = self.round_checkpoint(0).name.replace("-0.", "-*.")
        for path in (*self.checkpoint.parent.glob(rounds), self.checkpoint):
            path.unlink(missing_ok=True)

    def epochs(self) -> tuple[int, int]:
        """Return how many epochs the training is through, and how many it has at most.

        A training that ended early is through all of them.
        """
        epochs = self.recipe.schedule(len(self.trained)).epochs
        try:
            facts = read_facts(self.checkpoint)
            done, best = len(facts["history"]), int(facts["best_epoch"])
        except (OSError, InputError, KeyError, TypeError, ValueError):
            return 0, epochs
        return (epochs if done - best >= self.recipe.patient_epochs(epochs) else done), epochs


def fit(task: FinalTask, progress: Progress = lambda _: None) -> TrainingResult:
    """Train the task's network in place, or read what an earlier training of it left.

    Raises:
        DivergedError: the loss or the logits are not finite any more.
    """
    with task.threads():
        return train(
            task.network,
            task.labelled.subset(task.trained),
            task.labelled.subset(task.watched),
            task.recipe,
            seed=task.seed,
            device=task.device,
            checkpoint=task.checkpoint,
            keep=True,
            progress=progress,
            deadline=task.deadline,
        )


def run_all(tasks: Sequence[FinalTask], workers: WorkersLike, what: str, report: Report) -> None:
    """Train tasks in parallel on workers; without workers, leave them to `fit`.

    `fit` then reads their checkpoints. Tasks that have ended before are left out.

    Args:
        tasks: on the same labelled pixels, independent of each other.
        workers: of the run.
        what: the tasks are, for a message.
        report: receives the progress.

    Raises:
        DivergedError: the loss or the logits of a training are not finite any more.
        OSError: a worker was lost.
    """
    tasks = [task for task in tasks if task.epochs()[0] < task.epochs()[1]]
    if not tasks:
        return
    labelled, on_cpu = tasks[0].labelled, tasks[0].device.type == "cpu"
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=labelled.patch_bytes) as pool:
        if not pool.elsewhere:
            return
        report.line(f"{what} in parallel: {pool.name}")
        for task in tasks:
            forget_damaged(task.checkpoint, report)
        pixels = pool.share(labelled.in_memory())
        jobs = (
            (
                pixels,
                task.trained,
                task.watched,
                task.network,
                task.recipe,
                task.seed,
                task.device,
                task.checkpoint.absolute() if pool.sees_files else None,
                task.deadline,
            )
            for task in tasks
        )
        with _reported(tasks, report) if pool.sees_files else nullcontext():
            for task, content in zip(tasks, pool.run(_train, jobs, len(tasks)), strict=True):
                if content is not None:
                    with atomic_write(task.checkpoint) as path:
                        path.write_bytes(content)


def _train(
    pixels: Shared[LabelledPixels],
    trained: Pixels,
    watched: Pixels,
    network: nn.Module,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    checkpoint: Path | None,
    deadline: float,
) -> bytes | None:
    """Train a network; without a checkpoint to write, return the bytes of one."""
    with TemporaryDirectory() as folder:
        path = checkpoint or Path(folder) / "checkpoint.safetensors"
        labelled = pixels.get()
        task = FinalTask(
            network, labelled, trained, watched, recipe, seed, device, path, True, deadline
        )
        fit(task)
        return None if checkpoint else path.read_bytes()


def forget_damaged(checkpoint: Path, report: Report) -> None:
    """Remove a checkpoint if it is damaged, and say so; its training then begins again."""
    if not checkpoint.exists():
        return
    try:
        read_tensors(checkpoint)
    except InputError as error:
        report.line(f"{error}: the training begins again")
        checkpoint.unlink()


@contextmanager
def _reported(tasks: Sequence[FinalTask], report: Report) -> Iterator[None]:
    """Report the progress of all tasks periodically, read from their checkpoints."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PROGRESS_SECONDS):
            done = total = 0
            for task in tasks:
                epochs, all_epochs = task.epochs()
                done, total = (
                    done + epochs * len(task.trained),
                    total + all_epochs * len(task.trained),
                )
            report.pixels("train", done, total)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def hold_out(
    network: nn.Module,
    data: PreparedData,
    trained: Pixels,
    held_out: Pixels,
    unlabelled: Pixels,
    device: torch.device,
) -> HeldOut:
    """Return the record of a network that was trained on some pixels and not on others."""
    pixels = _some(held_out)
    compared, neighbours = data.with_neighbours(held_out)
    logits = observe(network, data, (pixels, neighbours, unlabelled), device)
    return HeldOut(
        trained,
        pixels,
        data.targets(pixels),
        compared,
        data.targets(compared),
        neighbours,
        logits[0],
        logits[1],
        unlabelled=unlabelled,
        unlabelled_logits=logits[2],
    )


def observe(
    network: nn.Module,
    data: PreparedData,
    groups: Sequence[Pixels],
    device: torch.device,
) -> list[Logits]:
    """Return the logits of a network for each group of pixels."""
    return [logits_of(network, data.unlabelled(each), device) for each in groups]


def _some(pixels: Pixels) -> Pixels:
    """Return at most `MOST_PIXELS` of the pixels, evenly spread."""
    if len(pixels) <= MOST_PIXELS:
        return pixels
    return pixels[np.linspace(0, len(pixels) - 1, MOST_PIXELS).astype(np.int64)]
