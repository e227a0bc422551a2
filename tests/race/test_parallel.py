"""Finalists that train in parallel."""

from multiprocessing import active_children
from typing import TypeVar

from small_race import race, race_task, ranked, without_time

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
