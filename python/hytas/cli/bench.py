"""`hytas bench`: how fast a model runs on this machine."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.progress import aligned_cells, bar, echo
from hytas.errors import InputError
from hytas.files import check_folder

if TYPE_CHECKING:
    from hytas.deploy import DeployedModel


MOST_BATCH = 2**16
MOST_SECONDS = 3600.0


def _seconds(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Refuse NaN, which click's range check lets pass."""
    if math.isnan(value):
        raise InputError("seconds", value, f"must be 0.05 to {MOST_SECONDS:g}")
    return value


def _numbers(text: str, argument: str, most: int | None = None) -> list[int]:
    values = options.whole_numbers(text)
    if min(values, default=0) < 1:
        raise InputError(argument, text, "must be a list of positive numbers such as 1,32")
    if most is not None and max(values) > most:
        raise InputError(argument, max(values), f"must be at most {most}")
    return list(dict.fromkeys(values))


@click.command()
@options.model_argument
@click.option(
    "--batch",
    default="1,32",
    show_default=True,
    help="Patches at a time, as a list. For a scene graph: rows of 64 pixels.",
)
@click.option("--threads", default="1", show_default=True, help="CPU threads, as a list.")
@click.option("--provider", default="auto", show_default=True, help="auto (all), cpu or cuda.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.05, max=MOST_SECONDS),
    callback=_seconds,
    default=1.0,
    show_default=True,
    help="How long one measurement takes. Each setting is measured four times, in turn.",
)
@options.path_option(
    "--profile-table",
    help="Time networks of the model's search space on this machine, which takes some "
    "minutes, and write a latency table for `--budget 3ms-latency@TABLE`. The first number of "
    "--threads and of --batch is used.",
)
@options.json_option
def bench(
    model: Path,
    profile_table: Path | None,
    as_json: bool,
    **measured: Any,
) -> None:
    """Measure latency, pixels per second and memory of MODEL, and of the same network in torch.

    MODEL is an ONNX file of `hytas export`, or the folder of a run. ms is the time of the fastest
    call: other programs only add time. 80 % of the calls lie in p10..p90. CPU ms is the least
    processor time of a call over all threads.

    \b
    hytas bench runs/ip/model.onnx --batch 1,32 --threads 1,2
    hytas bench runs/ip/model.onnx --profile-table latency.json
    """
    from hytas.deploy import DeployedModel, working_providers
    from hytas.deploy.bench import RUNTIME, bench_settings
    from hytas.deploy.bench import bench as measure
    from hytas.deploy.model_file import file_of_model
    from hytas.deploy.providers import choose_providers

    provider = measured["provider"]
    choose_providers(provider)
    model = file_of_model(model)
    grid: dict[str, Any] = {
        "providers": working_providers() if provider == "auto" else [provider],
        "threads": _numbers(measured["threads"], "threads", options.MOST_THREADS),
        "batches": _numbers(measured["batch"], "batch", MOST_BATCH),
        "seconds": measured["seconds"],
    }
    deployed = DeployedModel.load(model, "cpu")
    if profile_table is not None:
        _check_table(deployed, profile_table)
    with bar("measuring", as_json) as advance:
        settings = bench_settings(model, **grid, runtime=RUNTIME)
        if deployed.card.graph == "patch":
            settings += bench_settings(model, **grid, runtime="hytas.export.bench_torch")
        report: dict[str, Any] = {
            "model": str(model),
            "graph": deployed.card.graph,
            "precision": deployed.card.precision,
            "runs": measure(settings, advance),
        }
        if profile_table is not None:
            written = _profile(deployed, profile_table, grid, advance)
            report["profile"] = _compare(deployed, written, profile_table)
    echo(json.dumps(report, indent=2) if as_json else _text(report))


def _check_table(model: "DeployedModel", written: Path) -> None:
    """Refuse a latency table, before measuring, that cannot be written or does not fit."""
    check_folder(written, "profile_table")
    if written.resolve() == model.path.resolve():
        raise InputError("profile_table", written, "must be a file of its own; it is the model")
    kind = (model.card.graph, model.card.precision)
    if kind != ("patch", "float32"):
        raise InputError(
            "model",
            model.path,
            f"must be a patch graph in float32, for a latency table; it is a {kind[0]} graph of "
            f"precision {kind[1]}",
            "take the run's model.onnx",
        )


def _profile(
    model: "DeployedModel", path: Path, grid: dict[str, Any], advance: Any
) -> dict[str, Any]:
    from hytas.export.latency import profile
    from hytas.files import write_text

    threads, batch = grid["threads"][0], grid["batches"][0]
    table = profile(model.card, threads=threads, batch=batch, progress=advance)
    write_text(path, json.dumps(table, separators=(",", ":")) + "\n")
    return table


def _compare(model: "DeployedModel", table: dict[str, Any], path: Path) -> dict[str, Any]:
    """Compare a table's prediction with a measurement under the table's own conditions."""
    from hytas.deploy.bench import bench as measure
    from hytas.deploy.bench import bench_settings
    from hytas.export.latency import predicted_latency, threads_and_batch

    threads, batch = threads_and_batch(table)
    (run,) = measure(bench_settings(model.path, threads=[threads], batches=[batch], seconds=1.0))
    predicted = predicted_latency(table, model.card, str(path))
    measured = run["cpu_ms"] if threads == 1 else run["ms"]
    return {
        "table": str(path),
        "space": table["space"],
        "variables": table.get("variables", {}),
        "threads": threads,
        "batch": batch,
        "predicted_ms": predicted,
        "measured_ms": measured,
        "error": predicted / measured - 1.0,
    }


def _text(report: dict[str, Any]) -> str:
    scene = report["graph"] in ("scene", "smooth-scene")
    head = ["runtime", "device", "threads", "rows" if scene else "batch"]
    counted = "images/s" if report["graph"] == "image" else "pixels/s"
    head += ["ms", "p10..p90", "CPU ms", counted, "MB"]
    rows = [head]
    for run in report["runs"]:
        rows.append(
            [
                "torch eager" if run["runtime"].endswith("torch") else "onnxruntime",
                run["provider"],
                str(run["threads"]),
                str(run["batch"]),
                _ms(run["ms"]),
                f"{_ms(run['p10'])}..{_ms(run['p90'])}",
                _ms(run["cpu_ms"]),
                f"{run['pixels_per_second']:.0f}",
                f"{run['peak_mb']:.0f}",
            ]
        )
    tiles = ", in tiles 64 pixels wide" if scene else ""
    lines = [f"{report['model']}: {report['graph']} graph, {report['precision']}{tiles}"]
    lines += aligned_cells(rows)
    if "profile" in report:
        written = report["profile"]
        lines.append(f"latency table written; use it as --budget 3ms-latency@{written['table']}")
        given = [f"--variable {name}={value}" for name, value in written["variables"].items()]
        lines.append(f"  with hytas space, add: --space {written['space']} {' '.join(given)}")
        lines.append(
            f"{written['table']} predicts {_ms(written['predicted_ms'])} ms for this model; "
            f"measured {_ms(written['measured_ms'])} ms ({100 * written['error']:+.0f} %) at batch "
            f"{written['batch']}, {written['threads']} thread(s)"
        )
    return "\n".join(lines)


def _ms(value: float) -> str:
    """Write milliseconds with about three digits; a small network takes a tenth of one."""
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0}f}"
