"""The temperature: of known answers, of too few, and of none that tell."""

import numpy as np
import pytest

from hytas.metrics import calibration
from hytas.temperature import LIMITS, fit_temperature, meet_accuracy


def drawn(count: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Logits that are `factor` times those that the classes were drawn by."""
    generator = np.random.default_rng(3)
    logits = generator.normal(0, 2, (count, 5))
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    targets = np.array([generator.choice(5, p=row) for row in chances])
    return factor * logits, targets


def error(logits: np.ndarray, targets: np.ndarray, temperature: float) -> float:
    chances = np.exp(logits / temperature)
    chances /= chances.sum(1, keepdims=True)
    found: float = calibration(targets, logits.argmax(1), chances)["ECE"]
    return found


@pytest.mark.parametrize("factor", [0.05, 0.5, 1.0, 8.0])
def test_the_temperature_undoes_a_factor(factor: float) -> None:
    logits, targets = drawn(4000, factor)
    temperature = fit_temperature(logits, targets)
    assert temperature == pytest.approx(factor, rel=0.1)
    assert error(logits, targets, temperature) < 0.03


def test_it_is_the_least_of_the_likelihood() -> None:
    logits, targets = drawn(300, 2.0)
    doubt = 0.5 / 301

    def loss(temperature: float) -> float:
        scaled = logits / temperature
        logs = scaled - np.log(np.exp(scaled).sum(1, keepdims=True))
        own = logs[np.arange(300), targets]
        return -float(((1 - doubt) * own + doubt / 4 * (logs.sum(1) - own)).mean())

    grid = np.geomspace(0.5, 8, 2000)
    best = grid[np.argmin([loss(each) for each in grid])]
    assert fit_temperature(logits, targets) == pytest.approx(best, rel=2e-3)


def test_pixels_without_an_error_prove_no_certainty() -> None:
    targets = np.arange(60) % 3
    logits = 4 * np.eye(3)[targets]
    rows = [logits[0] / fit_temperature(logits[:n], targets[:n]) for n in (12, 60)]
    sure = [float(np.exp(row[0]) / np.exp(row).sum()) for row in rows]
    assert 0.94 < sure[0] < sure[1] < 0.995


def test_odd_answers_have_a_temperature_within_limits() -> None:
    assert fit_temperature(np.zeros((20, 3)), np.arange(20) % 3) == 1.0
    assert fit_temperature(np.full((20, 3), 1e30), np.arange(20) % 3) == 1.0
    wrong = np.eye(3)[(np.arange(20) + 1) % 3]
    assert fit_temperature(wrong, np.arange(20) % 3) == 100.0
    assert fit_temperature(1e-9 * np.eye(3)[np.arange(20) % 3], np.arange(20) % 3) == 0.01


@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.95])
def test_the_mean_confidence_meets_an_accuracy(accuracy: float) -> None:
    logits, _ = drawn(1000, 3.0)
    temperature = meet_accuracy(logits, accuracy)
    chances = np.exp(logits / temperature)
    chances /= chances.sum(1, keepdims=True)
    assert chances.max(1).mean() == pytest.approx(accuracy, abs=1e-3)


def test_pixels_prove_no_certainty_and_less_than_chance_has_no_temperature() -> None:
    logits, _ = drawn(50, 1.0)
    assert meet_accuracy(logits, 1.0) == meet_accuracy(logits, 50.5 / 51)
    assert meet_accuracy(logits, 0.1) == pytest.approx(LIMITS[1])
