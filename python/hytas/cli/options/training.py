"""Options of trainings, and the recipe that they ask for."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hytas.cli.options.common import Command, Renamed, together
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.train import Recipe


effort_option = click.option(
    "--effort",
    type=click.Choice(["quick", "normal", "thorough"]),
    help="How long to search and train; other options of length win over it. On two CPU cores and "
    "a scene like Indian Pines quick takes 2 minutes, normal 5 to 15, thorough an hour.  "
    "[default: normal; quick for the synthetic scene]",
)


def smooth_option(
    choices: tuple[str, ...], default: str, value: str | None = None
) -> Callable[[Command], Command]:
    """--smooth, with these choices; `default` says who chooses where it is not given."""
    return click.option(
        "--smooth",
        type=click.Choice(choices),
        default=value,
        help="Smooth class probabilities by a guided filter, which removes speckle from the map; "
        f"or not (none).  [default: {default}]",
    )


def recipe_option(help_text: str) -> Callable[[Command], Command]:
    """--recipe, which may be repeated: settings and presets, for `recipe_of`."""
    return click.option("--recipe", multiple=True, metavar="NAME=VALUE", help=help_text)


training_options = together(
    click.option(
        "--epochs",
        "--retrain-epochs",
        "epochs",
        cls=Renamed,
        type=int,
        help="Epochs of the final training; for a search, 0 stops before it.  [default: "
        "1500 steps or by --effort, and at most 200 epochs]",
    ),
    click.option(
        "--final-training-on",
        "--retrain-on",
        "final_training_on",
        cls=Renamed,
        type=click.Choice(["all", "train"]),
        default="all",
        show_default=True,
        help="Pixels of the final training: all labelled pixels that are not for testing (all), or "
        "the training pixels only (train). With train, validation pixels choose the best epoch.",
    ),
    click.option(
        "--seeds",
        type=int,
        default=1,
        show_default=True,
        help="Number of final trainings, for mean and standard deviation. The first is exported.",
    ),
    recipe_option(
        "Setting of the race and the final training, such as mixup=0.4 or class_weights=1; "
        "or a preset of augmentation: plain, unwhitened (plain, with pixels not whitened), "
        "light, full, images or images-light. Repeatable: of several presets, the race finds "
        "the best.  [default: full, plain and unwhitened; for images images-light and images; "
        "without a race, the first]"
    ),
    smooth_option(("auto", "guided", "none"), "by validation pixels", "auto"),
    click.option(
        "--self-training",
        type=click.Choice(["auto", "none"]),
        default="auto",
        show_default=True,
        help="Train the winner further with pixels of the scene that have no label, as validation "
        "pixels decide (auto); or not (none). No label of a test pixel is read.",
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
        raise InputError(f"epochs {epochs}: must be 0 or more")
    names = [setting.partition("=")[0].strip() for setting in settings]
    for name in ("steps", "epochs"):
        if name in names:
            raise InputError(
                f"epochs {epochs}: --recipe {name}=... also sets the length; give one of them"
            )
    return recipe.with_epochs(epochs), presets
