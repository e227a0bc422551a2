"""What `hytas inspect` says of the folder of a run; imports no torch."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hytas.errors import InputError, escaped, one_line

_Described = dict[str, Any]
MODEL = "model.onnx"
PARTS = ("config", "architecture", "metrics")


def describe_run(path: Path) -> _Described:
    """Return the files of a run, its configuration, its winner and its figures."""
    from hytas.files import parse_json
    from hytas.manifest import Manifest

    files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    facts: _Described = {"what": "run folder", "path": str(path)}
    facts["files"] = {file.name: file.stat().st_size for file in files}
    for name in PARTS:
        if (file := path / f"{name}.json").is_file():
            facts[name] = parse_json(file.read_bytes(), f"path: {file}")
    if not any(name in facts for name in PARTS):
        rule = "is not a run folder: it holds no config.json"
        raise InputError("path", path, rule, "of a scene, name its file")
    if (model := path / MODEL).is_file():
        facts["model sha256"] = file_digest(model)
    problems = []
    for place in (path, *sorted(file.parent for file in path.glob("*/manifest.json"))):
        manifest, inside = Manifest(place), "" if place == path else f"{place.name}/"
        faults = {"manifest.json": "damaged"} if manifest.damaged else manifest.faults()
        problems += [f"{inside}{name}: {fault}" for name, fault in faults.items()]
    return facts | ({"problems": problems} if problems else {})


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as sha256sum prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def lines_of_run(facts: Mapping[str, Any]) -> list[str]:
    """Return a run in about ten lines; its problems come last."""
    try:
        return _lines(facts)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        rule = f"its files are not those of a run ({one_line(error)})"
        raise InputError("path", facts["path"], rule) from None


def _lines(facts: Mapping[str, Any]) -> list[str]:
    files = facts["files"]
    size = sum(files.values()) / 2**20
    lines = [("run", f"{facts['path']}: {len(files)} files, {size:.1f} MB")]
    lines += _settings(facts.get("config", {}).get("config", {}))
    lines += _reached(facts)
    if "model sha256" in facts:
        lines.append(("model", f"{MODEL}: {files[MODEL]} bytes, sha256 {facts['model sha256']}"))
    if "metrics" not in facts:
        lines.append(("unfinished", "the command that began it goes on with it"))
    lines += [("problem", problem) for problem in facts.get("problems", ())]
    return [f"{head:<11} {escaped(text)}" for head, text in lines]


def _settings(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not config:
        return []
    config = {name: value for table in config.values() for name, value in table.items()}
    labels = "" if config.get("labels") is None else f", labels {config['labels']}"
    return [
        ("scene", f"{config.get('data')}{labels}"),
        (
            "search",
            f"{config.get('budget')} in {config.get('space')}, by {config.get('proxy')}, "
            f"generations {config.get('generations')}, population {config.get('population')}, "
            f"seed {config.get('seed')}",
        ),
    ]


def _reached(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    from hytas.results import RunResults
    from hytas.spaces.genes import describe_kind

    lines, metrics = [], facts.get("metrics")
    if "architecture" in facts:
        costs = (metrics or {}).get("costs", {})
        size = f": {costs['params']:.0f} parameters" if "params" in costs else ""
        lines.append(("winner", describe_kind(facts["architecture"]) + size))
    if metrics is None:
        return lines
    results = RunResults.of(metrics)
    lines.append(("test", f"{results.headline}, {results.split.get('kind')} split"))
    if results.comparison is not None and results.comparison.verdict:
        lines.append(("compared", results.comparison.verdict))
    return [*lines, *(("decided", text) for text in results.decisions())]
