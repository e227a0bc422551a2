"""The model of a run beside the reference methods, a row each."""

from collections.abc import Mapping
from typing import Any


def beside_references(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The model and the reference methods, a row each; nothing without reference methods."""
    found = metrics.get("references") or {}
    if not found.get("methods"):
        return []
    held_out = (found.get("validation") or {}).get("OA", {})
    methods = [(name, str(entry["title"]), entry) for name, entry in found["methods"].items()]
    rows = [("winner", "this model", metrics), *methods]
    return [
        {
            "title": title,
            "held_out": held_out.get(name),
            "test": entry["test"],
            "smoothed": (entry.get("smoothed") or {}).get("OA"),
            "pixels": entry.get("pixels"),
            "of_pixels": entry.get("of_pixels"),
        }
        for name, title, entry in rows
    ]
