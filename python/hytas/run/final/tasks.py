"""Complete final trainings, in parallel where there are workers: folds, the winner, its seeds."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from hytas.data import Scene
from hytas.files import atomic_write
from hytas.run.final.held_out import HeldOut
from hytas.run.final.self_training import ROUNDS, SHARE, is_complete, self_train
from hytas.run.final.train import FinalTask, Progress, fit, hold_out, observe
from hytas.run.prepared import PreparedData
from hytas.run.progress import Report
from hytas.train import DivergedError, LabelledPixels
from hytas.train.loop import CHECKPOINT_SECONDS
from hytas.workers import Shared, Workers, WorkersLike, open_workers
from hytas.workers.backends import MOST_BYTES

T = TypeVar("T")


class Completed(NamedTuple):
    """What a task leaves besides its checkpoints.

    Attributes:
        record: of the held-out pixels; None where the task has none.
        lines: for the log.
    """

    record: HeldOut | None
    lines: list[str]


class _Shared(NamedTuple):
    """What the tasks of a run read; `data` is None for workers that only train.

    The teacher of `labelled` is for those tasks that have one.
    """

    data: PreparedData | None
    labelled: LabelledPixels


def complete_all(
    tasks: Sequence[FinalTask],
    data: PreparedData,
    workers: WorkersLike,
    what: str,
    report: Report,
    progress: Progress | None = None,
) -> list[HeldOut | None]:
    """Complete tasks, in parallel where there are workers, and return their records.

    Workers that do not share the memory of this machine only train, and so do those of a scene
    that is too large to send; the rest happens here. A task without a record that no worker
    completes is left to `fit` and `self_train`. They read what is done from the checkpoints.

    Args:
        tasks: of one run, independent of each other.
        data: of the run.
        workers: of the run.
        what: the tasks are, for a message.
        report: receives the progress.
        progress: called with each epoch of a training of this process; None reports its pixels.

    Raises:
        DivergedError: the loss or the logits of a training are not finite any more.
        OSError: a worker was lost.
    """
    for task in tasks:
        task.forget_damaged(report.line)
    if all(task.held_out is None and _is_over(task) for task in tasks):
        return [None] * len(tasks)
    sent, on_cpu = tasks[0].labelled.patch_bytes, tasks[0].device.type == "cpu"
    with open_workers(workers, on_cpu=on_cpu, sent_bytes=sent) as pool:
        watched = pool.sees_files and (pool.elsewhere or progress is None)
        with _reported(tasks, report) if watched else nullcontext():
            if pool.elsewhere:
                report.line(f"{what} in parallel: {pool.name}")
                if _fits(pool, tasks, data):
                    return [_noted(one, report) for one in _run(_complete, tasks, data, pool)]
                _train_all(tasks, pool)
            left = (
                Completed(None, []) if task.held_out is None else complete(task, data, progress)
                for task in tasks
            )
            return [_noted(one, report) for one in left]


def _fits(pool: Workers, tasks: Sequence[FinalTask], data: PreparedData) -> bool:
    """Return whether workers do more than train: they read the scene from this machine's memory."""
    cube = data.scene.cube.nbytes if isinstance(data.scene, Scene) else 0
    reads = any(task.held_out is not None or task.self_trains for task in tasks)
    return pool.shares_memory and reads and cube + tasks[0].labelled.patch_bytes <= MOST_BYTES


def _train_all(tasks: Sequence[FinalTask], pool: Workers) -> None:
    """Train the networks of tasks on workers, which leave or send their checkpoints."""
    unfinished = [task for task in tasks if task.epochs()[0] < task.epochs()[1]]
    for task, content in zip(unfinished, _run(_fit, unfinished, None, pool), strict=True):
        if content is not None:
            with atomic_write(task.checkpoint) as path:
                path.write_bytes(content)


def complete(task: FinalTask, data: PreparedData, progress: Progress | None = None) -> Completed:
    """Train the network of a task, and record its logits before and after self-training.

    What its checkpoints hold is not repeated.

    Args:
        task: of a run.
        data: of the run.
        progress: called with each epoch of the first training.

    Raises:
        DivergedError: the loss or the logits of the first training are not finite any more.
    """
    lines: list[str] = []
    if task.held_out is not None and not len(task.watched):
        lines.append(
            f"calibration: training on {len(task.trained)} pixels, to measure confidence on others"
        )
    fit(task, progress or (lambda _: None), lines.append)
    record = None
    if task.held_out is not None:
        voting = data.pixels_that_vote(task.seed)
        unlabelled = task.held_out[:0] if voting is None else voting.pixels
        record = hold_out(task.network, data, task.trained, task.held_out, unlabelled, task.device)
    if not task.self_trains:
        return Completed(record, lines)
    try:
        self_train(task, data.as_scene, lines.append)
    except DivergedError as error:
        return Completed(record, [*lines, f"self-training: {error}"])
    if record is not None:
        groups = record.pixels, record.neighbours, record.unlabelled
        held_out, neighbours, others = observe(task.network, data, groups, task.device)
        record = replace(
            record,
            logits_after=held_out,
            neighbour_logits_after=neighbours,
            unlabelled_logits_after=others,
        )
    return Completed(record, lines)


def _work(task: FinalTask) -> tuple[float, float]:
    """Return the pixels that a task has trained on, once for each epoch, and those of all of it."""
    epochs, all_epochs = task.epochs()
    done, total = float(epochs), float(all_epochs)
    if task.self_trains:
        rounds = sum(is_complete(task.round_checkpoint(number)) for number in range(ROUNDS))
        done, total = done + rounds * SHARE * all_epochs, total * (1 + ROUNDS * SHARE)
    return done * len(task.trained), total * len(task.trained)


def _noted(completed: Completed, report: Report) -> HeldOut | None:
    for line in completed.lines:
        report.line(line)
    return completed.record


def _is_over(task: FinalTask) -> bool:
    done, total = _work(task)
    return done == total


def _run(
    work: Callable[..., T], tasks: Sequence[FinalTask], data: PreparedData | None, pool: Workers
) -> Iterator[T]:
    """Call `work` with the shared value and the fields of each task."""
    if not tasks:
        return iter(())
    teachers = [task.labelled.teacher for task in tasks]
    labelled = replace(tasks[0].labelled.in_memory(), teacher=next(filter(None, teachers), None))
    handle = pool.share(_Shared(data, labelled))
    jobs = (
        (
            handle,
            teacher is not None,
            {
                **{name: value for name, value in vars(task).items() if name != "labelled"},
                "checkpoint": task.checkpoint.absolute() if pool.sees_files else None,
            },
        )
        for task, teacher in zip(tasks, teachers, strict=True)
    )
    return pool.run(work, jobs, len(tasks))


def _complete(shared: Shared[_Shared], taught: bool, fields: dict[str, Any]) -> Completed:
    """Complete a task in a worker."""
    data, labelled = shared.get()
    assert data is not None
    return complete(FinalTask(labelled=_taught(labelled, taught), **fields), data)


def _fit(shared: Shared[_Shared], taught: bool, fields: dict[str, Any]) -> bytes | None:
    """Train in a worker; without a checkpoint to write, return the bytes of one."""
    labelled = _taught(shared.get().labelled, taught)
    if fields["checkpoint"] is not None:
        fit(FinalTask(labelled=labelled, **fields))
        return None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        fit(FinalTask(labelled=labelled, **{**fields, "checkpoint": path}))
        return path.read_bytes()


def _taught(labelled: LabelledPixels, taught: bool) -> LabelledPixels:
    """Return the pixels; without their teacher for a fold that it was trained on."""
    return labelled if taught else replace(labelled, teacher=None)


@contextmanager
def _reported(tasks: Sequence[FinalTask], report: Report) -> Iterator[None]:
    """Report the progress of all tasks periodically, read from their checkpoints."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(CHECKPOINT_SECONDS):
            done, total = map(sum, zip(*map(_work, tasks), strict=True))
            report.pixels("train", round(done), round(total))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
