"""Class shares by EM, on mixtures whose shares and probabilities are known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hytas.class_prior import distance, estimate_prior, label_shares


def mixture(shares: list[float], count: int, seed: int) -> tuple[NDArray[np.float64], ...]:
    """Return classes of samples, and their exact probabilities under equal shares.

    Each class is a normal distribution of one value, at 0, 2, 4 ..., with deviation 1.
    """
    generator = np.random.default_rng(seed)
    classes = generator.choice(len(shares), count, p=shares)
    values = 2.0 * classes + generator.normal(size=count)
    density = np.exp(-((values[:, None] - 2.0 * np.arange(len(shares))) ** 2) / 2)
    return classes, density / density.sum(axis=1, keepdims=True)


def test_shares_of_a_mixture_are_found_and_more_samples_are_right() -> None:
    shares = [0.7, 0.2, 0.1]
    classes, chances = mixture(shares, 20_000, 0)
    found = estimate_prior(chances, [1 / 3] * 3)
    assert found == pytest.approx(shares, abs=0.02)
    assert found.sum() == pytest.approx(1)
    adapted = chances * found / label_shares([10, 10, 10])
    before, after = ((each.argmax(axis=1) == classes).mean() for each in (chances, adapted))
    assert after > before + 0.02


def test_shares_of_the_labels_stay_where_the_samples_have_them() -> None:
    counts = [700, 200, 100]
    shares = label_shares(counts)
    classes, chances = mixture(shares.tolist(), 20_000, 1)
    proper = chances * shares  # of a network that was trained on such labels
    found = estimate_prior(proper / proper.sum(axis=1, keepdims=True), shares, counts)
    assert found == pytest.approx(np.bincount(classes) / len(classes), abs=0.02)


def test_a_class_of_labels_alone_keeps_their_share() -> None:
    chances = np.tile([0.5, 0.5, 1e-9], (900, 1))
    found = estimate_prior(chances, [0.4, 0.4, 0.2], [40, 40, 20])
    assert found == pytest.approx([0.49, 0.49, 0.02], abs=1e-6)


def test_a_drawn_part_stands_for_all_samples() -> None:
    _, chances = mixture([0.8, 0.2], 1000, 2)
    counts = [50, 50]
    repeated = estimate_prior(np.repeat(chances, 3, axis=0), [0.5, 0.5], counts)
    assert estimate_prior(chances, [0.5, 0.5], counts, each=3) == pytest.approx(repeated)


def test_a_class_without_a_label_counts_as_half_of_one() -> None:
    assert label_shares([2, 0]) == pytest.approx([0.8, 0.2])


def test_distance_of_shares() -> None:
    assert distance([0.5, 0.5], [0.5, 0.5]) == 0
    assert distance([1, 0], [0, 1]) == 1
    assert distance([0.7, 0.2, 0.1], [0.5, 0.3, 0.2]) == pytest.approx(0.2)
