"""`hytas classify`: a model and a scene in, a map out; imports no torch."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..data import Cube
    from ..deploy import ClassMap, DeployedModel
    from ..deploy.scene import Progress


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("scene", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("map.png"),
    show_default=True,
    help="The map: .png, .svg or .pdf (a picture with legend), .npy, .npz or .mat (class ids).",
)
@click.option(
    "--labels", type=click.Path(path_type=Path), help="Ground truth, to say how right the map is."
)
@click.option("--cube-key", help="The cube's name in its file.")
@click.option("--labels-key", help="The label map's name in its file.")
@click.option(
    "--nodata", type=float, help="Value that stands for no data; the file's own if it says so."
)
@click.option("--provider", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option(
    "--threads", type=click.IntRange(min=0), default=0, help="CPU threads; 0 takes every core."
)
@click.option(
    "--tile-rows", type=click.IntRange(min=1), help="Rows at a time; the map does not depend on it."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def classify(
    model: Path,
    scene: Path,
    out: Path,
    labels: Path | None,
    cube_key: str | None,
    labels_key: str | None,
    nodata: float | None,
    provider: str,
    threads: int,
    tile_rows: int | None,
    as_json: bool,
) -> None:
    """Classify every pixel of SCENE with MODEL, an exported .onnx file."""
    from ..deploy import DeployedModel, classify_scene
    from ..deploy.accuracy import measure
    from ..deploy.outputs import check_output, write_map

    check_output(out)
    deployed = DeployedModel.load(model, provider, threads=threads)
    cube = _read_cube(scene, cube_key)
    deployed.check_scene(cube.cube.shape[2], cube.wavelengths, str(scene))
    truth = None if labels is None else _read_truth(labels, labels_key, cube)
    start = time.perf_counter()
    with _progress(cube.cube.shape[0], hidden=as_json) as advance:
        result = classify_scene(
            deployed,
            cube.cube,
            nodata=cube.meta.get("nodata") if nodata is None else nodata,
            tile_rows=tile_rows,
            progress=advance,
        )
    seconds = time.perf_counter() - start
    report: dict[str, Any] = {
        "model": str(model),
        "scene": str(scene),
        "out": str(out),
        "notes": list(cube.notes),
    }
    report |= _summary(deployed, result, seconds)
    title = "classified"
    if truth is not None:
        report["accuracy"] = accuracy = measure(result.labels, truth.scored, deployed.card)
        report["accuracy"]["scored"] = truth.what
        title = f"classified, OA {accuracy['OA']:.4f}"
    drawn = None if truth is None else truth.all
    write_map(out, result, deployed.card, truth=drawn, title=title)
    click.echo(json.dumps(report, indent=2) if as_json else _text(report))


class Truth(NamedTuple):
    """Ground truth: every labelled pixel, and those that the accuracy is computed on."""

    all: "npt.NDArray[np.int32]"
    scored: "npt.NDArray[np.int32]"
    what: str


def _read_cube(path: Path, key: str | None) -> "Cube":
    from ..data import Cube, load_cube, synthetic_scene

    if str(path) != "synthetic":
        return load_cube(path, key)
    scene = synthetic_scene()
    return Cube(scene.cube, scene.wavelengths, scene.valid, scene.name)


def _read_truth(path: Path, key: str | None, cube: "Cube") -> Truth:
    import numpy as np

    from ..data import load_maps, synthetic_scene

    if str(path) == "synthetic":
        scene = synthetic_scene()
        assert scene.test is not None  # the synthetic scene has its own split
        return Truth(scene.labels, scene.test, "pixels of the test map")
    maps = [values.astype(np.int32) for _, values in load_maps(path, key, cube.cube.shape)]
    if len(maps) == 2:
        return Truth(np.where(maps[1] > 0, maps[1], maps[0]), maps[1], "pixels of the test map")
    return Truth(maps[0], maps[0], "labelled pixels, those trained on among them")


@contextmanager
def _progress(rows: int, hidden: bool) -> Iterator["Progress"]:
    """A progress bar with the time left, on standard error."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), disable=hidden, transient=True) as bars:
        task = bars.add_task("classifying", total=rows)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _summary(model: "DeployedModel", result: "ClassMap", seconds: float) -> dict[str, Any]:
    import numpy as np

    height, width = result.labels.shape
    counts = {
        name: int(np.count_nonzero(result.labels == number))
        for name, number in zip(model.card.class_names, model.card.class_ids, strict=True)
    }
    classified = sum(counts.values())
    return {
        "height": height,
        "width": width,
        "bands": model.card.bands,
        "classified": classified,
        "no_data": height * width - classified,
        "seconds": round(seconds, 3),
        "pixels_per_second": round(classified / seconds, 1),
        "provider": model.provider,
        "classes": counts,
    }


def _text(report: dict[str, Any]) -> str:
    total = max(1, report["classified"])
    lines = [
        f"scene     {report['scene']}: {report['height']} x {report['width']} pixels, "
        f"{report['bands']} bands",
        *(f"          {note}" for note in report["notes"]),
        f"speed     {report['pixels_per_second']:.0f} pixels a second on {report['provider']} "
        f"({report['seconds']:.1f} s)",
    ]
    if report["no_data"]:
        lines.append(f"no data   {report['no_data']} pixels, written as 0")
    widest = max(len(name) for name in report["classes"])
    for index, (name, count) in enumerate(report["classes"].items()):
        head = "classes" if index == 0 else ""
        lines.append(f"{head:<9} {name:<{widest}} {count:>9} {100 * count / total:6.1f} %")
    if "accuracy" in report:
        found = report["accuracy"]
        lines.append(
            f"accuracy  OA {found['OA']:.4f}  AA {found['AA']:.4f}  kappa {found['kappa']:.4f} "
            f"on {found['pixels']} {found['scored']}"
        )
        if found["unknown"]:
            lines.append(
                f"          {found['unknown']} labelled pixels of classes unknown to the model"
            )
    lines.append(f"written   {report['out']}")
    return "\n".join(lines)
