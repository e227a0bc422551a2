"""`hytas inspect`: describe a scene, a model or a run folder; imports no torch."""

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.inspect_run import describe_run, file_digest, lines_of_run
from hytas.cli.inspect_values import describe_labels, describe_range, describe_shapes
from hytas.cli.progress import echo, finding_report, option
from hytas.errors import InputError, escaped

if TYPE_CHECKING:
    from hytas.data.grid import Grid
    from hytas.data.record import Contents
    from hytas.model_card import ModelCard

_Described = dict[str, Any]
_Lines = Callable[[Mapping[str, Any]], list[str]]
_OF_TABLE = {"label_column", "group_column", "band_columns"}
_OF_CUBE = {"bands", "nodata", "axes", "cube_key"}
"""Options that say nothing about labels."""
_OF_FEW_LABELS = ("empty", "classes-few")
"""Codes of refusals of labels that are right, but too few to train."""


@click.command()
@click.argument("path", type=options.PATH)
@options.path_option(
    "--labels",
    multiple=True,
    help="Ground truth of a scene; twice, its training and its test map.",
)
@options.setting_options(more=("cube_key", "axes", "bands", "nodata", "labels_key"))
@options.setting_options(more=("label_column", "group_column", "band_columns"))
@options.setting_options(
    more=("class_field", "labels_crs", "unlabelled", "zero_is_a_class", "class_names")
)
@options.untrusted_option
@options.plugin_option(expose_value=False)
@options.json_option
def inspect(path: Path, as_json: bool, labels: tuple[Path, ...], **reading: Any) -> None:
    """Describe PATH: a scene, labels, a table of spectra, an exported model or a run folder."""
    if str(path) != "synthetic" and not path.exists():
        raise InputError("path", path, "no such file or folder")
    given = {
        name: value for name, value in reading.items() if value is not None and value is not False
    }
    if labels:
        given["labels"] = [str(each) for each in labels] if len(labels) > 1 else labels[0]
    describe, lines = _reader(path, given)
    description = describe()
    echo(json.dumps(description, indent=2) if as_json else "\n".join(lines(description)))


def _reader(path: Path, given: Mapping[str, Any]) -> tuple[Callable[[], _Described], _Lines]:
    """Return the functions that describe the path, and that write the description for people."""
    from hytas.data.read.columns import TABLE_SUFFIXES
    from hytas.data.read.table import is_scene_folder

    if path.name.lower().endswith(TABLE_SUFFIXES) and path.is_file():
        for name, value in given.items():
            if name not in _OF_TABLE:
                raise InputError(name, value, f"is for scenes, and {path} is a table")
        return (lambda: _table(path, given)), _lines
    is_model = path.suffix.lower() == ".onnx"
    if not is_model and (not path.is_dir() or is_scene_folder(path)):
        return (lambda: _scene(path, given)), _lines
    for name, value in given.items():
        what = "a model" if is_model else "a run folder"
        raise InputError(name, value, f"is an option for scenes, but {path} is {what}")
    if is_model:
        return (lambda: _model(path)), _lines
    return (lambda: describe_run(path)), lines_of_run


def _table(path: Path, given: Mapping[str, Any]) -> _Described:
    """Describe a file of columns: points that label a scene, or spectra."""
    from hytas.data import load_scene
    from hytas.data.findings import note
    from hytas.data.interpret.columns import numbered_kinds
    from hytas.data.labels.formats import position_columns
    from hytas.data.read.columns import TEXT_SUFFIXES
    from hytas.data.spectra.load import describe_columns, frame_of

    named = [given[name] for name in ("label_column", "group_column") if name in given]
    table = describe_columns(path, named, given.get("band_columns"))
    if "label_column" in given:
        scene = load_scene(path, **given)
        groups = None if scene.groups is None else int(scene.groups.max())
        table |= {"classes": scene.class_counts(), "groups": groups}
        return table | finding_report(scene.findings)
    is_text = path.name.lower().endswith(TEXT_SUFFIXES)
    columns = list(frame_of(path)[0].columns)
    position = None if named or not is_text else position_columns(columns)
    if position is None:
        return table | finding_report(table["findings"])
    points = None if numbered_kinds(columns) else describe_shapes(path)
    described, case = (table, "table") if points is None else (points, "points")
    taken = note("points-or-table", case=case, columns=" and ".join(position))
    return described | finding_report([*described["findings"], taken])


def _model(path: Path) -> _Described:
    from hytas.data.bands import wavelength_text
    from hytas.deploy import DeployedModel

    card = (model := DeployedModel.load(path, "cpu")).card
    kept = len(card.preprocessing.get("bands", ()))
    return {
        "what": "model",
        "path": str(path),
        "bytes": path.stat().st_size,
        "sha256": file_digest(path),
        "digest inside": f"{model.checksum}, without its own entry",
        "hytas version": card.version,
        "graph": card.graph,
        "precision": card.precision
        + (", written with --force: it failed its accuracy check" if card.forced else ""),
        "temperature": card.temperature,
        "maps smoothed": "not known" if model.smoothing is None else model.smoothing.method,
        "input": _ends(card)[0],
        "output": _ends(card)[1],
        "bands kept": f"{kept} of {card.bands}",
        "wavelengths": wavelength_text(card.wavelengths),
        "scaling": card.preprocessing.get("method"),
        "scaled by": {"training": "training pixels", "scene": "each scene's own pixels"}[
            card.scale_by
        ],
        "learnt from": [f"{one['name']}, {one['pixels']} pixels" for one in card.learnt_from],
        "class shares assumed": _class_shares(card),
        "no data": card.nodata,
        "architecture": dict(card.architecture),
        "classes": dict(zip(card.class_names, card.class_ids, strict=True)),
        "provider": model.provider,
    }


def _class_shares(card: "ModelCard") -> dict[str, float] | None:
    if card.class_shares is None:
        return None
    shares = zip(card.class_names, card.class_shares["assumed"], strict=True)
    return {name: round(share, 4) for name, share in shares}


def _ends(card: "ModelCard") -> tuple[str, str]:
    from hytas.tasks import task_of_card

    side, bands, task = card.patch_size, card.bands, task_of_card(card)
    if card.graph != "patch":
        tile = f"tile (H + {side - 1}, W + {side - 1}, {bands}) {card.dtype}"
        maps = "classes (H, W) int32, confidence (H, W) float32"
        if card.graph == "smooth-scene":
            return f"{tile}, valid (H, W) bool", maps
        outputs = f"{task.output_name} (H, W, {len(card.class_ids)}) float32"
        if "classes" not in task.maps:
            return tile, outputs
        return tile, maps + (f", {outputs}" if card.smoothing is not None else "")
    patches = f"patches (N, {side}, {side}, {bands}) {card.dtype}"
    return patches, f"{task.output_name} (N, {len(card.class_ids)}) float32"


def _scene(path: Path, given: Mapping[str, Any]) -> _Described:
    from hytas.data import load_scene, open_file
    from hytas.data.bands import wavelength_text
    from hytas.data.labels.find import NO_MAP
    from hytas.data.patches import sample_spectra

    layer = given.get("labels_key")
    if given.keys() <= {"labels_key"} and (shapes := describe_shapes(path, layer)) is not None:
        return shapes | finding_report(shapes["findings"])
    facts: _Described = {"what": "scene", "path": str(path)}
    if path.suffix.lower() == ".png" and (labels := describe_labels(path)) is not None:
        return facts | labels
    if str(path) != "synthetic":
        contents = open_file(path, "path")
        variables = [str(each) for each in (*contents.variables, *contents.further)]
        facts |= {"format": contents.format, "variables": variables}
        facts |= _product(contents, given)
    try:
        scene = load_scene(path, **given)
    except InputError as error:
        is_cube_alone = error.rule == NO_MAP and given.keys() <= _OF_CUBE
        if given and not is_cube_alone and error.code not in _OF_FEW_LABELS:
            raise
        return facts | _unlabelled(path, error.render(option), given)
    facts |= {
        "size": f"{scene.height} x {scene.width} pixels",
        "bands": scene.bands,
        "type": scene.cube.dtype.name,
        "wavelengths": wavelength_text(scene.wavelengths),
        "no data": _number(scene.nodata),
        "values": describe_range(sample_spectra(scene.cube), scene.nodata),
        "labelled pixels": int((scene.labels > 0).sum()),
        "classes": scene.class_counts(),
        "class ids": list(scene.class_ids),
        **finding_report(scene.findings),
    }
    if scene.train is not None and scene.test is not None:
        counts = {"training": scene.train, "test": scene.test}
        facts["split of the file"] = {name: int((m > 0).sum()) for name, m in counts.items()}
    return facts


def _product(contents: "Contents", given: Mapping[str, Any]) -> _Described:
    """Return where a cube lies, which bands its file marks as bad, and what else it may hold."""
    import numpy as np

    from hytas.data.bands import format_bands
    from hytas.data.cube import cube_in, find_cube

    grid: Grid | None = None
    bad: tuple[int, ...] = ()
    located: set[str] = set()
    try:
        variable = find_cube(contents, given.get("cube_key"))
        cube = cube_in(contents, variable, axes=given.get("axes"))
        grid, bad = cube.grid, cube.bad_bands
    except InputError:  # of a cube that cannot be used; who reads the scene says so
        grid = next((each.grid for each in contents.variables if each.grid is not None), None)
    place = None
    if grid is not None and grid.is_placed:
        system = ", no coordinate system named" if grid.system is None else ""
        place = f"on a map grid{system}" if grid.epsg is None else f"EPSG:{grid.epsg}"
    elif grid is not None and grid.location is not None:
        located = {grid.location.latitude.name, grid.location.longitude.name}
        table = "" if grid.location.lookup is None else ", with a lookup table to a map grid"
        place = f"sensor geometry, latitudes and longitudes{table}"
    facts = {"place": place, "bad bands": format_bands(np.asarray(bad)) if bad else None}
    candidates = _candidates(contents, given, located)
    return {key: value for key, value in facts.items() if value is not None} | candidates


def _candidates(
    contents: "Contents", given: Mapping[str, Any], located: Collection[str]
) -> _Described:
    """Return the arrays of a file that could be its cube and its labels, if there are several.

    Args:
        located: names of latitudes and longitudes, which are neither.
    """
    from hytas.data.cube import cubes_in
    from hytas.data.labels.find import maps_in, split_pair

    maps = [] if "labels" in given else maps_in(contents)
    maps = [each for each in maps if each.name not in located]
    of_option = {
        "cube_key": [each for each in cubes_in(contents) if each.kind == "number"],
        "labels_key": [] if split_pair(maps) else maps,
    }
    words = {"cube_key": "could be the cube", "labels_key": "could be labels"}
    return {
        words[name]: f"{', '.join(each.name for each in arrays)} (name one with {option(name)})"
        for name, arrays in of_option.items()
        if len(arrays) > 1 and name not in given
    }


def _unlabelled(path: Path, reason: str, given: Mapping[str, Any]) -> _Described:
    """Describe a file that is not a labelled scene: its cube, if it holds one."""
    import numpy as np

    from hytas.data import open_cube, open_file, parse_bands
    from hytas.data.bands import wavelength_text
    from hytas.data.cube import cubes_in, empty_pixels
    from hytas.data.interpret.axes import map_axes
    from hytas.data.interpret.nodata import check_nodata, undeclared_in_rows

    try:
        cube = open_cube(path, given.get("cube_key"), axes=given.get("axes"))
        findings = [*cube.findings, *empty_pixels(cube)]
        sample, every = np.concatenate(cube.sampled), np.arange(cube.shape[2])
        findings += undeclared_in_rows(sample[None], cube.nodata, every)
    except InputError as error:
        may_be_map = all(map_axes(each) is not None for each in cubes_in(open_file(path, "path")))
        if may_be_map and (labels := describe_labels(path)) is not None:
            return labels
        more = [] if error.rule in reason else [error.render(option)]
        return {"problems": [reason, *more]}
    if "bands" in given:
        parse_bands(given["bands"], cube.shape[2], cube.wavelengths, cube.bad_bands)
    if "nodata" in given:
        check_nodata(given["nodata"], cube.dtype)
    return {
        "size": f"{cube.shape[0]} x {cube.shape[1]} pixels",
        "bands": cube.shape[2],
        "type": cube.dtype.name,
        "wavelengths": wavelength_text(cube.wavelengths),
        "no data": _number(cube.nodata),
        "values": describe_range(sample, cube.nodata),
        **finding_report(findings),
        "problems": [reason],
    }


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _lines(facts: Mapping[str, Any], indent: int = 0) -> list[str]:
    """Return a finding as aligned lines, with mappings and lists indented.

    Empty entries are left out.
    """
    widest = max((len(escaped(str(key))) for key in facts), default=0)
    lines: list[str] = []
    for key, value in facts.items():
        head = f"{' ' * indent}{escaped(str(key)):<{widest}}"
        if value in (None, [], {}) or key == "findings":  # `notes` has their messages
            continue
        if isinstance(value, dict):
            lines += [head.rstrip(), *_lines(value, indent + 2)]
        elif isinstance(value, list) and any(isinstance(item, str | dict) for item in value):
            lines += [
                head.rstrip(),
                *(f"{' ' * (indent + 2)}{escaped(str(item))}" for item in value),
            ]
        else:
            lines.append(f"{head}  {escaped(str(value))}")
    return lines
