"""Presets of augmentation."""

from dataclasses import replace

import pytest

from hytas.train import PRESETS, USUAL_PRESETS, Recipe, recipes_of


def test_a_preset_changes_what_was_not_asked_for() -> None:
    asked = Recipe(mixup=0.4, steps=70)
    recipes = recipes_of(asked, ",".join(PRESETS))
    assert {recipe.mixup for recipe in recipes.values()} == {0.4}
    assert {recipe.steps for recipe in recipes.values()} == {70}
    assert not recipes["plain"].flips
    assert recipes["light"].flips
    assert recipes["full"] == asked
    assert replace(recipes["unwhitened"], whitened=True) == recipes["plain"]
    assert not recipes["unwhitened"].whitened


def test_equal_presets_race_once() -> None:
    pinned = dict.fromkeys(("borders", "band_noise", "illumination", "brightness"), 0.05)
    asked = Recipe(**pinned, flips=False, mixup=0.3, drop_path=0.2, dropout=0.3)
    assert list(recipes_of(asked, "plain,full")) == ["plain"]
    assert list(recipes_of(Recipe(), "full")) == ["full"]
    kept = recipes_of(Recipe(whitened=False), ",".join(USUAL_PRESETS))
    assert list(kept) == ["full", "plain"], "a model that is trained further is not whitened anyway"


def test_a_setting_among_the_presets_holds_in_all_though_it_is_the_usual_one() -> None:
    asked = Recipe()
    assert recipes_of(asked, "full,plain")["plain"].mixup == 0.0
    recipes = recipes_of(asked, "full,plain,mixup=0.2")
    assert [recipe.mixup for recipe in recipes.values()] == [0.2, 0.2]
    assert not recipes["plain"].flips


@pytest.mark.parametrize("steps", [40, Recipe.steps])
def test_a_number_of_steps_replaces_the_epochs_of_a_paper(steps: int) -> None:
    recipe = recipes_of(Recipe().changed([f"steps={steps}"]), "autoformer-paper")
    found = recipe["autoformer-paper"]
    assert (found.epochs, found.steps, found.erasing) == (None, steps, 0.25)
    assert recipes_of(Recipe(), "autoformer-paper")["autoformer-paper"].epochs == 500
