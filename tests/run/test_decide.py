"""Decisions on arrays: temperature, smoothing and self-training, without a training."""

from dataclasses import replace

import numpy as np
import pytest

from hytas.decide.decisions import (
    Conditions,
    Maps,
    choose_by_brier_score,
    choose_self_training,
    choose_smoothing,
    decide,
    expected_accuracy,
)
from hytas.decide.records import HeldOut
from hytas.results import SmoothingChoice
from hytas.temperature import fit_temperature


def sure(pixels: int, right: int, chance: float) -> np.ndarray:
    """Probabilities (pixels, 2) of which the first ones are right, all with the same chance."""
    chosen = np.arange(pixels)[:, None] < right
    found = np.where(chosen, [1 - chance, chance], [chance, 1 - chance])
    return found.astype(np.float32).reshape(-1, 2)


@pytest.mark.parametrize(
    ("asked", "counts", "method", "words"),
    [
        ("auto", (50, 40, 41), "guided", "50 validation pixels 0.8000 raw and 0.8200 smoothed"),
        ("auto", (50, 40, 39), "none", "not smoothed: Brier score 0.320 raw, 0.343 smoothed; OA"),
        ("auto", (9, 1, 9), "none", "9 validation pixels; at least 10 are needed"),
        ("auto", (0, 0, 0), "none", "no validation pixels; at least 10"),
        ("guided", (50, 40, 30), "guided", "smooth guided was asked for; OA on 50"),
        ("none", (0, 0, 0), "none", "smooth none was asked for"),
    ],
)
def test_what_is_chosen(asked: str, counts: tuple[int, int, int], method: str, words: str) -> None:
    pixels, raw, smoothed = counts
    maps = Maps(np.ones(pixels, int), sure(pixels, raw, 0.8), sure(pixels, smoothed, 0.8))
    choice = choose_smoothing(asked, maps)
    assert choice.method == method
    assert words in choice.describe()


@pytest.mark.parametrize("better", ["raw", "smoothed"])
def test_the_brier_score_decides_where_as_many_are_right(better: str) -> None:
    """One of both is unsure where it is wrong, and sure where it is right."""
    wrong = sure(50, 45, 0.9)
    telling = wrong.copy()
    telling[45:] = [0.55, 0.45]
    pair = (telling, wrong) if better == "raw" else (wrong, telling)
    choice = choose_smoothing("auto", Maps(np.ones(50, int), *pair))
    assert choice.method == ("none" if better == "raw" else "guided")
    assert "Brier score" in choice.describe()


def test_one_pixel_does_not_switch_the_smoothing() -> None:
    """The smoothed map has one pixel less right, and is much surer of all others."""
    raw, smoothed = sure(50, 40, 0.7), sure(50, 39, 0.7)
    smoothed[:39] = [0.02, 0.98]
    smoothed[39:] = [0.55, 0.45]
    assert choose_smoothing("auto", Maps(np.ones(50, int), raw, smoothed)).method == "guided"


def test_smoothed_probabilities_that_tell_nothing_have_no_temperature() -> None:
    targets = np.arange(40) % 2
    against = np.full((40, 2), 0.9, np.float32)
    against[np.arange(40), targets] = 0.1
    maps = Maps(targets, against, against)
    assert maps.calibrated()[0] == 1


def test_smoothed_probabilities_are_as_sure_as_they_are_right() -> None:
    """Means over a window say .6 where 19 of 20 are right."""
    generator = np.random.default_rng(3)
    targets = generator.integers(0, 3, 400)
    shown = np.where(generator.random(400) < 0.95, targets, (targets + 1) % 3)
    chances = np.full((400, 3), 0.2, np.float32)
    chances[np.arange(400), shown] = 0.6
    choice = choose_smoothing("guided", Maps(targets, chances, chances))
    assert choice.temperature < 0.5
    assert choice.ECE_before == pytest.approx((shown == targets).mean() - 0.6, abs=1e-6)
    assert choice.ECE_after is not None
    assert choice.ECE_after < 0.01
    assert choose_smoothing("guided", Maps(targets[:9], chances[:9], chances[:9])).temperature == 1


def test_smoothed_probabilities_close_to_chance_have_a_temperature() -> None:
    """The lowest temperature is their hundredth power, which float32 cannot hold."""
    targets = np.arange(48) % 16
    chances = np.full((48, 16), 0.0624, np.float32)
    chances[np.arange(48), targets] = 1 - 15 * 0.0624
    choice = choose_smoothing("guided", Maps(targets, chances, chances))
    assert choice.temperature < 0.05
    assert choice.ECE_after < choice.ECE_before


def maps_of(right: np.ndarray) -> Maps:
    """Maps of pixels of class 1, the same raw and smoothed."""
    chances = np.where(right[:, None], [0.3, 0.7], [0.7, 0.3]).astype(np.float32).reshape(-1, 2)
    return Maps(np.ones(len(right), int), chances, chances)


@pytest.mark.parametrize(
    ("weights", "temperature", "method", "scores"),
    [
        # Squared errors of pixels of the two classes: raw 0.041 and 0.887, at the temperature 1.23
        # that fits them best; smoothed 0.32 and 0.08.
        ([1.0, 1.0], 1.0, "guided", "0.323 raw, 0.240 smoothed"),
        ([4.0, 1.0], 1.0, "none", "0.135 raw, 0.293 smoothed"),
        ([1.0, 4.0], 1.0, "guided", "0.607 raw, 0.160 smoothed"),
        # Powers of the smoothed probabilities: 0.36 / 0.52 and 0.64 / 0.68; errors 0.189 and 0.007.
        ([4.0, 1.0], 0.5, "none", "0.135 raw, 0.169 smoothed"),
    ],
)
def test_the_brier_score_of_weighted_classes_chooses_smoothing(
    weights: list[float], temperature: float, method: str, scores: str
) -> None:
    raw = np.float32([[0.9, 0.1], [0.9, 0.1], [0.7, 0.3]]).repeat(10, axis=0)
    smoothed = np.float32([[0.6, 0.4], [0.6, 0.4], [0.2, 0.8]]).repeat(10, axis=0)
    maps = Maps(np.array([0, 0, 1]).repeat(10), raw, smoothed)
    other = "none" if method == "guided" else "guided"
    before = SmoothingChoice(other, 30, 0.6, 1.0, temperature=temperature)
    choice = choose_by_brier_score(before, maps, np.array(weights))
    assert (choice.method, choice.OA_raw, choice.OA_smoothed) == (method, None, None)
    assert choice.reason == f"Brier score {scores}, by class shares"
    # Of three pixels, one may decide alone.
    few = Maps(*(part[::10] for part in maps))
    assert choose_by_brier_score(before, few, np.array(weights)) == before


@pytest.mark.parametrize(
    ("disjoint", "gained", "lost", "used", "words"),
    [
        (True, 5, 3, True, "is used: OA on 100 validation pixels 0.7200 without and 0.7400 with"),
        (True, 0, 0, True, "is used: OA on 100 validation pixels 0.7200 without and 0.7200 with"),
        (True, 2, 3, False, "is not used: OA on 100 validation pixels 0.7200 without and 0.7100"),
        (False, 12, 2, True, "is used: OA on 100 validation pixels 0.7200 without and 0.8200 with"),
        (False, 5, 3, False, "with it; no more than chance would give"),
        (False, 0, 0, False, "no more than chance would give"),
    ],
)
def test_held_out_pixels_decide_on_self_training(
    disjoint: bool, gained: int, lost: int, used: bool, words: str
) -> None:
    before = np.arange(100) < 72
    after = before.copy()
    after[72 : 72 + gained] = True
    after[:lost] = False
    choice = choose_self_training("auto", disjoint, maps_of(before), maps_of(after))
    assert choice.used is used
    assert words in choice.describe()


def test_few_pixels_decide_nothing() -> None:
    nine = np.zeros(9, bool)
    choice = choose_self_training("auto", True, maps_of(nine), maps_of(~nine))
    assert not choice.used
    assert choice.reason == "9 validation pixels; at least 10 are needed"


def test_accuracies_are_those_of_maps_as_they_will_be() -> None:
    """Smoothing hides what the network gains, or shows it."""
    raw, better = maps_of(np.arange(100) < 60), maps_of(np.arange(100) < 80)
    best = maps_of(np.arange(100) < 90)
    before, after = raw._replace(smoothed=best.raw), better._replace(smoothed=better.raw)
    assert choose_self_training("none", True, before, after).used
    assert not choose_self_training("auto", True, before, after).used


def record(right: int, sure: float = 2.0, after: int | None = None, pixels: int = 40) -> HeldOut:
    """Record a network that has the first pixels right, of classes in turn."""

    def logits(right: int) -> np.ndarray:
        shown = np.where(np.arange(pixels) < right, targets, 1 - targets)
        return np.asarray(sure * np.eye(2, dtype=np.float32)[shown])

    numbers, targets = np.arange(pixels), np.arange(pixels) % 2
    found = HeldOut(
        numbers, numbers, targets, numbers, targets, numbers, logits(right), logits(right)
    )
    if after is None:
        return found
    return replace(
        found,
        logits_after=logits(after),
        neighbour_logits_after=logits(after),
        unlabelled_logits_after=found.unlabelled_logits,
    )


def as_they_are(pixels: np.ndarray, chances: np.ndarray) -> np.ndarray:
    return chances


def test_the_temperature_is_fitted_on_all_records_together() -> None:
    records = [record(36), record(20, sure=5.0)]
    found = decide(records, None, Conditions(folds=2, no_self_training="images")).calibration
    logits = np.concatenate([each.logits for each in records])
    targets = np.concatenate([each.targets for each in records])
    assert found.temperature == fit_temperature(logits, targets)
    assert (found.pixels, found.folds, found.reason) == (80, 2, "")
    assert found.ECE_before is not None
    assert found.ECE_after is not None
    assert found.ECE_after < found.ECE_before


def test_logits_of_neighbours_do_not_change_the_temperature() -> None:
    alone = Conditions(disjoint=False, folds=1, no_self_training="images", smooth="none")
    own = record(36)
    surer = replace(own, neighbour_logits=3 * own.neighbour_logits)
    found = [decide([each], None, alone).calibration for each in (own, surer)]
    assert found[0] == found[1]
    assert found[0].temperature == fit_temperature(own.logits, own.targets)


def with_unlabelled(found: HeldOut, shown: np.ndarray) -> HeldOut:
    """The record with classes that its network gives unlabelled pixels."""
    logits = 2.0 * np.eye(2, dtype=np.float32)[shown]
    return replace(found, unlabelled=np.arange(len(shown)), unlabelled_logits=logits)


def test_confidence_on_unlabelled_pixels_meets_the_agreement_of_networks() -> None:
    """Held-out pixels are all right; networks of two folds agree at four of five others."""
    shown = np.zeros(500, np.int64)
    records = [
        with_unlabelled(record(40), shown),
        with_unlabelled(record(40), np.where(np.arange(500) < 400, 0, 1)),
    ]
    found = decide(records, None, Conditions(folds=2, no_self_training="none")).calibration
    assert (found.agreement, found.unlabelled, found.pixels) == (0.8, 500, 80)
    assert 1 / (1 + np.exp(-2.0 / found.temperature)) == pytest.approx(0.8, abs=1e-3)
    assert "500 unlabelled pixels, at 80.0% of which the networks of two folds" in found.describe()
    # Networks that agree everywhere are not surer than held-out pixels allow.
    sure = [with_unlabelled(record(32), shown) for _ in range(2)]
    alone = decide(sure[:1], None, Conditions(no_self_training="none")).calibration.temperature
    both = decide(sure, None, Conditions(folds=2, no_self_training="none")).calibration
    assert both.agreement == 1
    assert both.temperature == pytest.approx(alone / 2, rel=0.1)
    # One network, or few pixels, say nothing.
    for few in (records[:1], [with_unlabelled(record(40), shown[:99]) for _ in range(2)]):
        same = decide(few, None, Conditions(no_self_training="none")).calibration
        assert (same.agreement, same.unlabelled) == (None, 0)
        assert "on 40 validation" in same.describe() or "on 80 validation" in same.describe()


def test_smoothed_maps_keep_the_confidence_that_the_agreement_gives() -> None:
    """Held-out pixels are harder than unlabelled ones, on which all networks agree."""
    shown = np.zeros(500, np.int64)
    records = [with_unlabelled(record(28), shown) for _ in range(2)]
    found = decide(records, as_they_are, Conditions(folds=2, no_self_training="none"))
    alone = decide(
        [replace(one, unlabelled=shown[:0], unlabelled_logits=one.logits[:0]) for one in records],
        as_they_are,
        Conditions(folds=2, no_self_training="none"),
    )
    assert found.calibration.temperature == pytest.approx(alone.calibration.temperature / 2, 0.1)
    assert found.smoothing is not None
    assert alone.smoothing is not None
    assert found.smoothing.temperature == 1  # by held-out pixels alone it would be 2
    assert alone.smoothing.temperature == pytest.approx(1, abs=0.01)
    # Filters average: where they leave maps less sure than these are right, it is below 1.
    maps = Maps(np.ones(50, int), sure(50, 45, 0.6), sure(50, 45, 0.6))
    assert choose_smoothing("guided", maps, most=1.0).temperature < 0.5


def test_the_expected_accuracy_is_the_mean_agreement_of_pairs() -> None:
    logits = [np.eye(3, dtype=np.float32)[row] for row in np.array([[0, 1], [0, 2], [1, 1]])]
    many = [np.tile(each, (50, 1)) for each in logits]
    assert expected_accuracy(many) == pytest.approx((0.5 + 0.5 + 0.0) / 3)
    assert expected_accuracy(logits) is None  # two pixels


def test_maps_are_compared_at_the_temperature_that_ships() -> None:
    seen: list[np.ndarray] = []

    def smoother(pixels: np.ndarray, chances: np.ndarray) -> np.ndarray:
        seen.append(chances)
        return chances

    records = [record(36), record(30)]
    conditions = Conditions(no_self_training="none was asked for", folds=2)
    temperature = decide(records, smoother, conditions).calibration.temperature
    for chances, each in zip(seen, records, strict=True):
        wanted = np.exp(each.logits / temperature)
        np.testing.assert_allclose(chances, wanted / wanted.sum(1, keepdims=True), atol=1e-6)


def test_only_compared_pixels_count_and_neighbours_are_smoothed() -> None:
    """The filter gets all neighbours; the accuracy is of the compared pixels among them."""
    whole = record(40)
    some = replace(whole, compared=whole.pixels[5:25], compared_targets=whole.targets[5:25])

    def wrong_outside(pixels: np.ndarray, chances: np.ndarray) -> np.ndarray:
        assert np.array_equal(pixels, whole.neighbours)
        return np.where(np.isin(pixels, some.compared)[:, None], chances, 1 - chances)

    conditions = Conditions(no_self_training="none was asked for")
    choice = decide([some], wrong_outside, conditions).smoothing
    assert choice is not None
    assert (choice.pixels, choice.OA_raw, choice.OA_smoothed) == (20, 1.0, 1.0)


def test_self_training_decides_whose_logits_are_calibrated() -> None:
    used = decide([record(28, after=38)], as_they_are, Conditions())
    assert used.self_training.used
    without = decide([record(28)], as_they_are, Conditions())
    assert without.self_training.reason == "the self-training of a fold diverged"
    assert used.calibration.temperature < without.calibration.temperature
    lost = decide([record(38, after=28)], as_they_are, Conditions())
    assert not lost.self_training.used
    assert lost.smoothing is not None
    assert lost.smoothing.OA_raw == 0.95


def test_images_have_no_smoothing_and_say_why_they_are_not_self_trained() -> None:
    conditions = Conditions(no_self_training="images have no neighbours")
    found = decide([record(30)], None, conditions)
    assert found.smoothing is None
    assert found.self_training.reason == "images have no neighbours"


@pytest.mark.parametrize(
    ("pixels", "words"),
    [
        (0, "the split has no validation pixels; at least 10 are needed"),
        (6, "the split has 6 validation pixels; at least 10 are needed"),
    ],
)
def test_without_records_nothing_is_calibrated(pixels: int, words: str) -> None:
    found = decide([], as_they_are, Conditions(pixels=pixels))
    assert (found.calibration.temperature, found.calibration.reason) == (1.0, words)
    assert found.smoothing is not None
    assert found.smoothing.method == "none"
    assert not found.self_training.used


def test_logits_like_chance_are_not_calibrated() -> None:
    found = decide([record(20)], None, Conditions()).calibration
    assert found.temperature == 1.0
    assert "not above chance" in found.reason


def test_the_model_that_a_run_began_with_keeps_its_smoothing() -> None:
    conditions = Conditions(kept_smoothing="guided", no_self_training="begins with a model")
    choice = decide([record(30)], as_they_are, conditions).smoothing
    assert choice is not None
    assert (choice.method, choice.reason) == ("guided", "as the model that the run began with")
