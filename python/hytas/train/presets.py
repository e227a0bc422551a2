"""Named recipes that differ in augmentation: the race finds out which one a scene needs."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from hytas.errors import InputError
from hytas.train.recipe import Recipe, setting_name

PLAIN: dict[str, Any] = {
    "flips": False,
    "borders": 0.0,
    "band_noise": 0.0,
    "illumination": 0.0,
    "brightness": 0.0,
    "mixup": 0.0,
    "drop_path": 0.0,
    "dropout": 0.1,
}
# Mixing as AutoFormer and TF-TAS train, after DeiT (Touvron et al., ICML 2021).
IMAGES: dict[str, Any] = PLAIN | {
    "dropout": 0.0,
    "drop_path": 0.1,
    "label_smoothing": 0.1,
    "mixup": 0.8,
    "cutmix": 1.0,
    "shift": 0.0625,  # 2 pixels of 32; none of 8, where one pixel already harms
    "brightness": 0.1,
}
# Nothing but AdamW and a cosine: what the recipes of papers begin with.
BARE: dict[str, Any] = PLAIN | {
    "whitened": False,
    "dropout": 0.0,
    "ema_decay": 0.0,
    "most_epochs": None,
    "patience": 1.0,
}
# DeiT's recipe (Touvron et al., ICML 2021), whose code AutoFormer and S3 begin with: RandAugment
# `rand-m9-mstd0.5-inc1` in the place of colour jitter, three copies of an image in a batch, erasing
# of pixels, no clipping of gradients.
_DEIT: dict[str, Any] = BARE | {
    "batch_size": 1024,
    "learning_rate": 1e-3,
    "weight_decay": 0.05,
    "mixup": 0.8,
    "cutmix": 1.0,
    "label_smoothing": 0.1,
    "drop_path": 0.1,
    "crop": 0.08,
    "repeats": 3,
    "rand_augment": 2,
    "magnitude": 9.0,
    "erasing": 0.25,
    "mirror": True,
    "clip_norm": 1e9,
}
# Name -> settings that differ from `Recipe()`.
PRESETS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "unwhitened": PLAIN | {"whitened": False},
    "light": PLAIN | {"flips": True, "mixup": 0.2},
    "full": {},
    "images": IMAGES,
    "images-light": IMAGES
    | {"learning_rate": 3e-3, "label_smoothing": 0.0, "mixup": 0.2, "cutmix": 0.0},
    # HyTAS (ECCV 2024), retraining: 300 epochs, of which 5 warm up.
    "hytas-paper": BARE
    | {
        "epochs": 300,
        "batch_size": 320,
        "learning_rate": 3.1e-4,
        "weight_decay": 0.005,
        "warmup": 5 / 300,
        "drop_path": 0.1,  # of the released network
    },
    # AutoFormer (ICCV 2021) and TF-TAS: a rate of 5e-4 for each 512 images of a batch.
    "autoformer-paper": _DEIT | {"epochs": 500, "warmup": 20 / 500},
    # S3 (NeurIPS 2021) trains as DeiT does; the released code gives no other figures.
    "s3-paper": _DEIT | {"epochs": 300, "warmup": 20 / 300},
}
USUAL_PRESETS = ("full", "plain", "unwhitened")
"""Those that race. Without a race it is the first, which attention needs more than others do."""
USUAL_VALUE_PRESETS = ("plain", "unwhitened")
"""The same, for continuous targets, which brightness and noise would change."""
USUAL_IMAGE_PRESETS = ("images-light", "images")
"""The same, for images."""


def read_presets(text: str) -> tuple[list[str], list[str]]:
    """Return the presets that a text such as "plain,full,mixup=0.2" names, and its settings.

    Such a setting holds in every preset, though it is the usual one.

    Raises:
        InputError: it names one twice, or one that there is not, or an unknown setting.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    names = [part for part in parts if "=" not in part]
    for name in names:
        if name not in PRESETS:
            raise InputError("recipe", name, f"must be one of {', '.join(PRESETS)}")
        if names.count(name) > 1:
            raise InputError("recipe", name, "is named twice")
    settings = [part for part in parts if "=" in part]
    Recipe().changed(settings)
    return names, settings


def recipes_of(recipe: Recipe, text: str) -> dict[str, Recipe]:
    """Return preset -> its recipe.

    Settings in which `recipe` differs from the usual one hold in every preset. Of presets that are
    then the same, the first one stays.

    Args:
        text: of presets and settings (`read_presets`).
    """
    names, settings = read_presets(text)
    usual = Recipe()
    fixed = {setting_name(setting) for setting in settings}
    fixed |= {item.name for item in fields(usual) if not _equal(recipe, usual, item.name)}
    if fixed & {"steps", "most_epochs"}:  # a number of steps replaces one of epochs
        fixed.add("epochs")
    free = {name: {k: v for k, v in PRESETS[name].items() if k not in fixed} for name in names}
    return distinct({name: replace(recipe, **changes) for name, changes in free.items()})


def distinct(recipes: Mapping[str, Recipe]) -> dict[str, Recipe]:
    """Return recipes by name; of equal ones, the first."""
    recipes_by_name: dict[str, Recipe] = {}
    for name, recipe in recipes.items():
        if recipe not in recipes_by_name.values():
            recipes_by_name[name] = recipe
    return recipes_by_name


def usual_settings(recipe: Recipe, settings: Sequence[str]) -> list[str]:
    """Return those of the settings asked for that `recipe` has as usual, but a preset has not."""
    usual = Recipe()
    varied = {name for preset in PRESETS.values() for name in preset}
    return [
        setting
        for setting in settings
        if (name := setting_name(setting)) in varied and _equal(recipe, usual, name)
    ]


def _equal(one: Recipe, other: Recipe, name: str) -> bool:
    return bool(getattr(one, name) == getattr(other, name))
