"""The page: facts of runs in, one HTML file out that asks no other place for anything."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import UndefinedError

from hytas.errors import InputError
from hytas.files import legible, write_text
from hytas.metrics import FIGURES, mean_and_deviation
from hytas.pictures.figures import short
from hytas.report import charts, words
from hytas.report.facts import RunFacts
from hytas.report.html import four_digits, page_templates, resource
from hytas.report.layers import SHOWN_COSTS, Blobs, map_layers, pixel_data, point_data
from hytas.report.networks import HEIGHT, draw_network
from hytas.report.values import values_section


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
    script = resource("report.js")
    blobs = Blobs()
    views = [_view(run, f"r{number}", blobs) for number, run in enumerate(runs, 1)]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    shown = {
        "runs": views,
        "compare": _compare(runs) if len(runs) > 1 else None,
        "blobs": blobs.stored,
        "script": script,
        "style": resource("report.css"),
        "script_digest": digest,
        "net_height": HEIGHT,
    }
    try:
        return page_templates().get_template("page.html").render(shown)
    except UndefinedError as error:
        raise LookupError(str(error)) from None


def _view(run: RunFacts, key: str, blobs: Blobs) -> dict[str, Any]:
    """Return the values that `run.html` shows of a run; "data" is what the script reads."""
    metrics, pixels, candidates, results = run.metrics, run.pixels, run.candidates, run.results
    classes = _classes(run)
    chart = None if pixels is None else charts.spectra_chart(pixels, classes)
    drawn = [] if candidates is None else charts.drawn_places(candidates, run.finalists)
    calibration = metrics["test"].get("calibration") if metrics else None
    times = [entry.get("command") for entry in run.times.values()]
    samples, errors = _samples(run)
    return {
        "key": key,
        "run": run,
        "results": results,
        "title": words.title(run),
        "tiles": _tiles(run),
        "split": words.about_split(metrics["split"], run.words)
        if metrics and "split" in metrics
        else (),
        "verdict": results.headline if results else "The run is not finished.",
        "map_notes": results.decisions() if results else (),
        "section": values_section(results, run.pairs) if results and run.of_values else None,
        "references": results.comparison.rows if results and results.comparison else (),
        "classes": classes,
        "map": None if pixels is None else map_layers(pixels, [row["id"] for row in classes]),
        "samples": samples,
        "errors": errors,
        "spectra": chart,
        "panels": _panels(run, drawn),
        "race": charts.race_chart(run.finalists, "score"),
        "reliability": charts.reliability(calibration) if calibration else None,
        "drawn": len(drawn),
        "most": {
            "params": max((layer.params for layer in run.layers), default=1) or 1,
            "macs": max((layer.macs for layer in run.layers), default=1) or 1,
        },
        "steps": words.next_steps(run),
        "curves": _curves(run),
        "confusion": None
        if metrics is None
        else charts.confusion_matrix(metrics["test"], _ids(run)),
        "nets": [
            draw_network({name: values[item.place] for name, values in candidates.genes.items()})
            for item in run.finalists
        ]
        if candidates
        else (),
        "winner": None if run.architecture is None else draw_network(run.architecture),
        "streams": [name for name in dict.fromkeys(layer.stream for layer in run.layers) if name],
        "settings": sorted(_leaves(run.config)),
        "commands": list(dict.fromkeys(str(command) for command in times if command)),
        "data": {
            "pixels": None if pixels is None else pixel_data(pixels, chart, blobs),
            "points": None if candidates is None else point_data(candidates, drawn, blobs),
            "classes": [row["label"] for row in classes],
        },
    }


def _ids(run: RunFacts) -> Sequence[int]:
    count = len(run.metrics["test"].get("per_class", ())) if run.metrics else 0
    return run.class_ids if len(run.class_ids) == count else range(1, count + 1)


def _classes(run: RunFacts) -> list[dict[str, Any]]:
    if run.metrics is None or run.of_values:
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
    """Return the figures at the top: title, figure and remark."""
    results, tiles = run.results, []
    if results is not None and run.of_values:
        tiles.append(("mean R2 of the targets", four_digits(results.test["R2"]), ""))
    elif results is not None:
        of_map, seeds = results.of_map, results.seeds
        over = seeds.get("smoothed", {}) if results.is_smoothed else seeds
        for name, title in (("OA", "overall accuracy"), ("AA", "mean over classes")):
            spread = over.get(name)
            remark = f"{len(seeds['of'])} seeds: {_spread(spread)}" if spread else ""
            tiles.append((title, four_digits(of_map[name]), remark))
        tiles.append(("kappa", four_digits(of_map["kappa"]), ""))
        tiles += [(name, four_digits(value), "") for name, value in results.further.items()]
        if (lead := results.lead) is not None:
            points, title = lead
            tiles.append(("points above the better reference", f"{points:+.1f}", title))
        if "ECE" in of_map:
            remark = "of the smoothed map" if results.is_smoothed else ""
            tiles.append(("calibration error", four_digits(of_map["ECE"]), remark))
    limits = {name: high for name, _, high in run.bounds if high}
    titles = {"params": "parameters", "macs": "multiply-accumulates"}
    for name in dict.fromkeys([*SHOWN_COSTS, *limits]):
        if name in run.costs:
            cost, limit = run.costs[name], limits.get(name)
            remark = f"{words.share(cost / limit)} of the budget" if limit else ""
            tiles.append((titles.get(name, name), short(cost), remark))
    return tiles


def _spread(spread: Mapping[str, Any]) -> str:
    if spread["std"] is None:
        return four_digits(spread["mean"])
    return f"{four_digits(spread['mean'])} ± {four_digits(spread['std'])}"


def _curves(run: RunFacts) -> list[charts.Chart]:
    if run.metrics is None:
        return []
    curves = charts.learning_curves(run.metrics.get("training") or {})
    for seed, training in run.curves.items():
        curves += charts.learning_curves(training, f" of seed {seed}")
    return curves


def _samples(run: RunFacts) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if run.samples is None or run.metrics is None:
        return [], []
    return run.samples.shown([legible(name) for name in run.metrics["test"]["per_class"]])


def _panels(run: RunFacts, drawn: Sequence[int]) -> list[charts.Chart]:
    candidates = run.candidates
    if candidates is None or not candidates.ids:
        return []
    bounded = [name for name, *_ in run.bounds] + str(run.config.get("pareto") or "").split(",")
    names = dict.fromkeys([*SHOWN_COSTS, *bounded])
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


def _compare(runs: Sequence[RunFacts]) -> dict[str, Any]:
    done = [run for run in runs if run.metrics is not None]
    alike = len({(run.fingerprint, run.split) for run in done}) == 1 and bool(done[0].split)
    names = list(
        dict.fromkeys(
            name for run in done for name in (run.metrics or {})["test"].get("per_class", ())
        )
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
            for name in SHOWN_COSTS
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
