"""Presets of augmentation."""

import pytest

from hytas.errors import InputError
from hytas.train import PRESETS, USUAL_PRESETS, Recipe, preset_names, recipes_of


def test_a_preset_changes_what_was_not_asked_for() -> None:
    asked = Recipe(mixup=0.4, steps=70)
    recipes = recipes_of(asked, list(PRESETS))
    assert {recipe.mixup for recipe in recipes.values()} == {0.4}
    assert {recipe.steps for recipe in recipes.values()} == {70}
    assert not recipes["plain"].flips
    assert recipes["light"].flips
    assert recipes["full"] == asked


def test_equal_presets_race_once() -> None:
    pinned = dict.fromkeys(("borders", "band_noise", "illumination", "brightness"), 0.05)
    asked = Recipe(**pinned, flips=False, mixup=0.3, drop_path=0.2, dropout=0.3)
    assert list(recipes_of(asked, ["plain", "full"])) == ["plain"]
    assert list(recipes_of(Recipe(), ["full"])) == ["full"]


def test_names() -> None:
    assert tuple(preset_names(",".join(USUAL_PRESETS))) == USUAL_PRESETS
    assert preset_names(" light , full") == ["light", "full"]
    for text, rule in (("plane", "must be one of plain, light, full"), ("full,full", "twice")):
        with pytest.raises(InputError, match=rule):
            preset_names(text)
