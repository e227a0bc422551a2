"""The summary that is printed at the end of a run."""

import re
from collections.abc import Callable
from typing import Any

from hytas.cli.progress import echo
from hytas.pictures import font_note
from hytas.results import SelfTraining, SmoothingChoice
from hytas.run import Outcome, describe_architecture


def print_outcome(outcome: Outcome, data: str) -> None:
    """Print accuracy, architecture, costs against the budget, files, and the next command."""
    if outcome.metrics is not None:
        _print_accuracy(outcome)
    echo(f"\narchitecture  {describe_architecture(outcome.architecture)}")
    bounds = {name: (lower, upper) for name, lower, upper in outcome.bounds}
    for name, cost in outcome.costs.items():
        if name in bounds or name in ("params", "macs"):
            shown = _unit_of(name, outcome.budget or "")
            echo(f"{name:<13} {shown(cost)}{_against(cost, bounds.get(name), shown)}")
    echo(f"\nfiles in {outcome.folder}/")
    for name, size in outcome.files.items():
        echo(f"  {name:<22} {_bytes(size):>9}")
    echo(f"\nnext: {_next_command(outcome, data)}")


def _print_accuracy(outcome: Outcome) -> None:
    assert outcome.metrics is not None
    test, parity = outcome.metrics["test"], outcome.metrics["parity"]
    worst = max(item["max_difference"] for item in parity["formats"].values())
    what = "images" if _of_images(outcome) else "pixels"
    echo(f"\naccuracy of model.onnx on {test['pixels']} test {what}")
    for name, value in test["per_class"].items():
        shown = "   -  " if value is None else f"{value:.4f}"
        echo(f"  {name:<30} {shown}  ({test['support'][name]} {what})")
    seeds = outcome.metrics.get("seeds", {})
    for name in ("OA", "AA", "kappa", "ECE"):
        spread = ""
        if name in seeds:
            found = seeds[name]
            spread = f"  ({len(seeds['of'])} seeds: {found['mean']:.4f} +- {found['std']:.4f})"
        if name == "ECE" and "ECE_before" in test:
            spread = f"{spread}  (before calibration: {test['ECE_before']:.4f})"
        echo(f"  {name:<30} {test[name]:.4f}{spread}")
    _print_scenes(outcome.metrics)
    _print_update(outcome.metrics.get("further"))
    _print_smoothing(outcome.metrics)
    _print_self_training(outcome.metrics.get("self_training"))
    _print_calibration(outcome.metrics.get("calibration"))
    _print_references(outcome.metrics, outcome.metrics.get("references"))
    echo(f"torch, ONNX and TorchScript agree on all test {what}: largest difference {worst:.1e}")
    if note := font_note(list(test["per_class"])):
        echo(f"note: {note}")


def _print_scenes(metrics: dict[str, Any]) -> None:
    """Print the accuracy in each scene, raw and of a smoothed map, if there are several."""
    scenes = metrics.get("scenes") or []
    smoothed = metrics.get("scenes_smoothed") or [{}] * len(scenes)
    rows = [("the model", scenes), ("smoothed", smoothed)]
    methods = ((metrics.get("references") or {}).get("methods") or {}).values()
    rows += [(one["title"], one.get("scenes") or []) for one in methods]
    for place, scene in enumerate(scenes):
        known = "pixels of its own were trained on" if scene["learnt"] else "never trained on"
        if not scene["test"]:
            echo(f"scene {scene['name']}, {known}: none of its pixels is tested")
            continue
        echo(f"scene {scene['name']}, {known}: {scene['test']['pixels']} test pixels")
        for title, found in rows:
            if len(found) > place and (test := found[place].get("test")):
                figures = "  ".join(f"{name} {test[name]:.4f}" for name in ("OA", "AA", "kappa"))
                echo(f"  {title:<30} {figures}")


def _print_update(found: dict[str, Any] | None) -> None:
    """Print what the training changed, for a run that began with a model."""
    if found is None:
        return
    for scene in found["scenes"]:
        before, after = scene["before"], scene["after"]
        figures = "  ".join(
            f"{name} {before[name]:.4f} -> {after[name]:.4f}" for name in ("OA", "AA", "kappa")
        )
        echo(f"model of {found['from']} on the {scene['role']} scene {scene['name']}: {figures}")
    if found["reason"]:
        echo(f"note: the old scene is not compared: {found['reason']}")


def _print_smoothing(metrics: dict[str, Any]) -> None:
    """Print the accuracy with smoothed probabilities, and whether maps are smoothed."""
    smoothed, choice = metrics.get("smoothed"), metrics.get("smoothing")
    if not smoothed or not choice:
        return
    figures = "  ".join(f"{name} {smoothed[name]:.4f}" for name in ("OA", "AA", "kappa", "ECE"))
    over = metrics.get("seeds", {}).get("smoothed")
    spread = ""
    if over:
        count, found = len(metrics["seeds"]["of"]), over["OA"]
        spread = f"  ({count} seeds: OA {found['mean']:.4f} +- {found['std']:.4f})"
    echo(f"with a smoothed map: {figures}{spread}")
    echo(SmoothingChoice(**choice).describe())


def _print_self_training(found: dict[str, Any] | None) -> None:
    """Print whether the model learnt from unlabelled pixels, where validation pixels judged it."""
    if found and found["pixels"]:
        echo(SelfTraining(**found).describe())


def _print_calibration(found: dict[str, Any] | None) -> None:
    """Print how the confidence was calibrated, or why it was not."""
    if found is None:
        return
    if found["reason"]:
        echo(f"note: the confidence is not calibrated: {found['reason']}")
    else:
        echo(
            f"confidence calibrated on {found['pixels']} validation pixels: temperature "
            f"{found['temperature']:g}"
        )


def _print_references(winner: dict[str, Any], found: dict[str, Any] | None) -> None:
    """Print a table of the winner and the reference methods, and whether the winner is below."""
    if found is None:
        return
    if found["reason"]:
        echo(f"note: no reference methods: {found['reason']}")
        return
    validation, methods, test = found["validation"], found["methods"], winner["test"]
    rows = [("winner", winner, validation["OA"].get("winner"))]
    rows += [(one["title"], one, validation["OA"].get(n)) for n, one in methods.items()]
    echo(f"\n{'fitted on the same pixels':<30} OA held out  OA test  AA test  kappa    OA smoothed")
    for title, figures, held_out in rows:
        shown = "-" if held_out is None else f"{held_out:.4f}"
        tested = "  ".join(f"{figures['test'][name]:7.4f}" for name in ("OA", "AA", "kappa"))
        smoothed = figures.get("smoothed")
        more = f"{smoothed['OA']:.4f}" if smoothed else "-"
        echo(f"  {title:<28} {shown:>11}  {tested}  {more:>11}")
    for one in methods.values():
        if (one["pixels"], one["test"]["pixels"]) != (one["of_pixels"], test["pixels"]):
            echo(
                f"note: {one['title']}: fitted on {one['pixels']} of {one['of_pixels']} pixels, "
                f"tested on {one['test']['pixels']} of {test['pixels']}"
            )
    if validation["below"] or not validation["pixels"]:
        echo(validation["verdict"])
    if better := [one["title"] for one in methods.values() if one["test"]["OA"] > test["OA"]]:
        echo(f"note: on the test pixels the winner is below {' and '.join(better)}")


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
    least = f"{shown(lower)} .. " if lower else "at most "
    if not upper:
        return f"  (budget at least {shown(lower or 0)})"
    return f"  (budget {least}{shown(upper)}, {cost / upper:.1%} of it)"


def _bytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _next_command(outcome: Outcome, data: str) -> str:
    if outcome.metrics is None:
        return f"hytas train {outcome.folder}"
    out = "predictions.csv" if _of_images(outcome) else "map.png"
    return f"hytas classify {outcome.folder / 'model.onnx'} {data} --out {out}"


def _of_images(outcome: Outcome) -> bool:
    """Whether the run is about images, not about a scene."""
    return "predictions.csv" in outcome.files
