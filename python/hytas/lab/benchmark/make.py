"""Make a benchmark: draw networks, score them with proxies, train all of them."""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hytas._engine import Feasible
from hytas.data import LabelledData
from hytas.errors import InputError
from hytas.files import csv_text, write_text
from hytas.lab.analysis.tables import BENCHMARK_TABLE
from hytas.metrics import accuracy_report, mean_of_known
from hytas.proxies import PROXIES, Evaluator, base_proxies, parse_proxies, with_workers
from hytas.proxies.score_table import field_text, genes_of
from hytas.run.choosing.searching import patches_for_proxies
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_run
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.run.pace import Invocation
from hytas.run.progress import SILENT, Report
from hytas.search import Evaluation, EvaluationStore, Training, scored
from hytas.train import Recipe
from hytas.train.fit import Fit, Fitted
from hytas.workers import WorkersLike, open_workers

CARD = "benchmark.json"
CHUNK = 16  # networks between two writes, where this process alone scores
WRITE_SECONDS = 60.0
"""Interval at which the table is written while networks train."""
TRAINED_FIGURES = ("OA", "AA", "kappa")
VALIDATION, SECONDS, TEST = "validation", "train_seconds", "test"
MOST_DRAWS = 64
"""Draws for a network, at most; if most draws repeat others, there are no more architectures."""


def all_proxies() -> str:
    """Return the names of all proxies that need no supernet, with commas."""
    return ",".join(name for name, proxy in PROXIES.items() if not proxy.needs_supernet)


def make_benchmark(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    networks: int,
    workers: WorkersLike = None,
    device: str = "auto",
    report: Report = SILENT,
    command: Invocation = Invocation(),
) -> Path:
    """Write a table of trained networks of a budget; return its path.

    The same call goes on where one was stopped, even by a kill. More networks or more seeds extend
    a table that is there.

    Args:
        config: budget, space, proxies and how to train; it names one recipe. Each network is
            trained `config.seeds` times.
        scene: or set of images, to train and to test on.
        out: folder of the table, its card, and the state of the work.
        networks: how many, distinct.
        workers: where networks are scored and trained (`hytas.workers.open_workers`).
    """
    if len(config.recipes) != 1:
        raise InputError(
            "recipe", ",".join(config.recipes), "a benchmark trains all networks by one recipe"
        )
    drawn: list[dict[str, Any]] = []

    def check(context: RunContext) -> None:
        feasible = context.feasible or Feasible(context.space)
        drawn.extend(draw_architectures(feasible, networks, config.seed))

    with open_run(out, config, scene, device, report, check, command, workers) as run:
        _check_card(run.folder, *run.recipe)
        with EvaluationStore(run.folder.evaluations) as store:
            _write(run, store)
            _score(run, drawn, store)
            _train(run, drawn, store)
            _write(run, store)
        return run.folder.path / BENCHMARK_TABLE


def draw_architectures(feasible: Feasible, number: int, seed: int) -> list[dict[str, Any]]:
    """Return `number` distinct architectures that fit; fewer of them are a beginning of more.

    Each choice of a gene is drawn with equal probability.
    """
    if number < 1:
        raise InputError("networks", number, "must be 1 or more")
    draws = number
    while draws <= MOST_DRAWS * number:
        genomes = feasible.sample(draws, seed, "choices")
        first = {genome.tobytes(): place for place, genome in reversed(list(enumerate(genomes)))}
        if len(first) >= number:
            return feasible.space.unpack(genomes[sorted(first.values())[:number]])
        draws *= 2
    rule = f"the budget has no more than about {len(first)} architectures"
    hint = "ask for fewer, or for a larger budget"
    raise InputError("networks", number, rule, hint)


def _check_card(folder: RunFolder, preset: str, recipe: Recipe) -> None:
    path = folder.path / CARD
    if not path.exists():
        return
    card = read_json(path)
    for name, wanted in (("preset", preset), ("recipe", recipe.to_dict())):
        if card.get(name) != wanted:
            raise InputError(
                "out", folder.path, f"belongs to another {name}", hint="choose another folder"
            )


def _score(run: Run, drawn: Sequence[dict[str, Any]], store: EvaluationStore) -> None:
    context, config = run.context, run.context.config
    done = store.evaluations()
    if any(item.architecture != drawn[item.id] for item in done if item.id < len(drawn)):
        raise InputError(store.path, rule="holds other networks", hint="choose another folder")
    specs = parse_proxies(config.proxy)
    evaluator = Evaluator(
        list(map(str, base_proxies(specs))),
        context.data.shape,
        batch=patches_for_proxies(context.data, specs, config.seed),
        device=str(context.device),
        seed=config.seed,
    )
    number = len(done)
    with with_workers(evaluator, run.workers, run.report.line) as scorer:
        missing = list(enumerate(drawn))[number:]
        for evaluations in scored(context.space, scorer, 0, missing, CHUNK):
            store.add(evaluations)
            number += len(evaluations)
            run.report.line(f"scored {number} of {len(drawn)} networks")


class _Trial(NamedTuple):
    """A training to be done: the number of a network, its genes, and the seed."""

    number: int
    architecture: Mapping[str, Any]
    seed: int


def _train(run: Run, drawn: Sequence[dict[str, Any]], store: EvaluationStore) -> None:
    """Train the networks seed by seed, and write the table periodically."""
    trials = [
        _Trial(number, architecture, seed)
        for seed in _seeds(run.context.config)
        for number, architecture in enumerate(drawn)
    ]
    known = {(one.id, one.recipe) for one in store.trainings()}
    done, began = 0, time.monotonic()
    written = began
    for training in _trainings(run, trials):
        done += 1
        store.add_training(training)
        if (training.id, training.recipe) in known:
            continue
        reached = training.reason or f"OA {training.figures['OA']:.4f}"
        left = (time.monotonic() - began) / done * (len(trials) - done)
        run.report.line(
            f"trained {done} of {len(trials)}: network {training.id}, {training.recipe}, "
            f"{reached}, {training.seconds:.0f} s; about {left / 60:.0f} min left"
        )
        if time.monotonic() - written > WRITE_SECONDS:
            _write(run, store)
            written = time.monotonic()


def _trainings(run: Run, trials: Sequence[_Trial]) -> Iterator[Training]:
    """Train a network for each of the trials by the first recipe; yield the trainings as they end.

    Validation pixels choose the best epoch, and the test comes once, at the end. A training that
    diverges, runs out of memory or cannot follow the recipe has no figures but a reason.
    """
    context, (_, recipe) = run.context, run.recipe
    test = {TEST: context.data.split.test}
    fits = [
        Fit(trial.architecture, recipe, trial.seed, *context.final_pixels, classes=test)
        for trial in trials
    ]
    source = context.source
    sent = source.patch_bytes + source.scene_bytes
    on_cpu = source.device.type == "cpu"
    with open_workers(run.workers, on_cpu=on_cpu, sent_bytes=sent) as pool:
        packed = source.packed(with_data=True) if pool.elsewhere else None
        for place, fitted in run.store.run(fits, pool, sent=packed):
            yield _training(run, trials[place], fitted)
    run.store.keep_weights()


def _training(run: Run, trial: _Trial, fitted: Fitted) -> Training:
    data, (preset, recipe) = run.context.data, run.recipe
    trained, _ = run.context.final_pixels
    test, figures = data.split.test, {}
    if not fitted.reason:
        report = accuracy_report(data.targets(test), fitted.classes[TEST], data.scene.class_names)
        figures = {name: float(report[name]) for name in TRAINED_FIGURES}
        if fitted.done.history and (validation := fitted.best.validation_oa) is not None:
            figures[VALIDATION] = validation
    steps = recipe.epochs_for(len(trained)) * recipe.steps_per_epoch(len(trained))
    name = _trained_name(preset, trial.seed)
    seconds, reason = fitted.seconds, fitted.reason
    return Training(trial.number, name, steps, 0, len(test), figures, seconds, reason)


def _trained_name(preset: str, seed: int) -> str:
    """Return the name of a recipe with a seed, as a table has it."""
    return f"{preset}:seed={seed}"


def _seeds(config: RunConfig) -> list[int]:
    return [config.seed + number for number in range(config.seeds)]


def _write(run: Run, store: EvaluationStore) -> None:
    """Write the card, and the table of the networks so far."""
    preset, recipe = run.recipe
    evaluations, trainings = store.evaluations(), store.trainings()
    table = run.folder.path / BENCHMARK_TABLE
    context, config = run.context, run.context.config
    if evaluations:
        done = {(one.id, one.recipe): one for one in trainings}
        rows = [
            _reached(
                item,
                {seed: done.get((item.id, _trained_name(preset, seed))) for seed in _seeds(config)},
            )
            for item in evaluations
        ]
        write_text(table, _table(evaluations, rows))
    recorded = read_json(run.folder.config)
    card = {
        "benchmark": 1,
        "scene": context.data.scene.name,
        "fingerprint": context.data.scene.fingerprint,
        "split": {**config.split.options(), "kind": context.data.split.kind},
        "pixels": {
            name: len(getattr(context.data.split, name)) for name in ("train", "validation", "test")
        },
        "shape": context.data.shape.variables(),
        "space": config.space,
        "budget": config.budget,
        "seeds": _seeds(run.context.config),
        "preset": preset,
        "recipe": recipe.to_dict(),
        "trained_on": config.final_training_on,
        "proxies": config.proxy,
        "versions": recorded.get("versions", {}),
        "networks": len(evaluations),
        "trainings": len(trainings),
        "failed": sum(bool(item.reason) for item in trainings),
        "sha256": hashlib.sha256(table.read_bytes()).hexdigest() if evaluations else None,
    }
    write_json(run.folder.path / CARD, card)


def _table(evaluations: Sequence[Evaluation], figures: Sequence[Mapping[str, Any]]) -> str:
    """Return a line for each network as CSV: its genes and its figures."""
    genes = genes_of([item.architecture for item in evaluations])
    rows: list[Iterable[str]] = [[*genes, *figures[0]]]
    for item, own in zip(evaluations, figures, strict=True):
        values = (*(item.architecture.get(name) for name in genes), *own.values())
        rows.append(map(field_text, values))
    return csv_text(rows)


def _reached(item: Evaluation, trained: Mapping[int, Training | None]) -> dict[str, Any]:
    """Return the columns of a network that follow its genes.

    A figure without a seed, such as "OA", is the mean over the seeds; "OA:seed=0" is that of one.
    None is a value that there is not.

    Args:
        trained: seed -> training.
    """
    means: dict[str, Any] = {}
    of_seeds: dict[str, Any] = {}
    for name in (*TRAINED_FIGURES, VALIDATION, SECONDS):
        values = {seed: _figure(training, name) for seed, training in trained.items()}
        means[name] = mean_of_known(list(values.values()))
        of_seeds |= {f"{name}:seed={seed}": value for seed, value in values.items()}
    failed = {one.recipe: one.reason for one in trained.values() if one is not None and one.reason}
    reasons = {**item.reasons, **failed}
    return {
        **item.costs,
        **item.scores,
        "seconds": item.seconds,
        **means,
        **of_seeds,
        "reasons": json.dumps(reasons) if reasons else None,
    }


def _figure(training: Training | None, name: str) -> float | None:
    if training is None or training.reason:
        return None
    return training.seconds if name == SECONDS else training.figures.get(name)
