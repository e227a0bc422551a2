"""The vote of a race on pixels without a label, and who agrees with it."""

from dataclasses import replace

import numpy as np
import pytest
from small_race import PIXELS, figures, race, race_task, ranked

from hytas.race import (
    DEFAULT_RANKING,
    RANKINGS,
    Racer,
    RaceTask,
    RungResult,
    best_first,
    joined_late,
    race_scores,
)
from hytas.race.consensus import agreements, count_votes, is_behind
from hytas.race.rungs import Rung
from hytas.race.task import FEW_FINALISTS
from hytas.search import (
    EvaluationStore,
    MethodVote,
    pack_classes,
    unpack_classes,
)

USUAL = RANKINGS[DEFAULT_RANKING]
A, B, C, D = ((number, "plain") for number in range(4))


def packed(*classes: int) -> bytes:
    """Answers as the store keeps them."""
    return pack_classes(np.array(classes))


def test_classes_come_back_as_they_were() -> None:
    classes = np.array([0, 3, 255, 256, 65535])
    assert unpack_classes(pack_classes(classes)).tolist() == classes.tolist()
    assert len(pack_classes(classes)) == 10


def test_each_racer_votes_with_its_weight_whatever_its_folds() -> None:
    votes = count_votes([(3.0, [packed(0, 1)]), (1.0, [packed(1, 1), packed(2, 0)])])
    assert votes == pytest.approx(np.array([[0.75, 0.125, 0.125], [0.125, 0.875, 0.0]]))


def result(number: int, score: float, *classes: int, steps: int = 10) -> RungResult:
    """What a racer reached on one fold."""
    predictions = (packed(*classes),) if classes else ()
    return RungResult((number, "plain"), steps, 1, figures(score), 1.0, "", predictions)


def test_agreement_counts_as_much_as_the_score_and_losers_of_early_rungs_vote_too() -> None:
    rungs = {
        A: [result(0, 0.9, 1, 1, 1, 1)],
        B: [result(1, 0.8, 0, 0, 0, 1)],
        C: [result(2, 0.7, 0, 0, 0, 0)],
        D: [result(3, 0.6, 0, 0, 0, 0)],
    }
    placed = race_scores(rungs, USUAL)
    agreed = [placed[key].agreement for key in rungs]
    assert agreed == pytest.approx([0.25, 1.0, 0.75, 0.75])
    assert [placed[key].value for key in rungs] == pytest.approx(
        [0.575, 0.9, 0.725, 0.675], abs=1e-3
    )
    racers = [Racer(replace(ranked(1)[0], id=number), "plain") for number in (3, 0, 1, 2)]
    assert [one.finalist.id for one in best_first(racers, placed)] == [1, 2, 3, 0]
    # In a rung of two, the two that stayed behind still count.
    rungs[A].append(result(0, 0.99, 1, 1, 1, 1, steps=20))
    rungs[B].append(result(1, 0.80, 0, 0, 0, 0, steps=20))
    placed = race_scores(rungs, USUAL)
    assert best_first(racers[1:3], placed)[0].finalist.id == 1


def test_without_predictions_the_validation_score_decides() -> None:
    placed = race_scores({A: [result(0, 0.5)], B: [result(1, 0.7)]}, USUAL)
    assert [placed[key].value for key in (A, B)] == [USUAL(figures(value)) for value in (0.5, 0.7)]
    assert placed[B].agreement is None


def of_folds(number: int, *predictions: bytes) -> RungResult:
    """What a racer said on several folds."""
    return replace(result(number, 0.5), folds=len(predictions), predictions=predictions)


def test_agreement_is_the_share_of_pixels_over_all_folds() -> None:
    last = {
        A: of_folds(0, packed(0, 0, 1, 1), packed(0, 0, 1, 1)),
        B: of_folds(1, packed(0, 0, 1, 2), packed(0, 0, 1, 2)),
        C: of_folds(2, packed(1, 0, 2, 1), packed(0, 0, 1, 1)),
    }
    # The vote: 0 0 1 1; the last pixel goes 3 + 2 to 1.
    assert agreements(last, {A: 0.9, B: 0.4, C: 0.5}) == {A: 1.0, B: 0.75, C: 0.75}
    # Of two, the better one decides.
    only = {key: last[key] for key in (A, B)}
    assert agreements(only, {A: 0.4, B: 0.9}) == {A: 0.75, B: 1.0}


def test_those_that_ran_fewer_folds_do_not_vote() -> None:
    one, two = packed(1, 1), packed(0, 0)
    last = {A: of_folds(0, one), B: of_folds(1, one), C: of_folds(2, two, two)}
    assert agreements(last, {A: 0.9, B: 0.8, C: 0.1}) == {A: 0.0, B: 0.0, C: 1.0}


def vote(method: str, right: int, *classes: int, fold: int = 0, pixels: int = 20) -> MethodVote:
    """What a method that does not race says."""
    return MethodVote(method, fold, pixels, right, packed(*classes))


def test_a_method_that_does_not_race_has_almost_half_the_weight_of_those_that_vote() -> None:
    last = {A: result(0, 0.5, 0, 0, 0), B: result(1, 0.5, 0, 0, 0), C: result(2, 0.5, 1, 1, 0)}
    known = {A: 0.9, B: 0.8, C: 0.7}
    # Of 3 + 2 + 1 votes, the first class has 5.
    assert agreements(last, known)[A] == 1.0
    # 2.5 from one method are not enough: 5 against 3.5. With another one it is 5 against 6.
    one, other = vote("svm", 10, 1, 1, 0), vote("rf", 10, 1, 0, 0)
    assert agreements(last, known, [one])[A] == 1.0
    both = agreements(last, known, [one, other])
    assert both == dict.fromkeys((A, B, C), pytest.approx(2 / 3))
    twice = agreements(last, known, [one, replace(one, method="rf")])
    assert (twice[A], twice[C]) == (pytest.approx(1 / 3), 1.0)
    # Its folds share its weight.
    folds = [replace(one, fold=fold) for fold in (0, 1)]
    assert agreements(last, known, folds) == agreements(last, known, [one])
    # Ballots on other pixels do not count.
    longer = vote("svm", 10, 1, 1, 0, 0)
    assert agreements(last, known, [longer, replace(longer, method="rf")])[A] == 1.0


@pytest.mark.parametrize("swapped", [False, True])
def test_two_methods_do_not_outvote_racers_that_agree(swapped: bool) -> None:
    said = (0, 1) if swapped else (1, 0)
    last = {key: result(key[0], 0.5, *said) for key in (A, B, C)}
    votes = [vote(method, 10, *reversed(said)) for method in ("svm", "rf")]
    assert set(agreements(last, {A: 0.9, B: 0.8, C: 0.7}, votes).values()) == {1.0}


@pytest.mark.parametrize(
    ("right", "accuracy", "behind"),
    [
        (18, 0.9, False),  # as many errors
        (17, 0.95, False),  # 3 errors against 1: a lead of 2, as large as the root of 4
        (16, 0.95, True),  # a lead of 3 is larger than the root of 5
        (20, 1.0, False),
        (19, 1.0, False),  # one error may be chance
        (18, 1.0, True),  # two are more
        (20, 0.2, False),
    ],
)
def test_a_method_is_behind_if_racers_lead_by_more_than_chance(
    right: int, accuracy: float, behind: bool
) -> None:
    assert is_behind([vote("svm", right, 0)], [result(0, accuracy, 0)]) == behind


def test_racers_and_methods_are_compared_on_the_same_folds() -> None:
    last = result(0, 0.9, 0)  # of the first fold
    # As good there, and far behind on folds that the racer did not run.
    later = [vote("svm", 5, 0, fold=fold) for fold in (1, 2)]
    assert not is_behind([vote("svm", 18, 0), *later], [last])
    assert is_behind([vote("svm", 18, 0), *later], [replace(last, folds=3)])
    # Far behind there, and good elsewhere.
    assert is_behind([vote("svm", 8, 0), replace(later[0], right=20)], [last])


def test_the_best_racers_decide_whether_a_method_votes() -> None:
    rungs = {A: [result(0, 0.9, 0, 0)], B: [result(1, 0.5, 1, 1)], C: [result(2, 0.4, 1, 0)]}
    # The mean of all three is .6; of 20 pixels the method has 12 right, then 3.
    for right, agreed in ((12, 0.5), (3, 1.0)):
        votes = [vote(name, right, 1, 0) for name in ("svm", "rf")]
        assert race_scores(rungs, USUAL, votes)[A].agreement == agreed


def voting() -> RaceTask:
    """A race whose racers also classify its pixels as if they had no label."""
    return replace(race_task(), unlabelled=np.arange(PIXELS))


def test_ballots_in_the_store_change_what_is_ahead(store: EvaluationStore) -> None:
    told: dict[int, list[str]] = {}
    for first in (0, 1):
        lines = told.setdefault(first, [])
        with EvaluationStore(store.path.with_name(f"{first}.sqlite")) as own:
            own.replace_votes(
                MethodVote(method, 0, 30, 30, packed(*[first] * PIXELS)) for method in ("svm", "rf")
            )
            race(voting(), ranked(4), own, finalists=4, steps=3, workers=1, notify=lines.append)
    assert told[0] != told[1]


def test_a_racer_that_joined_late_does_not_vote_for_itself() -> None:
    """By three recipes it would have three of five votes."""
    early = {
        key: [result(key[0], 0.9, 1, 1), result(key[0], 0.9, 1, 1, steps=20)] for key in (A, B)
    }
    late = {(7, name): [result(7, 0.95, 0, 0, steps=20)] for name in ("full", "plain", "light")}
    assert joined_late({**early, **late}) == late.keys()
    scores = race_scores({**early, **late}, USUAL)
    assert {scores[key].agreement for key in early} == {1.0}
    assert {scores[key].agreement for key in late} == {0.0}


def test_the_first_rung_of_a_race_with_a_vote_has_two_folds() -> None:
    silent = replace(race_task(4), unlabelled=None)
    asked = replace(silent, unlabelled=voting().unlabelled)
    first, second, few = Rung(24, 60, 60), Rung(12, 120, 60), Rung(FEW_FINALISTS, 60, 60)
    assert [silent.folds_of(rung) for rung in (first, second, few)] == [3, 3, 4]
    assert [asked.folds_of(rung) for rung in (first, second, few)] == [2, 3, 4]
    one = replace(asked, folds=asked.folds[:1])
    assert [one.folds_of(rung) for rung in (first, second, few)] == [1, 1, 1]
