"""The end of a run in a few lines; the page of the run says the rest."""

import json
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hytas.cli.progress import echo
from hytas.results import RunResults
from hytas.run import Outcome, describe_architecture
from hytas.run.display import duration
from hytas.spaces.genes import describe_kind

MOST_SCENES = 4
"""Scenes whose accuracy is printed; the page has all."""


def print_outcome(outcome: Outcome, data: str, *, as_json: bool) -> None:
    """Print accuracy, comparison, size against the budget, decisions, time, and what to open.

    Args:
        data: file or name of its first scene.
        as_json: print the JSON form instead.
    """
    if as_json:
        echo(json.dumps(outcome.to_dict(), indent=1))
        return
    for line in _lines(outcome, data):
        echo(_wrapped(line))


def _wrapped(line: str) -> str:
    if not sys.stdout.isatty() or line.startswith("next: "):  # which is to be copied
        return line
    width = shutil.get_terminal_size().columns
    rows = textwrap.wrap(
        line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(rows)


def _lines(outcome: Outcome, data: str) -> Iterator[str]:
    results = outcome.results
    if results is None:
        yield f"architecture  {describe_architecture(outcome.architecture)}"
        yield _size(outcome)
        yield f"next: hytas train {_shell(outcome.folder)}"
        return
    yield from _accuracy(results)
    yield _size(outcome)
    yield from results.decisions()
    if seconds := outcome.seconds:
        longest = sorted(seconds.items(), key=lambda stage: -stage[1])[:2]
        parts = ", ".join(f"{name} {duration(value)}" for name, value in longest)
        yield f"time {duration(sum(seconds.values()))}: {parts}{_cost(outcome)}"
    yield f"open {outcome.folder / 'report.html'}"
    yield next_command(outcome, data)


def next_command(outcome: Outcome, data: str) -> str:
    """Return the line with the command that applies the model of a run."""
    results = outcome.results
    assert results is not None  # a run with weights has figures
    verb = "predict" if results.of_values else "classify"
    out = {"predict": "map.tif", "classify": "map.png"}[verb]
    out = out if results.unit == "pixels" else "predictions.csv"
    model = _shell(outcome.folder / "model.onnx")
    return f"next: hytas {verb} {model} {_shell(data)} --out {out}"


def _cost(outcome: Outcome) -> str:
    """Return CPU and GPU time: "; CPU 1:40 min"."""
    if not (cost := outcome.cost):
        return ""
    units = {"CPU": cost["cpu_seconds"], "GPU": cost["gpu_seconds"]}
    parts = [f"{name} {duration(value)}" for name, value in units.items() if value]
    return "; " + ", ".join(parts) if parts else ""


def _accuracy(results: RunResults) -> Iterator[str]:
    """Yield the accuracy of the map that the run makes, and how far it is above the references."""
    if results.of_values:
        yield from _values(results)
        return
    yield results.headline
    if results.update is not None:
        yield _update(results.update)
    elif len(results.scenes) > 1:
        yield _by_scene(results)
    yield from _comparison(results)


def _values(results: RunResults) -> Iterator[str]:
    """Yield the figures of each target, and what the held-out samples say of the references."""
    names = ("R2", "RMSE", "bias", "RPD", "RPIQ", "CCC")
    for name, one in results.test["per_target"].items():
        known = [f"{each} {one[each]:.4g}" for each in names if one[each] is not None]
        unit = f" ({one['unit']})" if one["unit"] else ""
        yield f"{name}{unit} of {one['samples']:,} test {results.unit}: {', '.join(known)}"
    for level, shares in results.test.get("coverage", {}).items():
        if level == "0.9":
            held = ", ".join("-" if share is None else f"{share:.0%}" for share in shares)
            yield f"intervals of {float(level):.0%} hold {held} of them"
    if (comparison := results.comparison) is not None:
        yield comparison.verdict or f"no reference methods: {comparison.reason}"


def _by_scene(results: RunResults) -> str:
    scenes = results.scenes_smoothed if results.is_smoothed else results.scenes
    tested = [scene for scene in scenes if scene["test"]]
    parts = [
        f"{scene['name']} {_figure(scene['test']):.4f}"
        + ("" if scene["learnt"] else " (never trained on)")
        for scene in tested[:MOST_SCENES]
    ]
    more = len(tested) - MOST_SCENES
    return f"by scene: {', '.join(parts)}{f', {more} more' if more > 0 else ''}"


def _figure(test: Mapping[str, Any]) -> float:
    return float(test["OA"] if "OA" in test else test["R2"])


def _update(update: Mapping[str, Any]) -> str:
    parts = [
        f"{_figure(scene['before']):.4f} -> {_figure(scene['after']):.4f} on the "
        f"{scene['role']} scene {scene['name']}"
        for scene in update["scenes"]
    ]
    if update["reason"]:
        parts.append(f"the old scene is not compared: {update['reason']}")
    return f"model of {update['from']}: {'; '.join(parts)}"


def _comparison(results: RunResults) -> Iterator[str]:
    """Yield one line: the points above the better reference method, or a warning."""
    comparison = results.comparison
    if comparison is None:
        return
    if comparison.reason:
        yield f"no reference methods: {comparison.reason}"
        return
    if comparison.below:
        yield comparison.verdict
    elif results.lead is not None:
        points, title = results.lead
        yield f"{abs(points):.1f} points {'above' if points >= 0 else 'below'} {title}"


def _size(outcome: Outcome) -> str:
    bounds = {name: (lower, upper) for name, lower, upper in outcome.bounds}
    parts = []
    for name, cost in outcome.costs.items():
        if name in bounds or name == "params":
            shown = _unit_of(name, outcome.budget or "")
            parts.append(f"{shown(cost)} {name}{_against(cost, bounds.get(name), shown)}")
    if size := outcome.files.get("model.onnx"):
        parts.append(f"{size / 1e6:.2f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB")
    return f"{describe_kind(outcome.architecture)}: {', '.join(parts)}"


def _unit_of(name: str, budget: str) -> Callable[[int], str]:
    """Return the function that writes a cost.

    It writes a latency in ms, or in the table's own unit if the budget names no unit. The engine
    counts nanoseconds, or billionths of the table's unit.
    """
    if not name.startswith("latency@"):
        return lambda cost: f"{cost:,}"
    if re.search(rf"\d-{re.escape(name)}", budget):
        return lambda cost: f"{cost / 1e9:,g}"
    return lambda cost: f"{cost / 1e6:,g} ms"


def _against(
    cost: int, bound: tuple[int | None, int | None] | None, shown: Callable[[int], str]
) -> str:
    if bound is None:
        return ""
    lower, upper = bound
    if not upper:
        return f" (budget at least {shown(lower or 0)})"
    return f" ({cost / upper:.0%} of the budget)"


def _shell(path: Any) -> str:
    return shlex.quote(str(path))
