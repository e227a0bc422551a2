"""`hytas update`: a model's new weights as a small file, for a narrow uplink."""

from pathlib import Path

import click

from hytas.cli.progress import echo
from hytas.errors import InputError

_FILE = click.Path(path_type=Path)


@click.group()
def update() -> None:
    """Send a model's new weights as a small file.

    \b
    hytas train --from runs/ip --tune small --data new.hdr --out runs/new
    hytas update make runs/ip/model.onnx runs/new/model.onnx --out new.delta
    hytas update apply runs/ip/model.onnx new.delta --out model.onnx
    """


@update.command()
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@click.option("--out", type=_FILE, required=True, help="The delta file.")
def make(old: Path, new: Path, out: Path) -> None:
    """Write the difference between OLD and NEW, two ONNX files of `hytas export`."""
    from hytas.deploy.delta import make_delta
    from hytas.deploy.model_file import examine, read_model

    _check_apart(out, old, new)
    contents = [read_model(path) for path in (old, new)]
    for content, path in zip(contents, (old, new), strict=True):
        examine(content, path)
    delta = make_delta(*contents)
    _write(out, delta)
    share = len(delta) / len(contents[1])
    echo(f"written   {out}: {len(delta):,} bytes, {share:.1%} of {len(contents[1]):,}")


@update.command()
@click.argument("old", type=_FILE)
@click.argument("delta", type=_FILE)
@click.option("--out", type=_FILE, required=True, help="The new model file.")
def apply(old: Path, delta: Path, out: Path) -> None:
    """Write the model file that DELTA makes of OLD; it equals the full file to the byte."""
    from hytas.deploy.delta import apply_delta
    from hytas.deploy.model_file import read_model

    _check_apart(out, old, delta)
    if not delta.is_file():
        raise InputError(f"delta: no such file: {delta}")
    new = apply_delta(read_model(old), delta.read_bytes(), delta)
    _write(out, new)
    echo(f"written   {out}: {len(new):,} bytes, checked by SHA-256")


def _check_apart(out: Path, *inputs: Path) -> None:
    from hytas.files import check_folder

    check_folder(out, f"--out {out}")
    if out.is_dir():
        raise InputError(f"--out {out}: is a folder; a file name is needed")
    for path in inputs:
        if out.resolve() == path.resolve():
            raise InputError(f"--out {out}: is also an input; an output must be a file of its own")


def _write(out: Path, content: bytes) -> None:
    from hytas.files import atomic_write

    with atomic_write(out) as temporary:
        temporary.write_bytes(content)
