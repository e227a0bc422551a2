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
from hytas.pictures import Legend, axes, map_png, picture_png
from hytas.report import charts, words
from hytas.report.facts import Candidates, RunFacts
from hytas.report.networks import HEIGHT, Drawing, draw
from hytas.report.pixels import Pixels, spots
from hytas.results import MethodResult, Results

_SHOWN_COSTS = ("params", "macs")
_MOST_CURVES = 4


def write_report(path: str | Path, runs: Sequence[RunFacts]) -> bool:
    """Write the report of one run, or of several side by side; return whether the file changed.

    The same facts give the same file.

    Args:
        path: an HTML file; replaced as a whole, and left alone if it would not change.

    Raises:
        InputError: there is no run.
        OSError: the file cannot be written.
    """
    if not runs:
        raise InputError("runs", rule="none given", hint="a report needs at least one")
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
        "net_height": HEIGHT,
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
        "short": axes.short,
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
    results: Results | None
    title: str
    split: Sequence[str]
    verdict: str
    tiles: Sequence[tuple[str, str, str]]
    map_notes: Sequence[str]
    references: Sequence[MethodResult]
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
    curves: Sequence[charts.Curves]
    confusion: charts.Confusion | None
    nets: Sequence[Drawing]
    winner: Drawing | None
    streams: Sequence[str]
    settings: Sequence[tuple[str, Any]]
    commands: Sequence[str]
    data: Mapping[str, Any]


def _view(run: RunFacts, key: str, blobs: Blobs) -> View:
    metrics, pixels, candidates, results = run.metrics, run.pixels, run.candidates, run.results
    classes = _classes(run)
    chart = None if pixels is None else charts.spectra_chart(pixels)
    drawn = [] if candidates is None else charts.drawn_places(candidates, run.finalists)
    calibration = metrics["test"].get("calibration") if metrics else None
    times = [entry.get("command") for entry in run.times.values()]
    samples, errors = _samples(run)
    return View(
        key=key,
        run=run,
        results=results,
        title=words.title(run),
        tiles=_tiles(run),
        split=words.about_split(metrics["split"], run.words)
        if metrics and "split" in metrics
        else (),
        verdict=words.verdict(results) if results else "The run is not finished.",
        map_notes=(
            [*words.about_smoothing(results), *words.about_self_training(results)]
            if results
            else ()
        ),
        references=results.comparison.rows if results and results.comparison else (),
        classes=classes,
        map=None if pixels is None else _map(pixels, [row["id"] for row in classes]),
        samples=samples,
        errors=errors,
        spectra=chart,
        panels=_panels(run, drawn),
        race=charts.race_lines(run.finalists, "score"),
        reliability=charts.reliability(calibration) if calibration else None,
        drawn=len(drawn),
        most={
            "params": max((layer.params for layer in run.layers), default=1) or 1,
            "macs": max((layer.macs for layer in run.layers), default=1) or 1,
        },
        steps=words.next_steps(run),
        curves=_curves(run),
        confusion=None if metrics is None else charts.confusion_matrix(metrics["test"], _ids(run)),
        nets=[
            draw({name: values[item.place] for name, values in candidates.genes.items()})
            for item in run.finalists
        ]
        if candidates
        else (),
        winner=None if run.architecture is None else draw(run.architecture),
        streams=[name for name in dict.fromkeys(layer.stream for layer in run.layers) if name],
        settings=sorted(_leaves(run.config)),
        commands=list(dict.fromkeys(str(command) for command in times if command)),
        data={
            "pixels": None if pixels is None else _pixel_data(pixels, chart, blobs),
            "points": None if candidates is None else _point_data(candidates, drawn, blobs),
            "classes": [row["label"] for row in classes],
        },
    )


def _ids(run: RunFacts) -> Sequence[int]:
    count = len(run.metrics["test"]["per_class"]) if run.metrics else 0
    return run.class_ids if len(run.class_ids) == count else range(1, count + 1)


def _classes(run: RunFacts) -> list[dict[str, Any]]:
    if run.metrics is None:
        return []
    test, seeds = run.metrics["test"], run.metrics.get("seeds", {}).get("per_class", {})
    smoothed = (run.metrics.get("smoothed") or {}).get("per_class", {})
    taken = words.taken_for(test)
    colours = [None] * len(taken) if run.pixels is None else run.pixels.palette.tolist()
    return [
        {
            "number": number,
            "id": own,
            "label": words.class_label(own, legible(name)),
            "name": legible(name),
            "colour": None if colour is None else "#{:02x}{:02x}{:02x}".format(*colour),
            "accuracy": accuracy,
            "smoothed": smoothed.get(name),
            "pixels": int(test["support"][name]),
            "taken": legible(mistaken),
            "seeds": seeds.get(name),
        }
        for number, (own, (name, accuracy), mistaken, colour) in enumerate(
            zip(_ids(run), test["per_class"].items(), taken, colours, strict=True), 1
        )
    ]


def _tiles(run: RunFacts) -> list[tuple[str, str, str]]:
    """Return the figures at the top: what it is, the figure, and a remark."""
    results, tiles = run.results, []
    if results is not None:
        of_map, seeds = results.of_map, results.seeds
        over = seeds.get("smoothed", {}) if results.is_smoothed else seeds
        for name, title in (("OA", "overall accuracy"), ("AA", "mean over classes")):
            spread = over.get(name)
            remark = f"{len(seeds['of'])} seeds: {_spread(spread)}" if spread else ""
            tiles.append((title, _figure(of_map[name]), remark))
        tiles.append(("kappa", _figure(of_map["kappa"]), ""))
        if (lead := words.lead(results)) is not None:
            points, title = lead
            tiles.append(("points above the better reference", f"{points:+.1f}", title))
        if "ECE" in of_map:
            tiles.append(("calibration error", _figure(of_map["ECE"]), ""))
    limits = {name: high for name, _, high in run.bounds if high}
    titles = {"params": "parameters", "macs": "multiply-accumulates"}
    for name in dict.fromkeys([*_SHOWN_COSTS, *limits]):
        if name in run.costs:
            cost, limit = run.costs[name], limits.get(name)
            remark = f"{words.share(cost / limit)} of the budget" if limit else ""
            tiles.append((titles.get(name, name), axes.short(cost), remark))
    return tiles


def _spread(spread: Mapping[str, Any]) -> str:
    if spread["std"] is None:
        return _figure(spread["mean"])
    return f"{_figure(spread['mean'])} ± {_figure(spread['std'])}"


def _curves(run: RunFacts) -> list[charts.Curves]:
    if run.metrics is None:
        return []
    curves = charts.learning_curves(run.metrics.get("training") or {})
    for seed, training in list(run.curves.items())[:_MOST_CURVES]:
        curves += charts.learning_curves(training, f" of seed {seed}")
    return curves


def _samples(run: RunFacts) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if run.samples is None or run.metrics is None:
        return [], []
    return run.samples.shown([legible(name) for name in run.metrics["test"]["per_class"]])


def _panels(run: RunFacts, drawn: Sequence[int]) -> list[charts.Panel]:
    candidates = run.candidates
    if candidates is None or not candidates.ids:
        return []
    bounded = [name for name, *_ in run.bounds] + str(run.config.get("pareto") or "").split(",")
    names = dict.fromkeys([*_SHOWN_COSTS, *bounded])
    costs = [name for name in names if name in candidates.costs]
    panels = []
    for score, values in candidates.scores.items():
        if np.isfinite(values).any():
            for cost in costs:
                unit = run.units.get(cost, "")
                panels.append(
                    charts.score_panel(candidates, run.finalists, drawn, (cost, score), unit)
                )
    if any("accuracy" in f for item in run.finalists for f in item.rungs.values()):
        panels += [charts.accuracy_panel(candidates, run.finalists, drawn, cost) for cost in costs]
    return panels


LAYERS = (
    ("image", "False colours", "the scene in near infrared, red and green"),
    ("truth", "Ground truth", "one colour a class"),
    ("found", "Map of the model", "one colour a class"),
    ("errors", "Errors", "labelled pixels of the wrong class in red"),
    ("confidence", "Confidence", "from unsure (dark) to sure (bright)"),
)
"""Layers of the map: key, title, and what it shows."""


def _map(pixels: Pixels, ids: Sequence[int]) -> dict[str, Any]:
    """Return the layers of the map as pictures, and the numbers on them."""
    count = len(pixels.palette)
    colours = [tuple(colour) for colour in pixels.palette.tolist()]
    legend = Legend(range(1, count + 1), [""] * count, colours)
    number = dict(enumerate(ids, 1))
    pictures = {
        "image": picture_png(pixels.image),
        "truth": map_png(pixels.truth.astype(np.int32), legend),
        "found": map_png(pixels.found.astype(np.int32), legend),
        "errors": picture_png(_errors(pixels)),
        "confidence": picture_png(_confidence(pixels)),
    }
    layers = []
    for key, title, about in LAYERS:
        plane = getattr(pixels, key) if key in ("truth", "found") else None
        marks = [] if plane is None else spots(plane)
        layers.append(
            {
                "key": key,
                "title": title,
                "about": about,
                "src": f"data:image/png;base64,{base64.b64encode(pictures[key]).decode()}",
                "spots": [(number.get(own, own), top, left) for own, top, left in marks],
            }
        )
    height, width = pixels.found.shape
    return {"layers": layers, "height": height, "width": width}


def _errors(pixels: Pixels) -> NDArray[np.uint8]:
    """Return a picture: labelled pixels grey where they are right, red where they are wrong."""
    picture = np.full((*pixels.truth.shape, 3), 235, np.uint8)
    labelled = (pixels.truth > 0) & (pixels.found > 0)
    right = labelled & (pixels.truth == pixels.found)
    picture[right] = (165, 175, 185)
    picture[labelled & ~right] = (200, 30, 30)
    return picture


def _confidence(pixels: Pixels) -> NDArray[np.uint8]:
    """Return a picture of the confidence in greys; black without data."""
    grey = np.where(pixels.found > 0, pixels.confidence, 0).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


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
        }
        | {
            "candidates scored": [
                None if run.candidates is None else len(run.candidates.ids) for run in runs
            ],
            "trainings of the race": [
                sum(map(bool, (f for one in run.finalists for f in one.rungs.values()))) or None
                for run in runs
            ],
        },
        "spread": alike and len(done) > 1,
        "seeds_alone": alike
        and all(all(line.startswith("seed ") for line in run.differences) for run in runs)
        and any(run.differences for run in runs),
    }


def _leaves(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            leaves += _leaves(value, f"{prefix}{name}.")
        else:
            leaves.append((f"{prefix}{name}", value))
    return leaves


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
