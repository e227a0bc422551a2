"""`hytas predict`: values of a scene as a map, or of a table of spectra as a table."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.classify import identity_of, stopped_by_sigterm
from hytas.cli.progress import bar, echo
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.deploy import DeployedModel
    from hytas.types import Array, Floats


@click.command()
@options.model_argument
@options.scene_argument
@options.path_option(
    "--out",
    help="A map of float32, .tif or .hdr; of a table .csv.  [default: values.tif, values.csv]",
)
@click.option(
    "--interval",
    type=float,
    help="Also write the ends of the interval of this level, such as .9, as bands or columns.",
)
@options.setting_options(more=("cube_key", "axes", "nodata"))
@options.resample_option
@options.provider_option
@options.untrusted_option
@options.json_option
def predict(
    model: Path,
    scene: Path,
    out: Path | None,
    interval: float | None,
    provider: str,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Predict the values of every pixel of SCENE, or of a table of spectra, with MODEL.

    MODEL is an exported .onnx file, or the folder of a run. A model of classes gives their
    probabilities.
    """
    from hytas.data.spectra.load import is_table
    from hytas.deploy import DeployedModel
    from hytas.deploy.values import half_widths

    deployed = DeployedModel.load(model, provider)
    graphs = ("patch",) if "classes" in deployed.task.maps else ("patch", "scene")
    if deployed.card.graph not in graphs:
        raise InputError(
            "model", model, f"is a {deployed.card.graph} graph; a patch graph is needed"
        )
    widths = None if interval is None else half_widths(deployed, interval)
    if deployed.card.patch_size == 1 and is_table(scene, deployed.card.bands):
        report = _table(deployed, scene, out or Path("values.csv"), widths, chosen["nodata"])
    else:
        with stopped_by_sigterm():
            report = _map(deployed, scene, out or Path("values.tif"), widths, as_json, chosen)
    report |= {"model": str(deployed.path), "scene": str(scene)}
    echo(json.dumps(report, indent=2) if as_json else _text(report))


def _named(model: "DeployedModel", widths: "Floats | None") -> list[Any]:
    """Return the bands of a map: the outputs, and below and above them the ends of intervals."""
    from hytas.deploy.values import output_bands

    bands = output_bands(model)
    ends = () if widths is None else ("low", "high")
    return [*bands, *(one._replace(name=f"{one.name} {end}") for end in ends for one in bands)]


def _with_ends(values: "Array", widths: "Floats | None") -> "Array":
    import numpy as np

    if widths is None:
        return values
    ends = [values - widths, values + widths]
    return np.concatenate([values, *ends], axis=-1).astype(np.float32)


def _table(
    model: "DeployedModel",
    table: Path,
    out: Path,
    widths: "Floats | None",
    nodata: float | None,
) -> dict[str, Any]:
    from hytas.cli.classify_input import read_spectra
    from hytas.deploy.images import write_columns
    from hytas.deploy.values import row_values

    rows, doubt = read_spectra(model, table, out, nodata)
    values = row_values(model, rows.values, nodata)
    shown, names = _with_ends(values, widths), [one.name for one in _named(model, widths)]
    columns = {"row": [str(number) for number in range(1, len(values) + 1)]}
    for name, column in zip(names, shown.T, strict=True):
        columns[name] = ["" if one != one else f"{one:.7g}" for one in column]
    write_columns(out, columns)
    notes = [*map(str, rows.findings), *([] if doubt is None else [f"the table has {doubt}"])]
    seen = _Seen(model)
    seen.add(values)
    return seen.report(notes, out)


def _map(
    model: "DeployedModel",
    scene: Path,
    out: Path,
    widths: "Floats | None",
    hidden: bool,
    chosen: dict[str, Any],
) -> dict[str, Any]:
    from hytas.cli.classify_input import open_for
    from hytas.deploy.journal import open_journal
    from hytas.deploy.outputs import RASTERS, check_apart, output_files
    from hytas.deploy.rasters import write_bands
    from hytas.deploy.scene import row_blocks
    from hytas.deploy.value_range import range_doubt
    from hytas.deploy.values import scene_values
    from hytas.files import check_folder

    if out.suffix.lower() not in RASTERS:
        raise InputError("out", out, f"must end in one of {', '.join(RASTERS)}")
    check_folder(out, "out")
    source = open_for(model, scene, chosen)
    (height, width, _), nodata = source.cube.shape, source.nodata
    check_apart({"out": out}, {"the model": [model.path], "the scene": source.files})
    doubt = range_doubt(model, source.cube, nodata)
    seen = _Seen(model)
    read = [chosen["cube_key"], chosen["axes"]]
    identity = identity_of(model, source, read, "none", chosen["resample"])
    outputs = len(model.card.class_ids)
    with open_journal(output_files(out)[0], identity, (height, width), outputs) as journal:
        with bar("predicting", hidden, journal.done) as advance:
            for block in scene_values(model, source.cube, nodata, journal.done):
                journal.append(*block)
                advance(journal.done, height)
        stored = journal.stored("values")

        def blocks() -> Iterator[tuple[int, Any]]:
            for top, values in row_blocks(stored):
                seen.add(values)
                yield top, _with_ends(values, widths)

        write_bands(out, blocks(), (height, width), _named(model, widths), source.grid)
    notes = [*map(str, source.findings), *([] if doubt is None else [f"the scene has {doubt}"])]
    return seen.report(notes, out)


class _Seen:
    """Counts, sums and ranges of the outputs that were predicted."""

    def __init__(self, model: "DeployedModel") -> None:
        self.model, self.count, self.pixels, self.outside = model, 0, 0, 0
        self.sums: Any = 0.0
        self.low: Any = math.inf
        self.high: Any = -math.inf

    def add(self, values: "Array") -> None:
        """Add outputs (..., C)."""
        import numpy as np

        rows = values.reshape(-1, values.shape[-1]).astype(np.float64)
        known = rows[np.isfinite(rows).all(axis=1)]
        self.pixels += len(rows)
        if not len(known):
            return
        self.count += len(known)
        self.sums = self.sums + known.sum(axis=0)
        self.low = np.minimum(self.low, known.min(axis=0))
        self.high = np.maximum(self.high, known.max(axis=0))
        self.outside += int(self.model.task.outside(known).any(axis=1).sum())

    def report(self, notes: list[str], out: Path) -> dict[str, Any]:
        """Return counts, and the mean and the range of each output."""
        from hytas.deploy.values import output_bands

        if self.outside:
            what = f"{self.outside} of {self.count} predictions lie outside"
            notes = [*notes, f"{what} the range of the training"]
        outputs: dict[str, dict[str, Any]] = {}
        for at, band in enumerate(output_bands(self.model)):
            outputs[band.name] = {"unit": band.unit}
            if self.count:
                ends = {"low": float(self.low[at]), "high": float(self.high[at])}
                outputs[band.name] |= {"mean": float(self.sums[at]) / self.count, **ends}
        counts = {"predicted": self.count, "no_data": self.pixels - self.count}
        return {**counts, "outputs": outputs, "notes": notes, "out": str(out)}


def _text(report: dict[str, Any]) -> str:
    lines = [f"model     {report['model']}: {report['predicted']} predictions"]
    lines += [f"note      {note}" for note in report["notes"]]
    if report["no_data"]:
        lines.append(f"no data   {report['no_data']}, written as NaN or left empty")
    for name, one in report["outputs"].items():
        unit = f" {one['unit']}" if one["unit"] else ""
        if "mean" in one:
            span = f"{one['low']:.4g} to {one['high']:.4g}{unit}"
            lines.append(f"values    {name}: mean {one['mean']:.4g}{unit}, {span}")
    return "\n".join([*lines, f"written   {report['out']}"])
