"""The stages after the final training: checked model files, figures and the map."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hytas.data import ImageSet, Scene, Split
from hytas.deploy import ClassMap, DeployedModel, classify_whole
from hytas.deploy.images import classify_images, write_predictions
from hytas.deploy.outputs import Extras, write_map
from hytas.deploy.smoothing import around, smooth_pixels
from hytas.export import (
    FORMATS,
    INPUTS,
    Evidence,
    Parity,
    check_formats,
    check_parity,
    export_checked,
    export_formats,
    target_format,
)
from hytas.files import move
from hytas.model_card import ModelCard
from hytas.references import figures_by_scene
from hytas.report import ROLES, ReportPixels, choose_samples, view_pixels
from hytas.run.context import Run, RunContext
from hytas.run.folder import RunFolder, write_json
from hytas.run.prepared import PreparedData
from hytas.run.progress import Report
from hytas.run.weights import DECISIONS, TrainedModel, load_weights

PARITY_BATCH = 64
MAIN_FORMATS = ("onnx", "torchscript")  # every run writes these


def export_stage(run: Run) -> None:
    """Export the trained model, compare its files with torch on every test pixel, and measure it.

    Raises:
        ExportError: a file gives other results than torch.
    """
    model, data = load_weights(run.folder.weights), run.context.data
    parity = _export(model, data, run.folder, run.report)
    metrics = _metrics(run.context, model, parity)
    metrics |= _smoothed(model, data, run.folder.onnx, run.report)
    if run.context.config.target is not None:
        metrics["target"] = _as_target(run.context.config.target, data, run.folder, run.report)
    metrics |= run.context.origin.figures(data.scene, data.split.reported, run.folder.onnx)
    write_json(run.folder.tested, metrics)


def _export(model: TrainedModel, data: PreparedData, folder: RunFolder, report: Report) -> Parity:
    """Write the files of `MAIN_FORMATS` after their check."""
    sensor_model = model.sensor_model()
    batches = _batches(data, model.card.patch_size, report)
    # A file gets its final name only after it has passed.
    staging = folder.path / ".export"
    staging.mkdir(exist_ok=True)
    try:
        files = export_formats(sensor_model, staging, model.card, MAIN_FORMATS)
        parity = check_parity(sensor_model, files, batches, data.task)
        for name, file in files.items():
            move(file, folder.path / FORMATS[name].file)
    finally:
        for file in staging.iterdir():
            file.unlink()
        staging.rmdir()
    return parity


def _metrics(context: RunContext, model: TrainedModel, parity: Parity) -> dict[str, Any]:
    """Return the accuracy of the ONNX model on the test pixels, and facts on its training."""
    split, card = context.data.split, model.card
    at = np.searchsorted(split.reported, split.test)
    data = context.data
    truth, predicted = data.targets(split.test), parity.predicted[at]
    test = data.task.report(
        truth, predicted, card.class_names, parity.confidence[at], data.groups(split.test)
    )
    test |= data.task.test_figures(card, truth, predicted, parity.uncalibrated[at])
    training = dict(model.training)
    trained, _ = context.final_pixels
    return {
        "unit": context.data.unit,
        "test": test,
        "scenes": figures_by_scene(
            context.data.scene, split.reported, parity.predicted, parity.confidence
        ),
        **{name: training.pop(name, None) for name in DECISIONS},
        "parity": parity.to_dict(),
        "split": {
            "kind": split.kind,
            "train": len(split.train),
            "validation": len(split.validation),
            "test": len(split.test),
            "apart": len(split.test_only),
            "overlap": split.overlap,
            "overlap_of": split.patch_size,
            "overlap_of_model": context.data.overlap(card.architecture, trained),
            "notes": list(split.notes),
        },
        "costs": context.costs(card.architecture),
        "seed": context.config.seed,
        "device": str(context.device),
        "training": training,
    }


def _as_target(
    target: str, data: PreparedData, folder: RunFolder, report: Report
) -> dict[str, Any]:
    """Write the file of the target; return its figures on the test pixels.

    A file that fails its check is written nevertheless: it is what the run was asked for.
    """
    name = target_format(target)
    figures = dict(further_formats(data, folder, [name], force=True)[name])
    figures |= {"name": target, "format": name, "file": Path(figures["file"]).name}
    figure = data.task.figure
    line = (
        f"as {target}: {figures['file']} has {figure} {figures[figure]:.4f} on the test pixels, "
        f"and {figures[f'{figure}_torch']:.4f} before conversion"
    )
    failed = "; it fails its check" if "forced_past" in figures else ""
    report.notice(line + failed)
    return figures


def _smoothed(
    model: TrainedModel, prepared: PreparedData, onnx: Path, report: Report
) -> dict[str, Any]:
    """Accuracy of the ONNX model on the test pixels with smoothing, whether it is chosen or not.

    Returns:
        "smoothed": an accuracy report; None for a model without a guide.
        "scenes_smoothed": the same of each scene.
    """
    card = model.card
    deployed = DeployedModel.load(onnx, "cpu")
    if (smoothing := deployed.smoothing) is None:
        return {"smoothed": None}
    data = prepared.as_scene
    test = data.split.reported[data.valid.flat[data.split.reported]]
    near = around(test, data.valid, 2 * smoothing.radius)
    read = data.scene.reader(card.patch_size)
    chances = np.empty((len(near), len(card.class_ids)), np.float32)
    for start in range(0, len(near), PARITY_BATCH):
        part = slice(start, start + PARITY_BATCH)
        chances[part] = deployed.predict_patches(read(near[part]))
        report.pixels("smooth", min(part.stop, len(near)), len(near))
    smoothed = smooth_pixels(smoothing, data.scene.cube, data.preprocessing, near, chances)
    smoothed = smoothed[np.searchsorted(near, test)]
    inside = np.isin(test, data.split.test)
    truth, chosen = data.targets(test[inside]), smoothed[inside]
    figures = data.task.report(truth, chosen.argmax(axis=1), card.class_names, chosen)
    scenes = figures_by_scene(data.scene, test, smoothed.argmax(axis=1), smoothed)
    return {"smoothed": figures, "scenes_smoothed": scenes}


def map_stage(run: Run) -> None:
    """Classify the whole scene with the ONNX file, and draw it next to the ground truth."""
    torch.cuda.empty_cache()  # free the memory that torch keeps, for onnxruntime
    deployed = DeployedModel.load(run.folder.onnx)
    scene = run.context.data.as_scene.scene
    result = _classify_parts(deployed, scene, run.report)
    ids = np.concatenate([[0], np.asarray(scene.class_ids)]).astype(np.int32)
    write_map(run.folder.map, result, deployed.card, Extras(ids[scene.labels]))
    _report_pixels(scene, result, deployed.card, run.context.data.split).save(run.folder.pixels)


def _classify_parts(model: DeployedModel, scene: Scene, report: Report) -> ClassMap:
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


def _report_pixels(
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


def predictions_stage(run: Run) -> None:
    """Classify the test samples with the ONNX file: write a table, and what the report shows."""
    data = run.context.data
    samples, test = data.scene, data.split.test
    deployed = DeployedModel.load(run.folder.onnx)
    reader = samples.reader(deployed.card.patch_size)

    def read(numbers: NDArray[np.int64]) -> NDArray[Any]:
        return reader(test[numbers])

    outputs = classify_images(
        deployed, read, len(test), lambda done, total: run.report.pixels("classify", done, total)
    )
    targets, task = samples.targets(test), data.task
    labels = task.labels(targets, samples.class_names)
    rows, columns = np.divmod(test, samples.width)
    named = {"row": [str(number + 1) for number in rows]}
    if isinstance(samples, ImageSet):
        named = {"file": [samples.files[number] for number in test]}
    elif samples.has_map:  # as in a CSV of points
        named = {"row": [*map(str, rows)], "column": [*map(str, columns)]}
    write_predictions(run.folder.predictions, deployed.card, named, outputs, labels)
    if isinstance(samples, ImageSet):
        choose_samples(read, targets, outputs, named["file"]).save(run.folder.samples)


def further_formats(
    data: PreparedData,
    folder: RunFolder,
    formats: Sequence[str],
    force: bool,
    taken: str = INPUTS[0],
) -> dict[str, dict[str, Any]]:
    """Export further formats; each is checked on the test pixels before it is kept.

    Files that take float32 have names of their own.

    Returns:
        Format -> its file, size and the figures of its check.

    Raises:
        ExportError: formats are refused; all others are written.
    """
    main = MAIN_FORMATS if taken == INPUTS[0] else ()
    names = [name for name in check_formats(formats, taken) if name not in main]
    model = load_weights(folder.weights)
    evidence = Evidence(
        model.sensor_model(),
        data.scene.reader(model.card.patch_size),
        data.split.test,
        data.targets(data.split.test),
        data.task,
    )
    return export_checked(folder.path, model.card, names, evidence, force=force, taken=taken)


def _batches(data: PreparedData, patch_size: int, report: Report) -> Iterator[NDArray[Any]]:
    """Yield the raw patches of the test pixels, and of those in scenes that are only tested on."""
    pixels = data.split.reported
    read = data.scene.reader(patch_size)
    for start in range(0, len(pixels), PARITY_BATCH):
        chosen = pixels[start : start + PARITY_BATCH]
        yield read(chosen)
        report.pixels("check", start + len(chosen), len(pixels))
