"""`hytas classify`: make the map of a scene with a model; imports no torch."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.classify_input import Source, Truth, open_source, read_truth, resampled
from hytas.cli.progress import bar, echo
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.data import Geo, Lookup, Rows
    from hytas.deploy import DeployedModel
    from hytas.deploy.journal import Journal
    from hytas.deploy.scene import MapRows


MARKS = ("unlabelled", "zero_is_a_class", "class_field", "labels_crs")
"""Options that say how to read the ground truth."""


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("scene", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("map.png"),
    show_default=True,
    help="The map: .tif or .hdr (georeferenced), .png, .svg or .pdf (a picture with legend), "
    ".npy, .npz or .mat. Of images: a table, .csv.",
)
@click.option(
    "--confidence",
    type=click.Path(path_type=Path),
    help="Also write the confidence, as .tif or .hdr.",
)
@click.option(
    "--labels", type=click.Path(path_type=Path), help="Ground truth, to measure the map's accuracy."
)
@click.option(
    "--confusion",
    type=click.Path(path_type=Path),
    help="Also draw the confusion matrix, as .svg, .png or .pdf; needs --labels.",
)
@click.option(
    "--ortho",
    is_flag=True,
    help="Write .tif and .hdr on the product's map grid, by its lookup table (EMIT).",
)
@click.option("--cube-key", help="Name of the cube's variable in its file.")
@click.option("--labels-key", help="Name of the label map's variable in its file.")
@options.class_field_option
@options.labels_crs_option
@options.unlabelled_option
@options.zero_option
@options.nodata_option
@click.option(
    "--resample",
    is_flag=True,
    help="Take the scene to the model's bands, by wavelength: for another sensor.",
)
@click.option("--resize", type=int, help="Side to bring images to, in pixels.")
@options.skip_unreadable_option
@options.smooth_option(("guided", "none"), "the model's card says which")
@click.option("--provider", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option(
    "--threads",
    type=click.IntRange(0, options.MOST_THREADS),
    default=0,
    help="CPU threads; 0 uses every core.",
)
@click.option(
    "--tile-rows",
    type=click.IntRange(min=1),
    help="Rows to classify at a time; the map is the same.",
)
@options.json_option
def classify(
    model: Path,
    scene: Path,
    out: Path,
    confidence: Path | None,
    labels: Path | None,
    confusion: Path | None,
    ortho: bool,
    cube_key: str | None,
    labels_key: str | None,
    nodata: float | None,
    resample: bool,
    smooth: str | None,
    provider: str,
    threads: int,
    tile_rows: int | None,
    as_json: bool,
    **further: Any,
) -> None:
    """Classify every pixel of SCENE, or a folder of images, with MODEL, an exported .onnx file."""
    from hytas.cli.classify_images import OF_IMAGES, classify_as_asked
    from hytas.data import check_mark
    from hytas.deploy import DeployedModel
    from hytas.deploy.journal import open_journal
    from hytas.deploy.outputs import check_apart, write_confidence
    from hytas.deploy.scene import chosen_smoothing

    if _takes_images(model):
        return classify_as_asked(model, scene, out, provider, threads, as_json, further)
    options.refuse_given(OF_IMAGES, "is for images, not for scenes")
    marks = {name: further[name] for name in MARKS}
    outputs = _check_outputs(out, confidence, confusion, labels, labels_key, marks)
    deployed = DeployedModel.load(model, provider, threads=threads)
    smooth = "none" if chosen_smoothing(deployed, smooth) is None else "guided"
    source = open_source(scene, cube_key, None if resample else deployed.card.bands)
    lookup = _lookup(source, scene, outputs) if ortho else None
    if resample:
        source, nodata = resampled(source, deployed, str(scene), nodata), None
    height, width, bands = source.cube.shape
    deployed.check_scene(bands, source.wavelengths, str(scene), size=(height, width))
    truth = None if labels is None else read_truth(labels, labels_key, source, deployed, **marks)
    read = {"the scene": source.files, "the labels": () if truth is None else truth.files}
    check_apart(outputs, {"the model": [model], **read})
    nodata = source.nodata if nodata is None else check_mark(nodata, source.cube.dtype)
    source = source._replace(nodata=nodata)
    identity = _identity(model, deployed, source, cube_key, smooth, resample)
    report: dict[str, Any] = {"model": str(model), "scene": str(scene), "out": str(out)}
    report["notes"] = _notes(deployed, source, outputs)
    with open_journal(out, identity, (height, width)) as journal:
        report["notes"] += _damage(journal)
        report |= _run(deployed, source, journal, tile_rows, smooth, as_json)
        result = journal.class_map()
        report |= _count(deployed, result)
        report |= _write(deployed, result, out, truth, confusion, (source.geo, lookup))
        if confidence is not None:
            write_confidence(confidence, result, deployed.card, source.geo, lookup)
            report["confidence"] = str(confidence)
    echo(json.dumps(report, indent=2) if as_json else _text(report))


def _takes_images(model: Path) -> bool:
    """Whether the card of a model says that it takes images."""
    from hytas.deploy.card import read_card
    from hytas.deploy.model_file import examine, read_model

    return read_card(examine(read_model(model), model), model).of_images


def _notes(deployed: "DeployedModel", source: Source, outputs: Mapping[str, Path]) -> list[str]:
    """Collect what is to be said of the model, the scene and the files, before work begins."""
    return [
        *deployed.notes,
        *source.notes,
        *_filled(source.cube, source.nodata, deployed),
        *_undrawn(outputs.values(), deployed),
    ]


def _identity(
    model: Path,
    deployed: "DeployedModel",
    source: Source,
    cube_key: str | None,
    smooth: str,
    resample: bool,
) -> dict[str, Any]:
    """Describe the inputs; an unfinished map is continued only if they are the same."""
    from hytas.deploy.journal import file_identity

    return {
        "model": {**file_identity(model), "sha256": deployed.checksum},
        "scene": [file_identity(file) for file in source.files],
        "nodata": source.nodata,
        "cube": cube_key,
        "provider": deployed.provider,
        "version": deployed.card.version,
        "smooth": smooth,
        **({"resample": True} if resample else {}),
    }


def _check_outputs(
    out: Path,
    confidence: Path | None,
    confusion: Path | None,
    labels: Path | None,
    labels_key: str | None,
    marks: Mapping[str, Any],
) -> dict[str, Path]:
    """Return the requested outputs; refuse now what could not be written after the work."""
    from hytas.deploy.outputs import check_output

    given = {"out": out, "confidence": confidence, "confusion": confusion}
    outputs = {argument: path for argument, path in given.items() if path is not None}
    for argument, path in outputs.items():
        check_output(path, argument)
    for name, value in {"confusion": confusion, "labels_key": labels_key, **marks}.items():
        if value not in (None, False) and labels is None:
            argument = name.replace("_", " ")
            raise InputError(f"{argument}: {value} needs the ground truth; name it with --labels")
    return outputs


def _lookup(source: Source, scene: Path, outputs: Mapping[str, Path]) -> "Lookup":
    """The lookup table of a scene; refuses --ortho where there is none, or nothing to place."""
    from hytas.deploy.outputs import RASTERS

    if not any(path.suffix.lower() in RASTERS for path in outputs.values()):
        raise InputError(f"ortho: --out {outputs['out']}: must end in {', '.join(RASTERS)}")
    if source.location is None or source.location.lookup is None:
        raise InputError(f"ortho: {scene} has no lookup table to a map grid, as EMIT products do")
    return source.location.lookup


def _filled(cube: "Rows", nodata: float | None, model: "DeployedModel") -> tuple[str, ...]:
    """Return a note if the cube has values that look like an undeclared no-data value."""
    import numpy as np

    from hytas.data import undeclared_in_rows

    known = model.card.nodata if nodata is None else nodata
    return undeclared_in_rows(cube, known, np.asarray(model.card.kept_bands))


def _undrawn(outputs: Iterable[Path], model: "DeployedModel") -> list[str]:
    """Return a note if a picture is written and its font lacks characters of the class names."""
    from hytas.pictures import PICTURES, font_note

    if not any(path.suffix.lower() in PICTURES for path in outputs):
        return []
    note = font_note(model.card.class_names)
    return [] if note is None else [note]


def _damage(journal: "Journal") -> list[str]:
    if not journal.damaged:
        return []
    return [
        f"an earlier run left damaged rows, from row {journal.done} on: these were classified again"
    ]


def _run(
    model: "DeployedModel",
    source: Source,
    journal: "Journal",
    tile_rows: int | None,
    smooth: str,
    hidden: bool,
) -> dict[str, Any]:
    """Classify the rows that the journal lacks, and return the figures of that work."""
    from hytas.deploy import classify_strips

    height, width, bands = source.cube.shape
    resumed, start = journal.done, time.perf_counter()
    strips = classify_strips(
        model,
        source.cube,
        nodata=source.nodata,
        tile_rows=tile_rows,
        smooth=smooth,
        first_row=resumed,
    )
    with bar("classifying", hidden, resumed) as advance:
        for strip in strips:
            journal.append(strip)
            advance(journal.done, height)
    seconds = time.perf_counter() - start
    return {
        "height": height,
        "width": width,
        "bands": bands,
        "resumed_at_row": resumed,
        "seconds": round(seconds, 3),
        "pixels_per_second": round((height - resumed) * width / seconds, 1),
        "provider": model.provider,
        "graph": model.card.graph,
        "precision": model.card.precision,
        "forced": model.card.forced,
        "smooth": smooth,
    }


def _write(
    model: "DeployedModel",
    result: "MapRows",
    out: Path,
    truth: Truth | None,
    confusion: Path | None,
    place: "tuple[Geo | None, Lookup | None]",
) -> dict[str, Any]:
    """Write the map and the confusion matrix; return the accuracy if there is a ground truth."""
    from hytas.deploy.accuracy import measure
    from hytas.deploy.outputs import Extras, write_map
    from hytas.pictures import draw_confusion

    extras = Extras(geo=place[0], lookup=place[1])
    if truth is None:
        write_map(out, result, model.card, extras)
        return {}
    try:
        accuracy = measure(result.labels[:], truth.scored, model.card)
    except InputError:  # all labels lie on pixels without data; the map is still right
        write_map(out, result, model.card, extras)
        raise
    title = f"classified, OA {accuracy['OA']:.4f}"
    write_map(out, result, model.card, replace(extras, truth=truth.all, title=title))
    if confusion is not None:
        draw_confusion(confusion, accuracy)
    return {"accuracy": {**accuracy, "scored": truth.what}}


def _count(model: "DeployedModel", result: "MapRows") -> dict[str, Any]:
    """Count the pixels of each class, block by block."""
    import numpy as np

    from hytas.deploy.scene import row_blocks

    names = dict(zip(model.card.class_ids, model.card.class_names, strict=True))
    counts = dict.fromkeys(model.card.class_names, 0)
    for _, block in row_blocks(result.labels):
        for number, found in zip(*np.unique(block, return_counts=True), strict=True):
            if int(number) in names:
                counts[names[int(number)]] += int(found)
    classified = sum(counts.values())
    height, width = result.labels.shape
    return {
        "classified": classified,
        "no_data": height * width - classified,
        "classes": counts,
    }


def _text(report: dict[str, Any]) -> str:
    total = max(1, report["classified"])
    lines = [
        f"scene     {report['scene']}: {report['height']} x {report['width']} pixels, "
        f"{report['bands']} bands",
        f"model     {report['model']}: {report['graph']} graph, {report['precision']}"
        + (", written with --force: it failed its accuracy check" if report["forced"] else "")
        + (", map smoothed by a guided filter" if report["smooth"] == "guided" else ""),
        f"speed     {report['pixels_per_second']:.0f} pixels per second on {report['provider']} "
        f"({report['seconds']:.1f} s)",
    ]
    lines += [f"note      {note}" for note in report["notes"]]
    if report["resumed_at_row"]:
        lines.append(f"resumed   at row {report['resumed_at_row']}, where the last run stopped")
    if report["no_data"]:
        lines.append(f"no data   {report['no_data']} pixels, written as 0")
    widest = max(len(name) for name in report["classes"])
    for index, (name, count) in enumerate(report["classes"].items()):
        head = "classes" if index == 0 else ""
        lines.append(f"{head:<9} {name:<{widest}} {count:>9} {100 * count / total:6.1f} %")
    if "accuracy" in report:
        found = report["accuracy"]
        lines.append(
            f"accuracy  OA {found['OA']:.4f}  AA {found['AA']:.4f}  kappa {found['kappa']:.4f} "
            f"on {found['pixels']} {found['scored']}"
        )
        if found["unknown"]:
            lines.append(
                f"          {found['unknown']} labelled pixels of classes unknown to the model"
            )
    lines.append(f"written   {report['out']}")
    return "\n".join(lines)
