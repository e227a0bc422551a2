"""Options of trainings, and the recipe that they ask for."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hytas.cli.options.common import Command, Option, together
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.train import Recipe


def recipe_option(help_text: str) -> Callable[[Command], Command]:
    """Return --recipe, which may be repeated: settings and presets, for `recipe_of`."""
    return click.option(
        "--recipe",
        cls=Option,
        panel="Training",
        multiple=True,
        metavar="NAME=VALUE",
        help=help_text,
    )


training_options = together(
    click.option(
        "--epochs",
        cls=Option,
        panel="Training",
        type=int,
        help="Epochs of the final training; for a search, 0 stops before it.  [default: "
        "1500 steps or by --effort, and at most 200 epochs]",
    ),
    recipe_option(
        "Setting of the race and the final training, such as mixup=0.4 or class_weights=1; "
        "or a preset of augmentation: plain, unwhitened (plain, with pixels not whitened), "
        "light, full, images or images-light. Repeatable: of several presets, the race finds "
        "the best.  [default: full, plain and unwhitened; for images images-light and images; "
        "without a race, the first]"
    ),
)


def recipe_of(
    usual: "Recipe", presets: str, settings: Sequence[str], epochs: int | None
) -> tuple["Recipe", str]:
    """Return the recipe `usual` and the presets, changed by the values of --recipe and --epochs.

    Raises:
        InputError: both say how long to train, or a setting is not known.
    """
    from hytas.train import PRESETS, usual_settings

    named = [setting.strip() for setting in settings if setting.strip() in PRESETS]
    presets = ",".join(dict.fromkeys(named)) or presets
    settings = [setting for setting in settings if setting.strip() not in PRESETS]
    recipe = usual.changed(settings)
    parts = [*presets.split(","), *usual_settings(recipe, settings)]
    presets = ",".join(dict.fromkeys(filter(None, parts)))
    if epochs is None:
        return recipe, presets
    if epochs < 0:
        raise InputError("epochs", epochs, "must be 0 or more")
    names = [setting.partition("=")[0].strip() for setting in settings]
    for name in ("steps", "epochs"):
        if name in names:
            rule = f"`recipe` {name}=... also sets the length"
            raise InputError("epochs", epochs, rule, "give one of them")
    return recipe.with_epochs(epochs), presets
