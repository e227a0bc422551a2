"""`hytas classify MODEL FOLDER`: the classes of images, as a table."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hytas.cli.classify_input import read_spectra
from hytas.cli.options import is_given, refuse_given
from hytas.cli.progress import bar, echo, finding_report
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.data.samples import Read
    from hytas.deploy import DeployedModel

SUFFIX = ".csv"
OF_IMAGES = ("resize", "skip_unreadable")
"""Options that are for images alone."""
OURS = (*OF_IMAGES, "model", "scene", "out", "provider", "threads", "plugins", "as_json")
"""Parameters that are for images, too."""


class Images(NamedTuple):
    """Images to classify.

    Attributes:
        labels: true class of each; None if they are not known.
    """

    read: "Read"
    files: Sequence[str]
    labels: Sequence[str] | None
    notes: Sequence[str]


def classify_folder(
    model: "DeployedModel", source: Path, as_json: bool, chosen: Mapping[str, Any]
) -> None:
    """Classify images with a model of images, and write their classes to a CSV file.

    Args:
        source: a folder with images at any depth, a .npz file with images, or a set by name.
        chosen: values of the other options, by name.
    """
    from hytas.deploy.images import classify_images, write_predictions

    out = _out_for("images", chosen, OURS)
    if not out.absolute().parent.is_dir():
        raise InputError("out", out, f"no such folder: {out.absolute().parent}")
    images = _images(model, source, *(chosen[name] for name in OF_IMAGES))
    with bar("classifying", as_json) as advance:
        probabilities = classify_images(model, images.read, len(images.files), advance)
    write_predictions(out, model.card, {"file": images.files}, probabilities, images.labels)
    names = [model.card.class_names[number] for number in probabilities.argmax(axis=1)]
    report = _report(model, "images", len(names), names, images.notes, out)
    if images.labels is not None:
        report["accuracy"] = sum(map(str.__eq__, names, images.labels)) / len(names)
    echo(json.dumps(report, indent=2) if as_json else _text(report, "images"))


def classify_table(
    model: "DeployedModel", table: Path, as_json: bool, chosen: Mapping[str, Any]
) -> None:
    """Classify the rows of a table of spectra, and write their classes to a CSV file."""
    import numpy as np

    from hytas.data import valid_mask
    from hytas.deploy.images import write_predictions
    from hytas.deploy.scene import classify_whole
    from hytas.deploy.value_range import wavelength_doubt

    out = _out_for("tables", chosen, (*OURS, "strict", "nodata"))
    card, nodata = model.card, chosen["nodata"]
    rows, doubt = read_spectra(model, table, out, nodata)
    if chosen["strict"] and (refused := wavelength_doubt(model, rows.wavelengths) or doubt):
        raise InputError("strict", rule=f"{table} has {refused}")
    no_data = card.nodata if nodata is None else nodata
    valid = np.flatnonzero(valid_mask(rows.values[:, None], no_data, card.kept_bands))
    probabilities = np.zeros((len(rows.values), len(card.class_ids)), np.float32)
    if len(valid):
        # One row of pixels, so that many are classified together.
        line = classify_whole(model, rows.values[valid][None], nodata=nodata, smooth="none")
        best = np.argmax(line.labels[0][:, None] == card.class_ids, axis=1)
        probabilities[valid, best] = line.confidence[0]
    count = len(probabilities)
    write_predictions(out, card, {"row": [*map(str, range(1, count + 1))]}, probabilities)
    names = [card.class_names[number] for number in probabilities[valid].argmax(axis=1)]
    own = finding_report(rows.findings)
    notes = own["notes"] + ([] if doubt is None else [f"the table has {doubt}"])
    report = _report(model, "spectra", count, names, notes, out)
    report |= {"findings": own["findings"], "no_data": count - len(valid)}
    echo(json.dumps(report, indent=2) if as_json else _text(report, "spectra"))


def _out_for(what: str, chosen: Mapping[str, Any], taken: Sequence[str]) -> Path:
    names = click.get_current_context().params
    refuse_given([name for name in names if name not in taken], f"is for scenes, not for {what}")
    out = chosen["out"] if is_given("out") else Path("predictions.csv")
    if out.suffix.lower() != SUFFIX:
        raise InputError("out", out, f"must end in {SUFFIX}: the input is {what}")
    return Path(out)


def _report(
    model: "DeployedModel",
    unit: str,
    count: int,
    names: Sequence[str],
    notes: Sequence[str],
    out: Path,
) -> dict[str, Any]:
    counts = Counter(names)
    return {
        "model": str(model.path),
        unit: count,
        "classes": {name: counts[name] for name in model.card.class_names},
        "notes": list(notes),
        "out": str(out),
    }


def _text(report: Mapping[str, Any], unit: str) -> str:
    lines = [f"model     {report['model']}: {report[unit]} {unit}"]
    lines += [f"note      {note}" for note in report["notes"]]
    if report.get("no_data"):
        lines.append(f"no data   {report['no_data']} rows, whose class is left empty")
    lines += class_lines(report["classes"])
    if "accuracy" in report:
        lines.append(f"accuracy  OA {report['accuracy']:.4f}, by the names of folders or labels")
    return "\n".join([*lines, f"written   {report['out']}"])


def class_lines(classes: Mapping[str, int]) -> list[str]:
    """Return the number and share of the samples of each class, as lines."""
    total, widest = max(1, sum(classes.values())), max(map(len, classes))
    return [
        f"{'' if place else 'classes':<9} {name:<{widest}} {count:>9} {100 * count / total:6.1f} %"
        for place, (name, count) in enumerate(classes.items())
    ]


def _images(
    model: "DeployedModel", source: Path, resize: int | None, skip_unreadable: bool
) -> Images:
    from hytas.data import holds_images, load_images
    from hytas.deploy.images import check_images

    if source.is_dir():
        return _folder(model, source, resize, skip_unreadable)
    if not holds_images(source):
        raise InputError("scene", source, f"holds no images, and {model.path} takes images")
    folder = load_images(source, resize=resize)
    check_images(model, str(source), (folder.side, folder.side, folder.channels))
    labels = [folder.class_names[target - 1] for target in folder.labels]
    labelled = set(labels) <= set(model.card.class_names)
    notes = [*folder.notes, *_type_notes(model, [str(folder.dtype)] * len(folder.files))]
    return Images(folder.read, folder.files, labels if labelled else None, notes)


def _folder(model: "DeployedModel", folder: Path, resize: int | None, skip: bool) -> Images:
    from hytas.data.images.decode import IMAGE_SUFFIXES, check_side
    from hytas.data.images.folder import FromFiles, ImageHeader, facts_of, images_of, readable
    from hytas.deploy.images import check_images

    check_side(resize)
    paths = images_of(folder)
    if not paths:
        raise InputError("scene", folder, f"holds no images ({', '.join(IMAGE_SUFFIXES)})")
    reader = FromFiles(paths, resize, model.card.bands == 3)
    results = [facts_of(path, reader.one) for path in paths]
    numbers, notes = readable(folder, paths, results, skip, "scene")
    kept = [paths[number] for number in numbers]
    facts = [one for one in results if isinstance(one, ImageHeader)]
    for path, one in zip(kept, facts, strict=True):
        check_images(model, str(path), one.shape)
    parents = [path.parent.name for path in kept]
    labelled = set(parents) <= set(model.card.class_names)
    return Images(
        replace(reader, paths=kept),
        [path.relative_to(folder).as_posix() for path in kept],
        parents if labelled else None,
        [*notes, *_type_notes(model, [str(one.dtype) for one in facts])],
    )


def _type_notes(model: "DeployedModel", types: Sequence[str]) -> list[str]:
    """Say how many images are of another type than those that the model was trained on.

    Raw values of another type are usually of another scale: 8-bit images end at 255.
    """
    others = Counter(types)
    del others[model.card.dtype]
    if not others:
        return []
    return [
        f"{others.total()} of {len(types)} images hold {' and '.join(sorted(others))} values, and "
        f"the model was trained on {model.card.dtype}: if their scale is another one too, their "
        "classes are wrong"
    ]
