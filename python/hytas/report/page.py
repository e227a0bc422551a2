"""The page: facts of runs in, one HTML file out that asks no other place for anything."""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError
from numpy.typing import NDArray

from hytas.errors import InputError
from hytas.files import legible, write_text
from hytas.metrics import FIGURES, mean_and_deviation
from hytas.pictures import Legend, map_png
from hytas.report import charts, words
from hytas.report.beside import beside_references
from hytas.report.facts import Candidates, RunFacts
from hytas.report.pixels import Pixels, spots

_SHOWN_COSTS = ("params", "macs")
_MOST_CURVES = 4


def write_report(path: str | Path, runs: Sequence[RunFacts]) -> bool:
    """Write the report of one run, or of several side by side; return whether the file changed.

    The same facts give the same file.

    Args:
        path: an HTML file; replaced as a whole, and left alone if it would not change.
        runs: what is known of each.

    Raises:
        InputError: there is no run.
        OSError: the file cannot be written.
    """
    if not runs:
        raise InputError("runs: none given; a report needs at least one")
    text, path = render(runs), Path(path)
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    write_text(path, text)
    return True


def render(runs: Sequence[RunFacts]) -> str:
    """Return the page as HTML.

    Raises:
        LookupError, TypeError, ValueError: the facts lack what those of a run have.
    """
    script = _resource("report.js")
    blobs = Blobs()
    views = [_view(run, f"r{number}", blobs) for number, run in enumerate(runs, 1)]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    shown = {
        "runs": views,
        "compare": _compare(runs) if len(runs) > 1 else None,
        "blobs": blobs.held,
        "script": script,
        "style": stylesheet(),
        "script_digest": digest,
        "charts": charts,
    }
    try:
        return environment().get_template("page.html").render(shown)
    except UndefinedError as error:
        raise LookupError(str(error)) from None


@cache
def environment() -> Environment:
    """Return the templates of all pages, with their filters."""
    environment = Environment(
        loader=PackageLoader("hytas.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_one_line,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": charts.short,
        "share": words.share,
        "figure": _figure,
        "uri": _uri,
        "spent": _spent,
        "setting": _setting,
    }
    return environment


def _one_line(value: Any) -> Any:
    """A text without controls and ends of lines, whichever file it came from."""
    if type(value) is not str or (value.isascii() and value.isprintable()):
        return value
    return legible(value)


def stylesheet() -> str:
    """Return the style of all pages."""
    return _resource("report.css")


def _resource(name: str) -> str:
    return (files("hytas.report") / "templates" / name).read_text(encoding="utf-8")


class Blobs:
    """Binary values of a page, compressed; equal ones are held once.

    Attributes:
        held: name -> base64 of a zlib stream.
    """

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def add(self, content: bytes) -> str:
        """Hold `content`; return its name."""
        name = hashlib.sha256(content).hexdigest()[:16]
        if name not in self.held:
            self.held[name] = base64.b64encode(zlib.compress(content, 9)).decode()
        return name

    def add_array(self, values: NDArray[Any]) -> str:
        """Hold an array, little end first; return its name."""
        return self.add(values.astype(values.dtype.newbyteorder("<")).tobytes())


@dataclass(frozen=True, eq=False)
class View:
    """A run as the template shows it; `data` is what the script reads."""

    key: str
    run: RunFacts
    split: Sequence[str]
    verdict: str
    map_notes: Sequence[str]
    beside: Sequence[Mapping[str, Any]]
    classes: Sequence[Mapping[str, Any]]
    map: Mapping[str, Any] | None
    samples: Sequence[Mapping[str, Any]]
    errors: Sequence[Mapping[str, Any]]
    spectra: charts.SpectraChart | None
    panels: Sequence[charts.Panel]
    race: charts.Lines | None
    reliability: charts.Reliability | None
    drawn: int
    most: Mapping[str, int]
    steps: Sequence[tuple[str, str]]
    curves: Mapping[int, str]
    streams: Sequence[str]
    settings: Sequence[tuple[str, Any]]
    commands: Sequence[str]
    data: Mapping[str, Any]


def _view(run: RunFacts, key: str, blobs: Blobs) -> View:
    metrics, pixels, candidates = run.metrics, run.pixels, run.candidates
    chart = None if pixels is None else charts.spectra_chart(pixels)
    drawn = [] if candidates is None else charts.drawn_places(candidates, run.finalists)
    calibration = metrics["test"].get("calibration") if metrics else None
    times = [entry.get("command") for entry in run.times.values()]
    samples, errors = _samples(run)
    return View(
        key=key,
        run=run,
        split=words.about_split(metrics["split"], run.words)
        if metrics and "split" in metrics
        else (),
        verdict=words.verdict(metrics, run.words) if metrics else "The run is not finished.",
        map_notes=(
            [*words.about_smoothing(metrics), *words.about_self_training(metrics)]
            if metrics
            else ()
        ),
        beside=beside_references(metrics) if metrics else (),
        classes=_classes(run),
        map=None if pixels is None else _map(pixels),
        samples=samples,
        errors=errors,
        spectra=chart,
        panels=_panels(run, drawn),
        race=charts.race_lines(run.finalists, "merit"),
        reliability=charts.reliability(calibration) if calibration else None,
        drawn=len(drawn),
        most={
            "params": max((layer.params for layer in run.layers), default=1) or 1,
            "macs": max((layer.macs for layer in run.layers), default=1) or 1,
        },
        steps=words.next_steps(run),
        curves=dict(list(run.curves.items())[:_MOST_CURVES]),
        streams=[name for name in dict.fromkeys(layer.stream for layer in run.layers) if name],
        settings=sorted(_leaves(run.config)),
        commands=list(dict.fromkeys(str(command) for command in times if command)),
        data={
            "pixels": None if pixels is None else _pixel_data(pixels, chart, blobs),
            "points": None if candidates is None else _point_data(candidates, drawn, blobs),
            "classes": [row["name"] for row in _classes(run)],
        },
    )


def _classes(run: RunFacts) -> list[dict[str, Any]]:
    """What the page shows of each class, in order."""
    if run.metrics is None:
        return []
    test, seeds = run.metrics["test"], run.metrics.get("seeds", {}).get("per_class", {})
    smoothed = (run.metrics.get("smoothed") or {}).get("per_class", {})
    taken = words.taken_for(test)
    colours = [None] * len(taken) if run.pixels is None else run.pixels.palette.tolist()
    return [
        {
            "number": number,
            "name": legible(name),
            "colour": None if colour is None else "#{:02x}{:02x}{:02x}".format(*colour),
            "accuracy": accuracy,
            "smoothed": smoothed.get(name),
            "pixels": int(test["support"][name]),
            "taken": legible(mistaken),
            "seeds": seeds.get(name),
        }
        for number, ((name, accuracy), mistaken, colour) in enumerate(
            zip(test["per_class"].items(), taken, colours, strict=True), 1
        )
    ]


def _samples(run: RunFacts) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Sample images and the worst errors, of a run on images."""
    if run.samples is None or run.metrics is None:
        return [], []
    return run.samples.shown([legible(name) for name in run.metrics["test"]["per_class"]])


def _panels(run: RunFacts, drawn: Sequence[int]) -> list[charts.Panel]:
    candidates = run.candidates
    if candidates is None or not candidates.ids:
        return []
    asked = [name for name, *_ in run.bounds] + str(run.config.get("pareto") or "").split(",")
    names = dict.fromkeys([*_SHOWN_COSTS, *asked])
    costs = [name for name in names if name in candidates.costs]
    found = []
    for score, values in candidates.scores.items():
        if np.isfinite(values).any():
            for cost in costs:
                unit = run.units.get(cost, "")
                found.append(
                    charts.score_panel(candidates, run.finalists, drawn, (cost, score), unit)
                )
    if any("accuracy" in f for item in run.finalists for f in item.rungs.values()):
        found += [charts.accuracy_panel(candidates, run.finalists, drawn, cost) for cost in costs]
    return found


def _map(pixels: Pixels) -> dict[str, Any]:
    """Pictures of map and truth, and the numbers on them."""
    count = len(pixels.palette)
    colours = [tuple(colour) for colour in pixels.palette.tolist()]
    legend = Legend(range(1, count + 1), [""] * count, colours)
    found = {}
    for name, plane in (("truth", pixels.truth), ("found", pixels.found)):
        png = base64.b64encode(map_png(plane.astype(np.int32), legend)).decode()
        found[name] = {"src": f"data:image/png;base64,{png}", "spots": spots(plane)}
    return {**found, "height": pixels.found.shape[0], "width": pixels.found.shape[1]}


def _pixel_data(pixels: Pixels, chart: charts.SpectraChart | None, blobs: Blobs) -> dict[str, Any]:
    data: dict[str, Any] = {
        "size": list(pixels.found.shape),
        "stride": pixels.stride,
        "planes": {
            name: blobs.add_array(getattr(pixels, name))
            for name in ("found", "truth", "confidence", "roles")
        },
        "spectra": None,
    }
    spectra = pixels.spectra
    if spectra is None or chart is None:
        return data
    data["spectra"] = {
        "size": list(spectra.codes.shape),
        "stride": spectra.stride,
        "codes": blobs.add_array(spectra.codes),
        "low": blobs.add_array(spectra.low),
        "step": blobs.add_array(spectra.step),
        "basis": blobs.add_array(spectra.basis),
        "centre": blobs.add_array(spectra.centre),
        "xs": chart.xs,
        "up": [chart.up.low, chart.up.high, chart.up.start, chart.up.end],
    }
    return data


def _point_data(candidates: Candidates, drawn: Sequence[int], blobs: Blobs) -> dict[str, Any]:
    """The candidates that are drawn, column by column; genes as numbers of their texts."""

    def coded(values: Sequence[str]) -> dict[str, Any]:
        texts = list(dict.fromkeys(values))
        number = {text: at for at, text in enumerate(texts)}
        return {"texts": texts, "of": [number[values[place]] for place in drawn]}

    def plain(values: NDArray[np.float64]) -> list[float | None]:
        chosen = values[list(drawn)]
        return [float(f"{v:.6g}") if np.isfinite(v) else None for v in chosen]

    columns = {
        "id": [candidates.ids[place] for place in drawn],
        "generation": [candidates.generations[place] for place in drawn],
        "genes": {name: coded(values) for name, values in candidates.genes.items()},
        "costs": {
            name: [int(values[place]) for place in drawn]
            for name, values in candidates.costs.items()
            if name in _SHOWN_COSTS
        },
        "scores": {name: plain(values) for name, values in candidates.scores.items()},
    }
    text = json.dumps(columns, allow_nan=False, separators=(",", ":"))
    return {"count": len(drawn), "columns": blobs.add(text.encode())}


def _compare(runs: Sequence[RunFacts]) -> dict[str, Any]:
    """Runs side by side."""
    done = [run for run in runs if run.metrics is not None]
    alike = len({(run.fingerprint, run.split) for run in done}) == 1 and bool(done[0].split)
    names = list(
        dict.fromkeys(name for run in done for name in (run.metrics or {})["test"]["per_class"])
    )

    def row(values: list[float | None]) -> dict[str, Any]:
        spread = mean_and_deviation(values) if alike and len(done) > 1 else None
        return {"values": values, "spread": spread}

    def test(run: RunFacts) -> Mapping[str, Any]:
        return run.metrics["test"] if run.metrics else {}

    return {
        "split": words.same_split(runs),
        "figures": {name: row([test(run).get(name) for run in runs]) for name in FIGURES},
        "classes": {
            legible(name): row([test(run).get("per_class", {}).get(name) for run in runs])
            for name in names
        },
        "costs": {
            name: [run.costs.get(name) for run in runs]
            for name in _SHOWN_COSTS
            if any(name in run.costs for run in runs)
        },
        "spread": alike and len(done) > 1,
        "seeds_alone": alike
        and all(all(line.startswith("seed ") for line in run.differences) for run in runs)
        and any(run.differences for run in runs),
    }


def _leaves(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Settings by dotted names."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _leaves(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", value))
    return found


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return "-".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "not set", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _uri(svg: str) -> str:
    """An SVG as an image: nothing in it can run."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _spent(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(round(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {round(seconds) % 60} s"
