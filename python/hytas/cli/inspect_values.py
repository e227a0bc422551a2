"""What `hytas inspect` says of values: the range of a cube, and the classes of a label map."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.types import Array

MOST_VALUES = 10
"""Values of a field that are shown, the most frequent first."""
MOST_CLASSES = 64
"""Classes of a label map that are shown."""


def describe_range(pixels: "Array", nodata: float | None) -> str | None:
    """Return the range of the values of pixels (N, B); None without data."""
    import numpy as np

    values = pixels[np.isfinite(pixels)]
    if nodata is not None:
        values = values[values != nodata]
    if not values.size:
        return None
    ends = np.quantile(values.astype(np.float64), (0, 0.01, 0.99, 1))
    least, low, high, most = (f"{end:.6g}" for end in ends)
    return f"{least} to {most}; first to last percentile {low} to {high}, of {values.size} sampled"


def describe_shapes(path: Path, layer: str | None = None) -> dict[str, Any] | None:
    """Return fields and values of a file of polygons or points; None for another file.

    Args:
        layer: of a GeoPackage with several.
    """
    from collections import Counter

    from hytas.data.labels.formats import format_of, read_shapes
    from hytas.data.options import SceneOptions

    if format_of(path) is None:
        return None
    try:
        shapes = read_shapes(path, SceneOptions(labels_key=layer))
    except InputError as error:
        raise InputError("path", path, error.rule, error.hint) from error
    fields = {}
    for name, values in shapes.fields.items():
        counts = Counter("no value" if value is None else str(value) for value in values)
        common = [f"{value} {count}" for value, count in counts.most_common(MOST_VALUES)]
        fields[name] = f"{len(counts)} values: {', '.join(common)}" + (
            ", ..." if len(counts) > MOST_VALUES else ""
        )
    return {
        "what": "polygons or points",
        "path": str(path),
        "format": shapes.format,
        "place": shapes.crs,
        "shapes": len(shapes.geometries),
        "fields": fields,
        "findings": shapes.findings,
    }


def describe_labels(path: Path) -> dict[str, Any] | None:
    """Return size and classes of a file that holds a label map; None if it holds none."""
    import numpy as np

    from hytas.cli.progress import finding_report
    from hytas.data import open_file
    from hytas.data.findings import warning
    from hytas.data.labels.read import of_rasters
    from hytas.data.options import SceneOptions

    try:
        labels = of_rasters([open_file(path, "labels")], SceneOptions(), None, None)
    except InputError:
        return None
    maps, findings = {}, list(labels.findings)
    for name, values in labels.maps:
        ids, counts = np.unique(values, return_counts=True)
        classes = {
            f"{number} {labels.names.get(int(number), '')}".strip(): int(count)
            for number, count in zip(ids, counts, strict=True)
            if number
        }
        if len(classes) > MOST_CLASSES:
            facts: dict[str, Any] = {"count": len(classes), "most": MOST_CLASSES}
            findings.append(warning("labels-of-many-classes", name, **facts))
            classes = dict(list(classes.items())[:MOST_CLASSES])
        size = f"{values.shape[0]} x {values.shape[1]} pixels"
        unlabelled = int(counts[ids == 0].sum())
        maps[name] = {"size": size, "classes": classes, "unlabelled": unlabelled}
    whole = next(iter(maps.values())) if len(maps) == 1 else {"maps": maps}
    return {"what": "label map", **whole, **finding_report(findings)}
