"""Train the winner with further seeds, and summarise all final trainings."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from hytas.metrics import summarise
from hytas.run.context import Run
from hytas.run.final.stage import decide_for, winner_task
from hytas.run.final.tasks import complete_all
from hytas.run.folder import read_json, write_json


def seeds_stage(
    run: Run, train_and_check: Callable[[Run, Run], None], *, shares_records: bool = True
) -> None:
    """Train the winner with further seeds, and write mean and deviation to the metrics.

    Every further model is exported, checked and kept in its own folder. The model of the run is
    the first one.

    Args:
        run: its first final training must be done.
        train_and_check: trains and checks the second run, which is `run` with another seed; makes
            damaged files of it again.
        shares_records: whether the records of the first training decide for the others, too.
    """
    config, folder = run.context.config, run.folder
    first = read_json(folder.metrics)
    seeds = [config.seed + number for number in range(config.seeds)]
    # Without a "seeds" entry, only the first seed has been trained.
    summary = first.pop("seeds", None)
    if config.seeds == 1:
        if summary is not None:
            write_json(folder.metrics, first)
        return
    reports, further = (
        [first],
        [run.of_seed(seed, shares_records=shares_records) for seed in seeds[1:]],
    )
    for inner in further:
        copy_choice(run, inner)
    missing = [inner for inner in further if not inner.folder.weights.exists()]
    if run.workers is not None or run.context.data.trains_in_parallel:
        named = ", ".join(str(inner.context.config.seed) for inner in missing)
        # Their records are the first training's: without these, each decides for itself.
        self_trains = shares_records and decide_for(run)[2].self_training.used
        tasks = [replace(winner_task(inner), self_trains=self_trains) for inner in missing]
        with run.timed("further seeds") if tasks else nullcontext():
            complete_all(
                tasks,
                run.context.data,
                run.training_workers,
                f"final training with seeds {named}",
                run.report,
            )
    for inner in further:
        if not inner.folder.metrics.exists():
            run.report.line(f"final training with seed {inner.context.config.seed}")
        train_and_check(run, inner)
        reports.append(read_json(inner.folder.metrics))
    values = {"of": seeds, **summarise([one["test"] for one in reports])}
    if all(one.get("smoothed") for one in reports):
        values["smoothed"] = summarise([one["smoothed"] for one in reports])
    if values != summary:
        write_json(folder.metrics, {**first, "seeds": values})


def copy_choice(run: Run, inner: Run) -> None:
    """Give the folder of a further seed the architecture and the recipe of the run."""
    for name in ("architecture", "recipe"):
        own, copy = getattr(run.folder, name), getattr(inner.folder, name)
        fault = inner.folder.manifest.fault(copy)
        if fault is not None:
            run.report.notice(f"{inner.folder.path.name}/{copy.name}: {fault}: copied again")
        if own.exists() and (fault is not None or not copy.exists()):
            write_json(copy, read_json(own))
            inner.folder.manifest.record([copy])
