"""The report of runs: the stage that ends a run, and reports of runs that are there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hytas.errors import InputError, one_line
from hytas.report import write_report
from hytas.run.context import Run
from hytas.run.delivering.findings import run_facts
from hytas.run.folder import RunFolder


def report_stage(run: Run) -> None:
    """Write the report of the run; it is left alone if it would not change."""
    with _told([run.folder.path]):
        write_report(run.folder.report, [run_facts(run.folder, shape=run.context.data.shape)])


def report_runs(runs: Sequence[str | Path], out: str | Path) -> None:
    """Write one page about a run, or about several side by side.

    Args:
        runs: their folders, which are only read.
        out: an HTML file; the report of one of the runs itself is written under its lock.
    """
    if not runs:
        raise InputError("runs", rule="none given", hint="a report needs at least one")
    with _told(runs):
        folders = [RunFolder(path) for path in runs]
        first, _ = folders[0].read_config()
        facts = [run_facts(one, first=None if one is folders[0] else first) for one in folders]
        for folder in folders:
            if Path(out).resolve() == folder.report.resolve():
                with RunFolder(folder.path) as held:  # its manifest knows the report
                    held.manifest.forget([held.report])
                    write_report(held.report, facts)
                    held.manifest.record([held.report])
                return
        write_report(out, facts)


@contextmanager
def _told(runs: Sequence[str | Path]) -> Iterator[None]:
    """Turn what files with other values than hytas writes lead to into one line."""
    try:
        yield
    except (InputError, OSError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        names = ", ".join(map(str, runs))
        raise InputError(
            names, rule=f"files with values that no run has ({one_line(error)})"
        ) from None
