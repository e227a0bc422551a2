"""Train the winner with further seeds, and summarise all final trainings."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hytas.metrics import summarise
from hytas.run.context import Run
from hytas.run.final.fits import fit_all
from hytas.run.final.stage import decide_for
from hytas.run.final.task import final_task
from hytas.run.folder import read_json


def seeds_of(run: Run) -> Iterator[Run]:
    """Yield the runs of further seeds, whose fits are done in parallel where there are workers.

    Each model is exported, checked and kept in a folder of its own. That of the run is the first.

    Args:
        run: its first final training must be done.
    """
    seeds = _seeds(run)[1:]
    if not seeds:
        return
    run.report.stage("seeds")
    further = [run.of_seed(seed) for seed in seeds]
    missing = [inner for inner in further if not inner.folder.is_trained]
    if missing and (run.workers is not None or run.context.data.trains_in_parallel):
        named = ", ".join(str(inner.context.config.seed) for inner in missing)
        task = replace(final_task(run), workers=run.training_workers)
        # A network that leaves out validation pixels decides for itself, by these.
        self_trains = not task.holds_out and decide_for(task, run.context)[2].self_training.used
        fits = [final_task(inner).winner(self_trains) for inner in missing]
        with run.timed("further seeds"):
            fit_all(task, fits, run.report, f"final training with seeds {named}")
    for inner in further:
        run.report.line(f"final training with seed {inner.context.config.seed}")
        yield inner


def summary_of(run: Run, first: dict[str, Any]) -> dict[str, Any] | None:
    """Return mean and deviation over the seeds of a run; None with one seed, or before all ended.

    Args:
        first: the figures of the first seed.
    """
    seeds = _seeds(run)
    paths = [run.folder.path / f"seed-{seed}" / run.folder.metrics.name for seed in seeds[1:]]
    if not paths or not all(path.is_file() for path in paths):
        return None
    reports = [first, *map(read_json, paths)]
    values = {"of": seeds, **summarise([one["test"] for one in reports])}
    if all(one.get("smoothed") for one in reports):
        values["smoothed"] = summarise([one["smoothed"] for one in reports])
    return values


def _seeds(run: Run) -> list[int]:
    """Return the seeds of a run; a run of a further seed has no others."""
    config = run.context.config
    if run.first is not None:
        return [config.seed]
    return [config.seed + number for number in range(config.seeds)]
