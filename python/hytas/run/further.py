"""The configuration of a run that trains the model of another run further."""

from pathlib import Path
from typing import Any

from hytas.run.config import RunConfig
from hytas.run.folder import read_json
from hytas.run.start import Start
from hytas.train import Recipe

RECIPE = Recipe(whitened=False, learning_rate=3e-4, steps=400)
"""A third of the usual rate: the weights are good already, and labels are few."""
IMAGES = Recipe(whitened=False, learning_rate=1e-3, steps=400)
"""For other images, whose read-out begins anew."""


def further_config(start: str | Path) -> tuple[RunConfig, dict[str, Any]]:
    """Return what a further run keeps, and the architecture of the model.

    Args:
        start: the run that trained the model, or its model file.
    """
    begun = Start.open(start)
    card, folder = begun.card, begun.folder
    before, _ = folder.read_config()
    architecture = read_json(folder.architecture)
    preset = read_json(folder.recipe).get("preset") if folder.recipe.exists() else None
    if card.of_images:  # their size, channels, classes and scaling are those of the new images
        config = RunConfig(
            space=before.space,
            recipe=IMAGES,
            presets=preset or before.presets,
            start=str(folder.path.resolve()),
            plugins=before.plugins,
        )
        return config, architecture
    config = RunConfig(
        budget=before.budget,
        space=before.space,
        recipe=RECIPE,
        presets=preset or before.presets,
        patch_size=card.patch_size,
        band_group=card.band_group,
        scaling=begun.preprocessing.method,
        scale_by=card.scale_by,
        start=str(folder.path.resolve()),
        plugins=before.plugins,
    )
    return config, architecture
