"""`hytas update`: a model's new weights as a small file, for a narrow uplink."""

import hashlib
from pathlib import Path

import click

from hytas.cli import options
from hytas.cli.progress import echo
from hytas.errors import InputError

ROUNDINGS = {"4bit": 4, "8bit": 8}
"""Name of a rounding -> bits of a difference."""


@click.group()
def update() -> None:
    """Send a model's new weights as a small file.

    \b
    hytas train --from runs/ip --tune small --data new.hdr --out runs/new
    hytas update make runs/ip/model.onnx runs/new/model.onnx --round 4bit --out new.delta
    hytas update apply runs/ip/model.onnx new.delta --out model.onnx
    """


@update.command()
@click.argument("old", type=options.PATH)
@click.argument("new", type=options.PATH)
@options.path_option("--out", required=True, help="The delta file.")
@click.option(
    "--round",
    "rounding",
    type=click.Choice(["none", *ROUNDINGS]),
    default="none",
    show_default=True,
    help="Round the differences of the weights, so that the delta is smaller. It then makes the "
    "rounded model, on both sides the same.",
)
@options.path_option(
    "--check",
    help="Run on whose test pixels the rounded model is checked.  [default: the folder of NEW]",
)
@click.option("--force", is_flag=True, help="Write the delta even if the check fails.")
@options.plugin_option(expose_value=False)
def make(old: Path, new: Path, out: Path, rounding: str, check: Path | None, force: bool) -> None:
    """Write the difference between OLD and NEW: ONNX files of `hytas export`, or runs.

    A rounded model must give 99 % of the labels of NEW and lose at most 0.5 points of OA.
    """
    from hytas.deploy.delta import make_delta, round_difference
    from hytas.deploy.model_file import check_model, read_model

    _check_apart(out, old, new)
    before, exact = (read_model(path) for path in (old, new))
    for content, path in ((before, old), (exact, new)):
        check_model(content, path)
    after, rounded = exact, None
    if rounding != "none":
        bits = ROUNDINGS[rounding]
        after, rounded = round_difference(before, exact, bits)
        if (run := check or run_of(new)) is None:
            echo("note: the rounded model is not checked: `--check RUN` names a run that does it")
        else:
            echo(_checked(after, exact, run, bits, force))
    delta = make_delta(before, after, rounded)
    _write(out, delta)
    share = len(delta) / len(after)
    echo(f"written   {out}: {len(delta):,} bytes, {share:.1%} of {len(after):,}")
    echo(f"it makes  the file with SHA-256 {hashlib.sha256(after).hexdigest()}")


def run_of(model: Path) -> Path | None:
    """Return the folder of a run, or that of its model file; None for another file."""
    folder = model if model.is_dir() else model.parent
    return folder if (folder / "config.json").is_file() else None


def _checked(after: bytes, exact: bytes, run: Path, bits: int, force: bool) -> str:
    """Say how a rounded model does on the test pixels of a run."""
    from hytas.data import Split
    from hytas.export import ExportError
    from hytas.export.updates import check_rounded
    from hytas.run import RunFolder

    folder = RunFolder(run)
    config, _ = folder.read_config()
    pixels = Split.load(folder.split).test
    try:
        check = check_rounded(after, exact, config.load_scene(), pixels, bits)
    except ExportError as refusal:
        if not force:
            raise
        return f"forced    {refusal.rule}"
    if "agreement" not in check:
        change = f"R2 {check['R2_torch']:.4f} -> {check['R2']:.4f}"
        return f"checked   {change} on {check['pixels']:,} test pixels"
    return (
        f"checked   {check['agreement']:.2%} of the labels on {check['pixels']:,} test pixels, "
        f"OA {check['OA_torch']:.4f} -> {check['OA']:.4f}"
    )


@update.command()
@click.argument("old", type=options.PATH)
@click.argument("delta", type=options.PATH)
@options.path_option("--out", required=True, help="The new model file.")
def apply(old: Path, delta: Path, out: Path) -> None:
    """Write the model file that DELTA makes of OLD; it equals the full file to the byte."""
    from hytas.deploy.delta import apply_delta
    from hytas.deploy.model_file import read_model

    _check_apart(out, old, delta)
    if not delta.is_file():
        raise InputError("delta", delta, "must be a file; there is none")
    new = apply_delta(read_model(old), delta.read_bytes(), delta)
    _write(out, new)
    echo(f"written   {out}: {len(new):,} bytes, checked by SHA-256")


def _check_apart(out: Path, *inputs: Path) -> None:
    from hytas.files import check_folder

    check_folder(out, "out")
    for path in inputs:
        if out.resolve() == path.resolve():
            raise InputError("out", out, "must be a file of its own; it is also an input")


def _write(out: Path, content: bytes) -> None:
    from hytas.files import atomic_write

    with atomic_write(out) as temporary:
        temporary.write_bytes(content)
