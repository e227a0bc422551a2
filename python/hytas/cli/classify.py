"""`hytas classify`: make the map of a scene with a model; imports no torch."""

import json
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hytas.cli import options
from hytas.cli.classify_input import ClassifyInput, Truth, open_for, read_truth
from hytas.cli.progress import bar, echo, finding_report
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.data.findings import Finding
    from hytas.data.location import Lookup
    from hytas.deploy import DeployedModel
    from hytas.deploy.journal import Journal
    from hytas.deploy.outputs import Extras
    from hytas.deploy.scene import ClassMap


_SHARES = "assumes the class shares around its labels; `hytas inspect` lists them"
MARKS = ("unlabelled", "zero_is_a_class", "class_names", "class_field", "labels_crs")
"""Options that say how to read the ground truth."""


@click.command()
@options.model_argument
@options.scene_argument
@options.path_option(
    "--out",
    default=Path("map.png"),
    show_default=True,
    help="The map: .tif or .hdr (georeferenced), .png, .svg or .pdf (a picture with legend), "
    ".npy, .npz or .mat. Of images: a table, .csv.",
)
@options.path_option("--confidence", help="Also write the confidence, as .tif or .hdr.")
@options.path_option(
    "--probabilities",
    help="Also write the probability of each class as a band, as .tif or .hdr; classifies again.",
)
@options.path_option("--labels", help="Ground truth, to measure the map's accuracy.")
@click.option(
    "--ortho",
    is_flag=True,
    help="Write .tif and .hdr on the product's map grid, by its lookup table (EMIT).",
)
@options.setting_options(
    more=("cube_key", "axes", "labels_key", "class_field", "labels_crs", "unlabelled")
)
@options.setting_options(more=("zero_is_a_class", "class_names", "nodata"))
@options.resample_option
@options.setting_options(more=("resize", "skip_unreadable"))
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse a scene whose values are far from those of the training, or whose bands cannot be "
    "compared with the model's because it has no wavelengths.",
)
@options.setting_option(
    "smooth",
    type=click.Choice(["guided", "none"]),
    default=None,
    show_default=False,
    help="Smooth class probabilities by a guided filter, which removes speckle from the map; or "
    "not (none).",
    usual="the model's card says which",
)
@click.option(
    "--unknown",
    type=float,
    help="Give class 0 to ground that is of no class of the model. The share of its held-out "
    "pixels, 0.001 to 0.5, that would get it as well, such as .05.",
)
@options.provider_option
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
@options.untrusted_option
@options.plugin_option(expose_value=False)
@options.json_option
def classify(
    model: Path, scene: Path, provider: str, threads: int, as_json: bool, **chosen: Any
) -> None:
    """Classify every pixel of SCENE, a table of spectra, or a folder of images, with MODEL.

    MODEL is an exported .onnx file, or the folder of a run.
    """
    from hytas.cli.classify_images import OF_IMAGES, classify_folder, classify_table
    from hytas.data.spectra.load import is_table
    from hytas.deploy import DeployedModel

    deployed = DeployedModel.load(model, provider, threads=threads)
    if deployed.card.of_images:
        return classify_folder(deployed, scene, as_json, chosen)
    options.refuse_given(OF_IMAGES, "is for images, not for scenes")
    if deployed.card.patch_size == 1 and is_table(scene, deployed.card.bands):
        return classify_table(deployed, scene, as_json, chosen)
    with stopped_by_sigterm():
        report = _classify(deployed, scene, as_json, chosen)
    echo(json.dumps(report, indent=2) if as_json else _text(report))


class _Inputs(NamedTuple):
    """The checked inputs and settings of a map."""

    source: ClassifyInput
    truth: Truth | None
    outputs: dict[str, Path]
    extras: "Extras"
    smooth: str


def _opened(deployed: "DeployedModel", scene: Path, chosen: Mapping[str, Any]) -> _Inputs:
    """Open a scene and its labels; refuse now what would fail after the work."""
    from hytas.deploy.outputs import Extras, check_apart, check_place
    from hytas.deploy.scene import chosen_smoothing, unknown_ground

    marks = {name: chosen[name] for name in MARKS}
    labels, labels_key = chosen["labels"], chosen["labels_key"]
    outputs = _checked_outputs(
        {name: chosen[name] for name in ("out", "confidence", "probabilities")},
        labels,
        {"labels_key": labels_key, **marks},
    )
    smooth = "none" if chosen_smoothing(deployed, chosen["smooth"]) is None else "guided"
    unknown_ground(deployed, chosen["unknown"])
    source = open_for(deployed, scene, chosen)
    lookup = _lookup(source, scene, outputs) if chosen["ortho"] else None
    extras = Extras(grid=source.grid, lookup=lookup)
    for argument, path in outputs.items():
        check_place(path, extras, argument)
    truth = None if labels is None else read_truth(labels, labels_key, source, deployed, **marks)
    read = {"the scene": source.files, "the labels": () if truth is None else truth.files}
    check_apart(outputs, {"the model": [deployed.path], **read})
    return _Inputs(source, truth, outputs, extras, smooth)


def _classify(
    deployed: "DeployedModel", scene: Path, hidden: bool, chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the map of a scene, and return its figures."""
    from hytas.data.findings import note
    from hytas.deploy.journal import open_journal
    from hytas.deploy.outputs import output_files, write_confidence
    from hytas.deploy.rasters import write_bands
    from hytas.deploy.values import output_bands, probability_blocks

    inputs = _opened(deployed, scene, chosen)
    source, truth, out, unknown = inputs.source, inputs.truth, chosen["out"], chosen["unknown"]
    report: dict[str, Any] = {"model": str(deployed.path), "scene": str(scene), "out": str(out)}
    findings = [*_findings(deployed, source), *(() if truth is None else truth.findings)]
    doubts = _doubts(deployed, source, findings, scene if chosen["strict"] else None)
    read = [chosen["cube_key"], chosen["axes"]]
    identity = identity_of(deployed, source, read, inputs.smooth, chosen["resample"])
    identity["unknown"] = unknown
    height, width, _ = source.cube.shape
    with open_journal(output_files(out)[0], identity, (height, width)) as journal:
        rows = chosen["tile_rows"]
        report |= _run(deployed, inputs, journal, rows, unknown, hidden)
        result = journal.class_map()
        report |= _count(deployed, result)
        report |= _write(deployed, result, out, truth, inputs.extras)
        if truth is not None and truth.scored.any() and "accuracy" not in report:
            findings.append(note("empty", chosen["labels"].name, "truth-without-data"))
        if (confidence := chosen["confidence"]) is not None:
            write_confidence(confidence, result, deployed.card, inputs.extras)
            report["confidence"] = str(confidence)
        if (probabilities := chosen["probabilities"]) is not None:
            blocks = probability_blocks(deployed, source.cube, source.nodata, inputs.smooth)
            bands = output_bands(deployed)
            write_bands(probabilities, blocks, (height, width), bands, source.grid)
    report["written"] = [
        str(file)
        for argument, path in inputs.outputs.items()
        for file in output_files(path, argument)
        if file.exists()
    ]
    report |= finding_report(findings)
    report["notes"] += doubts
    return report


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM stop the work as Ctrl-C does: the journal stays, unfinished files go."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _findings(deployed: "DeployedModel", source: ClassifyInput) -> list["Finding"]:
    """Return the findings on a scene, and on a model for it."""
    import numpy as np

    from hytas.data.bands import format_bands
    from hytas.data.findings import warning
    from hytas.data.interpret.nodata import undeclared_in_rows

    findings, kept = list(source.findings), np.asarray(deployed.card.kept_bands)
    used = np.intersect1d(source.bad_bands, kept).astype(np.int64)
    if used.size:
        findings.append(warning("model-uses-bad-bands", bands=format_bands(used)))
    nodata = deployed.card.nodata if source.nodata is None else source.nodata
    return [*findings, *undeclared_in_rows(source.cube, nodata, kept)]


def _doubts(
    deployed: "DeployedModel",
    source: ClassifyInput,
    findings: Iterable["Finding"],
    strict: Path | None,
) -> list[str]:
    """Return notes on values that the model was not trained on, before work begins.

    Args:
        strict: the name of the scene if it is refused where it is doubtful.
    """
    from hytas.data.findings import refuse_warnings
    from hytas.deploy.value_range import range_doubt, wavelength_doubt

    doubt = range_doubt(deployed, source.cube, source.nodata)
    if strict is not None:
        refused = wavelength_doubt(deployed, source.wavelengths) or doubt
        if refused is not None:
            raise InputError("strict", rule=f"{strict} has {refused}")
        refuse_warnings(findings, "strict", strict)
    return [] if doubt is None else [f"the scene has {doubt}"]


def identity_of(
    deployed: "DeployedModel",
    source: ClassifyInput,
    read: list[str | None],
    smooth: str,
    resample: bool,
) -> dict[str, Any]:
    """Describe the inputs; an unfinished map is continued only if they are the same."""
    from hytas.deploy.journal import file_identity

    return {
        "model": deployed.checksum,
        "scene": [file_identity(file) for file in source.files],
        "nodata": source.nodata,
        "cube": read,
        "provider": deployed.provider,
        "smooth": smooth,
        "resample": resample,
    }


def _checked_outputs(
    given: Mapping[str, Path | None], labels: Path | None, of_labels: Mapping[str, Any]
) -> dict[str, Path]:
    """Return the requested outputs; refuse now what could not be written after the work."""
    from hytas.deploy.outputs import check_output

    outputs = {argument: path for argument, path in given.items() if path is not None}
    for argument, path in outputs.items():
        check_output(path, argument)
    for argument, value in of_labels.items():
        if value not in (None, False) and labels is None:
            shown = {} if value is True else {"value": value}
            raise InputError(
                argument, **shown, rule="needs the ground truth", hint="name it with `labels`"
            )
    return outputs


def _lookup(source: ClassifyInput, scene: Path, outputs: Mapping[str, Path]) -> "Lookup":
    """Return the lookup table of a scene; refuse --ortho without one, or without a raster."""
    from hytas.deploy.outputs import RASTERS

    if not any(path.suffix.lower() in RASTERS for path in outputs.values()):
        raise InputError("out", outputs["out"], f"must end in {', '.join(RASTERS)} with `ortho`")
    lookup = source.grid.location.lookup if source.grid and source.grid.location else None
    if lookup is None:
        raise InputError(
            "ortho", rule=f"{scene} has no lookup table to a map grid, as EMIT products do"
        )
    return lookup


def _run(
    model: "DeployedModel",
    inputs: _Inputs,
    journal: "Journal",
    tile_rows: int | None,
    unknown: float | None,
    hidden: bool,
) -> dict[str, Any]:
    """Classify the rows that the journal lacks, and return the figures of that work."""
    from hytas.deploy import classify_strips

    source, smooth = inputs.source, inputs.smooth
    height, width, bands = source.cube.shape
    resumed, start = journal.done, time.perf_counter()
    strips = classify_strips(
        model,
        source.cube,
        nodata=source.nodata,
        tile_rows=tile_rows,
        smooth=smooth,
        unknown=unknown,
        first_row=resumed,
    )
    with bar("classifying", hidden, resumed) as advance:
        for strip in strips:
            journal.append(strip.top, strip.labels, strip.confidence)
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
        "class_shares": model.card.class_shares,
        "smooth": smooth,
        "unknown": unknown,
    }


def _write(
    model: "DeployedModel",
    result: "ClassMap",
    out: Path,
    truth: Truth | None,
    extras: "Extras",
) -> dict[str, Any]:
    """Write the map; return its accuracy if a pixel of the ground truth has a class in it."""
    from hytas.deploy.accuracy import map_accuracy
    from hytas.deploy.outputs import write_map

    accuracy = None
    if truth is not None and truth.scored.any():
        accuracy = map_accuracy(result.labels[:], truth.scored, model.card)
    if truth is None or accuracy is None:
        write_map(out, result, model.card, extras)
        return {}
    title = f"classified, OA {accuracy['OA']:.4f}"
    write_map(out, result, model.card, replace(extras, truth=truth.all, title=title))
    return {"accuracy": {**accuracy, "scored": truth.what}}


def _count(model: "DeployedModel", result: "ClassMap") -> dict[str, Any]:
    import numpy as np

    from hytas.deploy.scene import row_blocks

    names = dict(zip(model.card.class_ids, model.card.class_names, strict=True))
    counts = dict.fromkeys(model.card.class_names, 0)
    for _, block in row_blocks(result.labels):
        for number, pixels in zip(*np.unique(block, return_counts=True), strict=True):
            if int(number) in names:
                counts[names[int(number)]] += int(pixels)
    classified = sum(counts.values())
    height, width = result.labels.shape
    return {"classified": classified, "no_data": height * width - classified, "classes": counts}


def _text(report: dict[str, Any]) -> str:
    from hytas.cli.classify_images import class_lines

    lines = [
        f"scene     {report['scene']}: {report['height']} x {report['width']} pixels, "
        f"{report['bands']} bands",
        f"model     {report['model']}: {report['graph']} graph, {report['precision']}"
        + (", written with --force: it failed its accuracy check" if report["forced"] else "")
        + (", map smoothed by a guided filter" if report["smooth"] == "guided" else ""),
        *([] if report["class_shares"] is None else [f"          {_SHARES}"]),
        f"speed     {report['pixels_per_second']:.0f} pixels per second on {report['provider']} "
        f"({report['seconds']:.1f} s)",
    ]
    lines += [f"note      {note}" for note in report["notes"]]
    if report["resumed_at_row"]:
        lines.append(
            f"resumed   at row {report['resumed_at_row']} of {report['height']}: the rows before "
            "are of an earlier run with the same model and scene"
        )
    if report["no_data"]:
        also = "" if report["unknown"] is None else ", or of unknown ground"
        lines.append(f"no data   {report['no_data']} pixels{also}, written as 0")
    lines += class_lines(report["classes"])
    if "accuracy" in report:
        accuracy = report["accuracy"]
        lines.append(
            f"accuracy  OA {accuracy['OA']:.4f}  AA {accuracy['AA']:.4f}  "
            f"kappa {accuracy['kappa']:.4f} on {accuracy['pixels']} {accuracy['scored']}"
        )
        if accuracy["unknown"]:
            lines.append(
                f"          {accuracy['unknown']} labelled pixels of classes unknown to the model"
            )
    first, *others = report["written"]
    return "\n".join([*lines, f"written   {first}", *(f"          {file}" for file in others)])
