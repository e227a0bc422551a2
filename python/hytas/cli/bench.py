"""`hytas bench`: how fast a model runs on this machine."""

import json
from pathlib import Path
from typing import Any

import click

from hytas.errors import InputError


def _numbers(text: str, argument: str) -> list[int]:
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = [0]
    if min(values) < 1:
        raise InputError(f"{argument}: {text!r} is not a list of positive numbers such as 1,32")
    return values


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--batch", default="1,32", show_default=True, help="Patches at a time.")
@click.option("--threads", default="1", show_default=True, help="CPU threads.")
@click.option("--provider", default="auto", show_default=True, help="auto (all), cpu or cuda.")
@click.option("--seconds", type=click.FloatRange(min=0.05), default=1.0, show_default=True)
@click.option("--no-torch", is_flag=True, help="Leave torch eager out.")
@click.option(
    "--profile-table",
    type=click.Path(path_type=Path),
    help="Measure the layers of the model's search space here, and write the table that "
    "`--budget 3ms-latency@TABLE` takes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def bench(
    model: Path,
    batch: str,
    threads: str,
    provider: str,
    seconds: float,
    no_torch: bool,
    profile_table: Path | None,
    as_json: bool,
) -> None:
    """Measure latency, pixels a second and memory of MODEL, beside torch eager.

    \b
    hytas bench runs/ip/model.onnx --batch 1,32 --threads 1,2
    hytas bench runs/ip/model.onnx --profile-table latency.json
    """
    from hytas.deploy import DeployedModel, working_providers
    from hytas.deploy.bench import RUNTIME, settings_of
    from hytas.deploy.bench import bench as measure

    if profile_table is not None:
        _check_table(profile_table, model)
    deployed = DeployedModel.load(model, "cpu")
    providers = working_providers() if provider == "auto" else [provider]
    grid: dict[str, Any] = {
        "providers": providers,
        "threads": _numbers(threads, "threads"),
        "batches": _numbers(batch, "batch"),
        "seconds": seconds,
    }
    with _progress(as_json) as advance:
        settings = settings_of(model, **grid, runtime=RUNTIME)
        if not no_torch and deployed.card.graph == "patch":
            settings += settings_of(model, **grid, runtime="hytas.export.bench_torch")
        found: dict[str, Any] = {"model": str(model), "runs": measure(settings, advance)}
        if profile_table is not None:
            found["profile"] = _profile(deployed, profile_table, grid, advance)
    click.echo(json.dumps(found, indent=2) if as_json else _text(found))


def _check_table(path: Path, model: Path) -> None:
    """Refuse before measuring what could not be written after it."""
    if not path.parent.is_dir():
        raise InputError(f"profile table: the folder {path.parent} does not exist")
    if path.is_dir():
        raise InputError(f"profile table: {path} is a folder, a file name needed")
    if path.resolve() == model.resolve():
        raise InputError(f"profile table: {path} is the model: a file of its own needed")


def _profile(deployed: Any, path: Path, grid: dict[str, Any], advance: Any) -> dict[str, Any]:
    """Write the table, and set what it predicts for this model beside what is measured."""
    from hytas.deploy.bench import bench as measure
    from hytas.deploy.bench import settings_of
    from hytas.export.latency import predict, profile
    from hytas.files import write_text

    threads, batch = grid["threads"][0], grid["batches"][0]
    table = profile(deployed.card, threads=threads, batch=batch, progress=advance)
    write_text(path, json.dumps(table) + "\n")
    settings = settings_of(deployed.path, threads=[threads], batches=[batch], seconds=1.0)
    (run,) = measure(settings)
    predicted = predict(table, deployed.card)
    measured = run["cpu_ms"] if threads == 1 else run["ms"]
    return {
        "table": str(path),
        "threads": threads,
        "batch": batch,
        "predicted_ms": predicted,
        "measured_ms": measured,
        "error": predicted / measured - 1.0,
    }


def _progress(hidden: bool) -> Any:
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import Progress

    @contextmanager
    def bars() -> Any:
        console = Console(stderr=True)
        silent = hidden or not console.is_terminal
        with Progress(console=console, disable=silent, transient=True) as progress:
            task = progress.add_task("measuring", total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)

    return bars()


def _text(found: dict[str, Any]) -> str:
    head = ("runtime", "device", "threads", "batch", "ms", "p10..p90", "CPU ms", "pixels/s", "MB")
    rows = [head]
    for run in found["runs"]:
        rows.append(
            (
                "torch eager" if run["runtime"].endswith("torch") else "onnxruntime",
                run["provider"],
                str(run["threads"]),
                str(run["batch"]),
                f"{run['ms']:.2f}",
                f"{run['p10']:.2f}..{run['p90']:.2f}",
                f"{run['cpu_ms']:.2f}",
                f"{run['pixels_per_second']:.0f}",
                f"{run['peak_mb']:.0f}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [str(found["model"])]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells))
    if "profile" in found:
        profile = found["profile"]
        lines.append(
            f"latency table written to {profile['table']}: predicts "
            f"{profile['predicted_ms']:.2f} ms for this model, measured "
            f"{profile['measured_ms']:.2f} ms "
            f"({100 * profile['error']:+.0f} %) at batch {profile['batch']}, "
            f"{profile['threads']} thread(s)"
        )
    return "\n".join(lines)
