"""`hytas scenes`: the scenes that are known by name."""

import json
from typing import Any

import click

from hytas.cli import options
from hytas.cli.progress import aligned_cells, echo


@click.command()
@options.json_option
def scenes(as_json: bool) -> None:
    """List the scenes that are known by name, and their files.

    A file is downloaded when it is first used; --data-dir names a folder that holds it.

    \b
    hytas search --data indian_pines --budget 500K-params
    hytas search --data salinas --data-dir ~/scenes --budget 500K-params
    """
    from hytas.data.datasets import SCENES, cache_folder, cached

    table: list[dict[str, Any]] = [
        {
            "name": name,
            "split": "fixed maps"
            if scene.train_counts is None or len(scene.files) == 1
            else f"random, {sum(scene.train_counts)} training pixels",
            "files": [file.name for file in scene.files],
            "here": all(cached(file).is_file() for file in scene.files),
        }
        for name, scene in SCENES.items()
    ]
    if as_json:
        click.echo(json.dumps(table, indent=1))
        return
    rows = [("name", "split", "downloaded")]
    rows += [(one["name"], one["split"], "yes" if one["here"] else "no") for one in table]
    files = ["files", *(", ".join(one["files"]) for one in table)]
    for line, names in zip(aligned_cells(rows), files, strict=True):
        echo(f"{line}  {names}")
    echo(f"downloads go to {cache_folder()}")
