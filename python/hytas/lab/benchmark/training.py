"""Train the networks of a benchmark, each once a seed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hytas.metrics import accuracy_report
from hytas.run.context import Run
from hytas.search import Training
from hytas.train.fit import Fit, Fitted
from hytas.workers import open_workers

TRAINED_FIGURES = ("OA", "AA", "kappa")
VALIDATION = "validation"
TEST = "test"


class SeededTraining(NamedTuple):
    """One training to be done: the number of a network, its genes, and the seed."""

    number: int
    architecture: Mapping[str, Any]
    seed: int


def trained_name(preset: str, seed: int) -> str:
    """Return the name of a recipe with a seed, as a table has it."""
    return f"{preset}:seed={seed}"


def run_trainings(run: Run, trials: Sequence[SeededTraining]) -> Iterator[Training]:
    """Train a network for each of the trials; yield the trainings as they end.

    A network is trained on training pixels, and validation pixels choose the best epoch. It is
    tested once, at the end. A training that diverges, runs out of memory or cannot follow the
    recipe has no figures but a reason. Trainings in the store of the run are read.

    Args:
        run: its first recipe trains all networks.
    """
    fits, source = [_fit(run, trial) for trial in trials], run.context.source
    sent = source.patch_bytes + source.scene_bytes
    on_cpu = source.device.type == "cpu"
    with open_workers(run.workers, on_cpu=on_cpu, sent_bytes=sent) as pool:
        packed = source.packed(with_data=True) if pool.elsewhere else None
        for place, fitted in run.store.run(fits, pool, sent=packed):
            yield _training(run, trials[place], fitted)
    run.store.keep_weights()


def _fit(run: Run, trial: SeededTraining) -> Fit:
    context, (_, recipe) = run.context, run.recipe
    test = {TEST: context.data.split.test}
    return Fit(trial.architecture, recipe, trial.seed, *context.final_pixels, classes=test)


def _training(run: Run, trial: SeededTraining, fitted: Fitted) -> Training:
    data, (preset, recipe) = run.context.data, run.recipe
    trained, _ = run.context.final_pixels
    test, figures = data.split.test, {}
    if not fitted.reason:
        report = accuracy_report(data.targets(test), fitted.classes[TEST], data.scene.class_names)
        figures = {name: float(report[name]) for name in TRAINED_FIGURES}
        if fitted.done.history and (validation := fitted.best.validation_oa) is not None:
            figures[VALIDATION] = validation
    steps = recipe.epochs_for(len(trained)) * recipe.steps_per_epoch(len(trained))
    name = trained_name(preset, trial.seed)
    seconds, reason = fitted.seconds, fitted.reason
    return Training(trial.number, name, steps, 0, len(test), figures, seconds, reason)
