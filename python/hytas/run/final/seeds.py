"""Train the winner with further seeds, and summarise all final trainings."""

from collections.abc import Callable

from hytas.metrics import summarise
from hytas.run.context import Run
from hytas.run.final.fits import fit_all, winner_fit
from hytas.run.final.stage import decide_for
from hytas.run.folder import read_json, write_json
from hytas.train.fit import Watch


def seeds_stage(run: Run, train_and_check: Callable[[Run, Run], None]) -> None:
    """Train the winner with further seeds, and write mean and deviation to the metrics.

    Every further model is exported, checked and kept in its own folder. The model of the run is
    the first one.

    Args:
        run: its first final training must be done.
        train_and_check: trains and checks the second run, which is `run` with another seed; makes
            damaged files of it again.
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
    reports, further = [first], [run.of_seed(seed) for seed in seeds[1:]]
    missing = [inner for inner in further if not inner.folder.weights.exists()]
    if missing and (run.workers is not None or run.context.data.trains_in_parallel):
        named = ", ".join(str(inner.context.config.seed) for inner in missing)
        # A network that leaves out validation pixels decides for itself, by these.
        own = run.context.holds_out_validation
        self_trains = not own and decide_for(run)[2].self_training.used
        fits = [winner_fit(inner, self_trains) for inner in missing]
        watch = Watch(deadline=run.pace.ends())
        with run.timed("further seeds"):
            fit_all(run, fits, run.training_workers, f"final training with seeds {named}", watch)
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
