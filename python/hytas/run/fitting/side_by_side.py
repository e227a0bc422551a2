"""Final trainings that do not wait for each other, side by side on the workers of a run."""

import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.machine import one_thread_on_cpu
from hytas.run.config import SUPERNET_STRATEGY
from hytas.run.context import Run, RunContext
from hytas.run.damage import forget_damaged
from hytas.run.folder import read_json
from hytas.run.prepared import Pixels
from hytas.tensors import read_facts
from hytas.train import LabelledPixels, Recipe, train
from hytas.train.loop import CHECKPOINT_SECONDS
from hytas.workers import Shared, open_workers

PROGRESS_SECONDS = CHECKPOINT_SECONDS


@dataclass(frozen=True, eq=False)
class FinalJob:
    """A training of the winner by the recipe of a run.

    Attributes:
        run: its seed, weights and folder.
        checkpoint: where the training stands, and what it leaves.
        learnt: flat indices (n,) of the pixels that it trains on.
        watched: of those that choose its best epoch; may be empty.
    """

    run: Run
    checkpoint: Path
    learnt: Pixels
    watched: Pixels

    def epochs(self, recipe: Recipe) -> tuple[int, int]:
        """Return how many epochs the training is through, and how many it has at most.

        A training that ended early is through all of them.
        """
        epochs = recipe.schedule(len(self.learnt)).epochs
        try:
            facts = read_facts(self.checkpoint)
            done, best = len(facts["history"]), int(facts["best_epoch"])
        except (OSError, InputError, KeyError, TypeError, ValueError):
            return 0, epochs
        return (epochs if done - best >= recipe.patient_epochs(epochs) else done), epochs


def threads_of(context: RunContext) -> AbstractContextManager[None]:
    """Return what limits a final training to the threads that it has.

    On a CPU it is one for pixels, on workers and in this process, so that the result is the same.
    The larger networks of images train in this process, with all its threads.
    """
    return one_thread_on_cpu(context.device) if context.data.scene.has_map else nullcontext()


def train_side_by_side(run: Run, jobs: Sequence[FinalJob], what: str) -> None:
    """Bring the checkpoints of trainings to their end on workers; without workers, leave them.

    A stage that finds the checkpoint of a training that has ended only reads it. Those that have
    ended before are left out. A training has one thread of a CPU (`threads_of`), so that it is the
    same on any workers.

    Args:
        run: its winner is trained, on its workers.
        jobs: trainings that do not need each other.
        what: they are, for a message.

    Raises:
        DivergedError: the loss or the logits of a training are not finite any more.
        OSError: a worker was lost.
    """
    context = run.context
    if context.config.strategy == SUPERNET_STRATEGY:
        return
    _, recipe = run.recipe
    jobs = [job for job in jobs if operator.lt(*job.epochs(recipe))]
    if not jobs:
        return
    labelled = context.data.labelled(context.data.split.learnable)
    on_cpu = context.device.type == "cpu"
    with open_workers(run.workers, on_cpu=on_cpu, sent_bytes=labelled.patch_bytes) as pool:
        if not pool.elsewhere:
            return
        run.report.line(f"{what} side by side: {pool.name}")
        for job in jobs:
            forget_damaged(job.checkpoint, run.report.line)
        pixels = pool.share(labelled.in_memory())
        architecture = read_json(run.folder.architecture)
        calls = (
            (
                pixels,
                job.learnt,
                job.watched,
                job.run.context.network(architecture, recipe),
                recipe,
                job.run.context.config.seed,
                context.device,
                job.checkpoint.absolute() if pool.sees_files else None,
            )
            for job in jobs
        )
        with _progress(run, jobs) if pool.sees_files else nullcontext():
            for job, content in zip(jobs, pool.run(_train, calls, len(jobs)), strict=True):
                if content is not None:
                    with atomic_write(job.checkpoint) as path:
                        path.write_bytes(content)


def _train(
    pixels: Shared[LabelledPixels],
    learnt: Pixels,
    watched: Pixels,
    network: nn.Module,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    checkpoint: Path | None,
) -> bytes | None:
    """Train a network; without a checkpoint to write, return the bytes of one."""
    subset = pixels.get().subset
    with TemporaryDirectory() as folder, one_thread_on_cpu(device):
        path = checkpoint or Path(folder) / "checkpoint.safetensors"
        train(
            network,
            subset(learnt),
            subset(watched),
            recipe,
            seed=seed,
            device=device,
            checkpoint=path,
            keep=True,
        )
        return None if checkpoint else path.read_bytes()


@contextmanager
def _progress(run: Run, jobs: Sequence[FinalJob]) -> Iterator[None]:
    """Tell now and then how far all trainings are, by their checkpoints."""
    ended = threading.Event()
    _, recipe = run.recipe

    def tell() -> None:
        while not ended.wait(PROGRESS_SECONDS):
            done = total = 0
            for job in jobs:
                epochs, all_epochs = job.epochs(recipe)
                done, total = done + epochs * len(job.learnt), total + all_epochs * len(job.learnt)
            run.report.pixels("train", done, total)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
