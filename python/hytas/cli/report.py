"""`hytas report`: one page about a run, or several next to each other."""

from pathlib import Path

import click

from hytas.cli import options
from hytas.cli.progress import echo
from hytas.errors import InputError


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@options.path_option(
    "--out",
    help="The page: one HTML file that needs no network.  [default: the run's own report.html; "
    "report.html here for several runs]",
)
@options.plugin_option(expose_value=False)
def report(runs: tuple[str, ...], out: Path | None) -> None:
    """Write one page about each RUN, the folder of a search or a training.

    A run that is not finished is shown as far as it is. Several runs are compared on one page.

    \b
    hytas report runs/ip
    hytas report runs/ip-s0 runs/ip-s1 runs/ip-s2 --out seeds.html
    """
    from hytas.files import check_folder

    if out is None:
        out = Path(runs[0]) / "report.html" if len(runs) == 1 else Path("report.html")
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError("out", out, "must end in .html")
    if out.is_dir():
        raise InputError("out", out, "must be a file, not a folder")
    if len(runs) > 1 or out.parent != Path(runs[0]):
        check_folder(out, "out")
    from hytas.run.delivering.reporting import report_runs

    report_runs(runs, out)
    echo(f"written   {out} ({out.stat().st_size / 1e6:.2f} MB)")
