"""What a run's report shows of the pixels of its scene."""

import numpy as np
from numpy.typing import NDArray

from hytas.data import Scene, Split
from hytas.deploy import ClassMap, DeployedModel, classify_whole
from hytas.model_card import ModelCard
from hytas.report import ROLES, ReportPixels, view_pixels
from hytas.run.progress import Report


def classify_parts(model: DeployedModel, scene: Scene, report: Report) -> ClassMap:
    """Return the map (H, W) of a scene whose parts are classified one by one.

    A scene that was scaled by itself is not scaled again.
    """
    shape = scene.labels.shape
    result = ClassMap(np.zeros(shape, np.int32), np.zeros(shape, np.float32))
    done, total = 0, sum(part.height * part.width for part in scene.parts)
    for part in scene.parts:

        def advance(rows: int, _: int, before: int = done, width: int = part.width) -> None:
            report.pixels("classify", before + rows * width, total)

        classified = classify_whole(
            model, scene.cube[part.window], nodata=scene.nodata, progress=advance, scaled=True
        )
        result.labels[part.window] = classified.labels
        result.confidence[part.window] = classified.confidence
        done += part.height * part.width
    return result


def report_pixels(
    scene: Scene, result: ClassMap, card: ModelCard, split: Split | None
) -> ReportPixels:
    """Return what a report shows of a classified scene.

    Args:
        split: of the run, or None where it is not known.
    """
    index = np.zeros(result.labels.shape, np.int32)
    for number, own in enumerate(card.class_ids, 1):
        index[result.labels == own] = number
    return view_pixels(
        scene.cube,
        index,
        result.confidence,
        scene.labels,
        _roles(scene, split),
        kept=np.asarray(card.kept_bands, np.int64),
        wavelengths=scene.wavelengths,
        palette=np.asarray(card.palette, np.uint8),
    )


def _roles(scene: Scene, split: Split | None) -> NDArray[np.uint8]:
    """What each pixel (H, W) is in the split: indices of `ROLES`."""
    roles = np.where(scene.labels > 0, len(ROLES) - 1, 0).astype(np.uint8)
    if split is not None:
        for number, pixels in enumerate((split.train, split.validation, split.reported), 1):
            roles.ravel()[pixels] = number
    return roles
