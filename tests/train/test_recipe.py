"""A recipe is written as NAME=VALUE, and refuses what no training can use."""

import pytest

from hytas.train import Recipe
from refusals import refuses


def test_settings_change_what_they_name_and_nothing_else() -> None:
    usual = Recipe()
    changed = usual.changed(["mixup=0.7", "flips=no", "batch-size = 32"])
    assert changed == Recipe(mixup=0.7, flips=False, batch_size=32)
    assert usual == Recipe()


def test_a_number_of_steps_takes_the_place_of_epochs() -> None:
    changed = Recipe(epochs=60).changed(["steps=300"])
    assert changed == Recipe(steps=300, epochs=None, most_epochs=None)
    assert Recipe(epochs=60).changed(["mixup=0"]).epochs == 60
    assert Recipe().changed(["epochs=7"]).epochs == 7


@pytest.mark.parametrize(
    ("change", "value", "rule"),
    [
        ("mixup", "mixup", "must be NAME=VALUE"),
        ("mix=0.2", "mix", "must be one of .*; did you mean 'mixup'"),
        ("mixup=much", "mixup=much", "must be a number"),
        ("steps=1.5", "steps=1.5", "must be a whole number"),
        ("flips=maybe", "flips=maybe", "must be yes or no"),
        ("mixup=-1", "mixup=-1.0", "must be 0 to 1e\\+30"),
        ("mixup=1e39", "mixup=1e+39", "must be 0 to 1e\\+30"),
        ("mixup=nan", "mixup=nan", "must be 0 to 1e\\+30"),
        ("drop_path=1", "drop_path=1.0", "must be 0 or more and less than 1"),
        ("learning_rate=inf", "learning_rate=inf", "must be more than 0, at most 1e\\+30"),
        ("epochs=-1", "epochs=-1", "must be 0 or more"),
        ("patience=nan", "patience=nan", "must be 0 to 1"),
        ("class_weights=300", "class_weights=300.0", "must be 0 to 1"),
        ("steps=0", "steps=0", "must be 1 or more"),
        ("repeats=0", "repeats=0", "must be 1 or more"),
        ("most_epochs=0", "most_epochs=0", "must be 1 or more"),
    ],
)
def test_what_no_training_can_use_is_refused(change: str, value: str, rule: str) -> None:
    with refuses("recipe", value, rule):
        Recipe().changed([change])
