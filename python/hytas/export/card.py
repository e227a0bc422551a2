"""Make the card of exported files from a scene and a trained model."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from hytas.data import ImageSet, LabelledData, Preprocessing
from hytas.model_card import IMAGE, ModelCard
from hytas.models import patch_size_of
from hytas.spaces.shape import Shape


def describe(
    scene: LabelledData,
    preprocessing: Preprocessing,
    architecture: Mapping[str, Any],
    shape: Shape,
    temperature: float = 1.0,
    smoothing: Mapping[str, Any] | None = None,
) -> ModelCard:
    """Return the card of a model of `architecture` that was trained on a scene or on images."""
    wavelengths = scene.wavelengths
    fwhm = scene.fwhm
    return ModelCard(
        class_names=tuple(scene.class_names),
        class_ids=tuple(int(number) for number in scene.class_ids),
        patch_size=patch_size_of(architecture, shape),
        bands=scene.bands,
        dtype=scene.dtype.newbyteorder("=").name,
        preprocessing=preprocessing.to_dict(),
        architecture=dict(architecture),
        band_group=shape.band_group,
        palette=tuple((int(r), int(g), int(b)) for r, g, b in scene.palette),
        wavelengths=None if wavelengths is None else tuple(float(w) for w in wavelengths),
        version=version("hytas"),
        graph=IMAGE if isinstance(scene, ImageSet) else "patch",
        temperature=temperature,
        smoothing=smoothing,
        fwhm=None if fwhm is None else tuple(float(width) for width in fwhm),
        pixel_metres=scene.pixel_metres,
    )
