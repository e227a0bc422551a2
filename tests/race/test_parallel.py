"""Finalists that train in parallel."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import active_children, get_context
from typing import TypeVar

import pytest
from small_race import Small, race, race_task, ranked, without_time
from torch import Tensor

from hytas.errors import InputError
from hytas.search import EvaluationStore
from hytas.workers import OneByOne, Shared

T = TypeVar("T")


def test_finalists_in_parallel_train_as_one_alone_does_and_leave_no_process(
    tmp_path, store: EvaluationStore
) -> None:
    alone = race(race_task(folds=2), ranked(5), store, finalists=5, steps=3, workers=1)
    with EvaluationStore(tmp_path / "beside.sqlite") as other:
        beside = race(race_task(folds=2), ranked(5), other, finalists=5, steps=3, workers=2)
        assert alone == beside
        assert without_time(store) == without_time(other)
    assert not active_children()


class Killed(Small):
    """Ends the process that trains it, as the system does where memory runs out."""

    def forward(self, patches: Tensor) -> Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still here")


def test_a_training_process_that_is_killed_is_told_in_one_line(store: EvaluationStore) -> None:
    task = race_task(build=lambda *_: Killed(4))
    with pytest.raises(OSError, match="one of 2 worker processes was killed"):
        race(task, ranked(5), store, finalists=5, steps=3, workers=2)


def test_any_executor_will_do_and_stays_open(tmp_path, store: EvaluationStore) -> None:
    alone = race(race_task(folds=2), ranked(5), store, finalists=5, steps=3, workers=1)
    with (
        ProcessPoolExecutor(1, get_context("forkserver")) as executor,
        EvaluationStore(tmp_path / "other.sqlite") as other,
    ):
        found = race(race_task(folds=2), ranked(5), other, finalists=5, steps=3, workers=executor)
        assert found == alone
        assert without_time(store) == without_time(other)
        assert executor.submit(abs, -1).result() == 1


class Sharing(OneByOne):
    """Counts the values that are shared."""

    shared, elsewhere = 0, True

    def share(self, value: T) -> Shared[T]:
        self.shared += 1
        return super().share(value)


def test_the_folds_of_a_race_share_their_pixels_once(store: EvaluationStore) -> None:
    workers = Sharing()
    race(race_task(folds=3), ranked(5), store, finalists=5, steps=3, workers=workers)
    assert workers.shared == 1


def test_threads_are_refused(store: EvaluationStore) -> None:
    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(InputError, match="workers: threads share torch's random numbers"),
    ):
        race(race_task(), ranked(3), store, finalists=3, steps=3, workers=threads)


def test_what_is_sent_are_the_patches_of_all_pixels() -> None:
    assert race_task().fits.source.patch_bytes == 90 * 3 * 3 * 4 * 4
