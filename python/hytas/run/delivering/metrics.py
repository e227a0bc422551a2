"""All figures of a run in one file, written at its end."""

from typing import Any

from hytas.run.context import Run
from hytas.run.delivering.control import rows_of
from hytas.run.final.seeds import summary_of
from hytas.run.folder import read_json, write_json


def write_metrics(run: Run) -> None:
    """Write `metrics.json` from what the stages left; it is left alone if it would not change."""
    folder = run.folder
    before = read_json(folder.metrics, {})
    metrics: dict[str, Any] = read_json(folder.tested)
    if "device" in before:  # where it was trained; it may be exported elsewhere
        metrics["device"] = before["device"]
    for name, path in (("references", folder.references), ("front", folder.trained_front)):
        if found := read_json(path, {}):
            metrics[name] = found
    if "target" in metrics and (converted := read_json(folder.converted, {})):
        metrics["target"] |= {"finalists": converted["finalists"]}
    if (seeds := summary_of(run, metrics)) is not None:
        metrics["seeds"] = seeds
    if (rows := rows_of(run, metrics)) is not None:
        metrics["control"] = rows
        if before.get("control") != rows:
            both = ", ".join(f"{row['OA']:.4f} in {row['space']}" for row in rows)
            run.report.notice(f"accuracy of the map {both}")
    if metrics != before:
        write_json(folder.metrics, metrics)
