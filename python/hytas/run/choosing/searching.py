"""The stages that choose an architecture: the search by proxies, and the race."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.errors import InputError, one_line
from hytas.plugins import brings
from hytas.proxies import (
    Evaluator,
    ProxySpec,
    base_proxies,
    fitness,
    parse_proxies,
    proxy_batch,
    with_workers,
)
from hytas.race import (
    MANY_PIXELS,
    CandidateTrainer,
    RaceListener,
    RaceProgress,
    Racer,
    RaceTask,
    RungEnd,
    choose_finalists,
    find_ranking,
    race,
    race_scores,
    results_by_racer,
    size_classes,
    size_of,
    size_rows,
    smaller_finalists,
    smallest_as_good,
)
from hytas.run.choosing.converted import describe_conversion, write_converted
from hytas.run.choosing.front import write_front, write_trained_front
from hytas.run.choosing.latency import within_latency
from hytas.run.choosing.lengths import keep_plan, read_plan, shorter_training, within_minutes
from hytas.run.choosing.methods import begin_methods, record_methods
from hytas.run.context import Run, RunContext
from hytas.run.folder import read_json, write_json
from hytas.run.pace import RACE_ENDS, SEARCH_ENDS
from hytas.run.prepared import PreparedData
from hytas.run.progress import Report
from hytas.run.settings import EFFORTS, OWN_PROXY
from hytas.run.supernet import inherited_score
from hytas.search import (
    TRAINED_ACCURACY,
    TRAINED_STEPS,
    Evaluation,
    EvaluationStore,
    SearchWatch,
    StrategySettings,
    search,
)
from hytas.search.ranks import rank_in_kinds
from hytas.search.strategies import STRATEGIES
from hytas.spaces import parse_budget
from hytas.spaces.architectures import read_architectures
from hytas.spaces.names import linear_architecture
from hytas.store import Store
from hytas.workers import open_workers

LINEAR_ID = -(10**6)
"""Number of the first network in closed form in a store; those of `start_with` are larger."""
Ranks = Callable[[Sequence[Evaluation]], NDArray[np.float64]]


def check_search(context: RunContext) -> None:
    """Refuse, before any work, a race that cannot be done after the search."""
    races = finalist_count(context) > 1
    if context.config.trained_front and not races:
        rule = "accuracy is that of finalists which race, and there is no race"
        raise InputError("pareto", context.config.pareto, rule)
    if context.config.prefer == "small" and not races:
        rule = "chooses among finalists whose sizes a race compares, and there is no such race"
        raise InputError("prefer", "small", rule, "leave it out")
    known_architectures(context)
    if context.config.supernet is not None:
        inherited_score(context, context.config.supernet)


def known_architectures(context: RunContext) -> list[dict[str, Any]]:
    """Return the architectures of `start_with`."""
    assert context.feasible is not None  # a run without a budget does not search
    architectures = []
    for path in context.config.start_with:
        for architecture in read_architectures(path):
            try:
                genome = context.space.pack([architecture])
            except (TypeError, ValueError) as error:
                raise InputError("start_with", path, one_line(error)) from None
            if not context.feasible.contains(genome)[0]:
                rule = f"does not fit the budget {context.config.budget}"
                raise InputError("start_with", path, rule)
            architectures.append(architecture)
    return architectures


def search_stage(run: Run) -> None:
    """Search the architectures that fit the budget with proxies, and keep all in the store."""
    context, config = run.context, run.context.config
    assert context.feasible is not None  # a run without a budget does not search
    inherited = None if config.supernet is None else inherited_score(context, config.supernet)
    races = finalist_count(context) > 1
    if races:
        with EvaluationStore(run.folder.evaluations) as store:
            begin_methods(run, race_task(context, run.store), store)
        if run.trainers is not None:
            run.trainers.start()
    search_with(run, inherited)
    if races:
        with EvaluationStore(run.folder.evaluations) as store:
            record_methods(run, race_task(context, run.store), store)


def search_with(run: Run, inherited: Callable[[Mapping[str, Any]], float] | None) -> None:
    """Score architectures of the budget; `inherited` is the score of the proxy of that name."""
    context, config, report = run.context, run.context.config, run.report
    assert context.feasible is not None
    evaluator = Evaluator(
        config.proxy,
        context.data.shape,
        batch=patches_for_proxies(context.data, parse_proxies(config.proxy), config.seed),
        device=_scoring_device(context),
        seed=config.seed,
        inherited=inherited,
    )
    if config.proxy == OWN_PROXY and brings("network", context.space.name):
        report.notice(f"candidates of {context.space.name} are scored by {OWN_PROXY}")
    settings = StrategySettings(
        config.selection,
        config.population,
        config.generations,
        config.seed,
        minimised=config.minimised,
        operators=config.operators,
    )
    kept = read_plan(run.folder.pace)
    with (
        _trainer(run) as train,
        with_workers(evaluator, run.workers, report.line) as scorer,
        EvaluationStore(run.folder.evaluations) as store,
    ):
        result = search(
            context.feasible,
            scorer,
            _fitness(context),
            settings,
            store,
            start_with=known_architectures(context),
            train=train,
            watch=SearchWatch(
                report.search,
                report.notice,
                lambda: "candidates" in kept or not run.pace.left(SEARCH_ENDS),
            ),
        )
        failed = store.evaluations() if result.failed else []
    if run.pace.minutes and result.evaluated < settings.evaluations and not result.exhausted:
        keep_plan(run, candidates=(result.evaluated, settings.evaluations))
    if result.exhausted:
        report.line(f"every architecture that fits was scored: {result.evaluated}")
    if failed:
        reasons = (why for item in failed for why in item.reasons.values())
        report.line(
            f"{result.failed} of {result.evaluated} architectures got no score; the first reason: "
            f"{next(reasons, 'not known')}"
        )
    if config.minimised:
        front, picture = run.folder.front, run.folder.front_picture
        write_front(front, picture, result.front, config.minimised)
        report.line(
            f"Pareto front of {_counted(len(result.front), 'architecture')}: {front.name}, "
            f"{picture.name}"
        )


@contextmanager
def _trainer(run: Run) -> Iterator[CandidateTrainer | None]:
    """Train candidates of the search, if its strategy does and there are validation pixels."""
    made = STRATEGIES.get(run.context.config.strategy)
    if not getattr(made, "trains", False):
        yield None
        return
    if not len(run.context.data.split.validation):
        rule = "trains candidates, and the split has no validation pixels"
        raise InputError("strategy", run.context.config.strategy, rule)
    task = race_task(run.context, run.store)
    device, sent = task.fits.source.device, task.fits.source.patch_bytes
    on_cpu = device.type == "cpu"
    with open_workers(
        run.training_workers, on_cpu=on_cpu, sent_bytes=sent, shared_gpu=device
    ) as pool:
        yield CandidateTrainer(task, pool, run.report.line)


def race_stage(run: Run) -> None:
    """Let the finalists of the search race on validation pixels, and write the winner.

    With one finalist there is no race: the first choice of the search wins.
    """
    context, config = run.context, run.context.config
    finalists = finalist_count(context)
    if finalists == 1 and config.finalists is None:
        run.report.notice(
            "no race: the split has no validation pixels; the proxy's first choice wins"
        )
    with EvaluationStore(run.folder.evaluations) as store:
        task = race_task(context, run.store)
        if run.pace.minutes and finalists > 1:
            task = within_minutes(run, task, ranked_evaluations(context, store))
        if finalists > 1:
            listener = _Listener(run.report)
            winner = hold_race(run, task, store, listener)
            _show_ladder(run, task, store, winner)
            if task.target:
                facts = write_converted(run.folder.converted, task.target, store, winner)
                run.report.notice(describe_conversion(task.target, facts))
            if task.front:
                last, path = listener.ended[-1], run.folder.trained_front
                pixels = sum(len(held_out) for _, held_out in task.all_folds[: last.folds])
                front = write_trained_front(path, task.front, store, last, pixels)
                run.report.notice(
                    f"trained Pareto front of {_counted(len(front['networks']), 'network')}, "
                    f"hypervolume {front['hypervolume']:.3f}: {path.name}"
                )
        else:
            best, *_ = ranked_evaluations(context, store)
            winner = Racer(best, next(iter(config.recipes)))
    write_json(run.folder.recipe, {"preset": winner.recipe})
    write_json(run.folder.architecture, winner.finalist.architecture)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _scoring_device(context: RunContext) -> str:
    """Return where candidates are scored: on the CPU where that is one patch by a small network.

    On a GPU such a pass is some hundred operations that take longer to start than to compute; a
    process a core is faster (docs/measured.md).
    """
    needed = any(
        spec.proxy.needs_data or spec.proxy.needs_supernet
        for spec in base_proxies(parse_proxies(context.config.proxy))
    )
    small = context.data.trains_in_parallel and not needed
    return "cpu" if small else str(context.device)


def shorten_training(run: Run) -> None:
    """With minutes, write to the recipe the length of a final training that has yet to begin."""
    folder, context = run.folder, run.context
    minutes = run.pace.minutes
    if (
        minutes is None
        or run.first is not None
        or read_json(folder.recipe).get("minutes") == minutes
    ):
        return
    preset, architecture = run.recipe[0], read_json(folder.architecture)
    with EvaluationStore(folder.evaluations) as store:
        same = [one for one in store.evaluations() if one.architecture == architecture]
        trained = {one.id for one in store.trainings()}
        winner = Racer(max(same, key=lambda one: one.id in trained), preset)
        steps = shorter_training(run, race_task(context, run.store), store, winner)
    chosen = {"preset": preset, "minutes": minutes}
    write_json(folder.recipe, chosen | ({} if steps is None else {"steps": steps}))
    folder.manifest.record([folder.recipe])


def _show_ladder(run: Run, task: RaceTask, store: EvaluationStore, winner: Racer) -> None:
    """Log how smaller networks compare with the winner; notify of the smallest that is as good."""
    results = results_by_racer(store.trainings())
    scores = race_scores(results, find_ranking(task.ranking))
    rows = size_rows(store.evaluations(), results, scores, winner.key)
    unit = run.context.data.unit
    for _, line in smaller_finalists(rows, unit):
        run.report.line(line)
    as_good = smallest_as_good(rows, unit)
    if as_good and run.context.config.prefer != "small":
        run.report.notice(f"a smaller network: {as_good}; prefer small takes the smallest")


class _Listener(RaceListener):
    """Shows a race, and keeps the rungs that ended."""

    def __init__(self, report: Report) -> None:
        self.report, self.ended = report, list[RungEnd]()

    def line(self, text: str) -> None:
        self.report.line(text)

    def training(self, progress: RaceProgress) -> None:
        self.report.training(progress)

    def rung(self, rung: RungEnd) -> None:
        self.report.rung(rung)
        self.ended.append(rung)


def hold_race(run: Run, task: RaceTask, store: EvaluationStore, listener: RaceListener) -> Racer:
    """Return the winner of a race of the best candidates, beside other methods."""
    record_methods(run, task, store)
    store.add(task.linear)
    linear = [network.id for network in task.linear]
    known = [  # of `start_with`
        one.architecture for one in store.evaluations() if one.id < 0 and one.id not in linear
    ]
    task = replace(task, known=known)
    return race(
        task,
        within_latency(
            run, ranked_evaluations(run.context, store), partial(choose_finalists, task)
        ),
        store,
        workers=run.training_workers,
        listener=listener,
        until=(lambda: not run.pace.left(RACE_ENDS)) if run.pace.minutes else None,
    )


def ranked_evaluations(context: RunContext, store: EvaluationStore) -> list[Evaluation]:
    """Return what the search scored, the best by its first proxy first.

    Candidates whose training would take longer than the effort allows are left out.
    """
    scored = [one for one in store.evaluations() if one.id > LINEAR_ID]
    ranked = _ranked(scored, _fitness(context))
    if not context.data.has_spectra:
        return ranked
    sizes = [one.costs.get("activations", 0) for one in ranked]
    limit = max(EFFORTS[context.config.effort].finalist_bytes, min(sizes, default=0))
    return [one for one, size in zip(ranked, sizes, strict=True) if one.id < 0 or size <= limit]


def linear_networks(context: RunContext) -> list[Evaluation]:
    """Return the networks in closed form that fit the budget; no proxy scores them."""
    if context.config.trained_front:
        return []
    bounds = parse_budget(context.config.budget or ()).bounds
    networks = []
    for number, fit in enumerate(context.fits):
        architecture = linear_architecture(fit)
        costs = context.costs(architecture)
        if all(least <= costs.get(name, least) <= most for name, least, most in bounds):
            proxies = list(map(str, parse_proxies(context.config.proxy)))
            reasons = dict.fromkeys(proxies, "a network in closed form is fitted, not scored")
            scores = dict.fromkeys(proxies, math.nan)
            networks.append(
                Evaluation(LINEAR_ID - number, -1, architecture, costs, scores, reasons, 0.0)
            )
    return networks


def race_task(context: RunContext, store: Store) -> RaceTask:
    """Return how finalists train: on training and validation pixels, in folds if these are few.

    Args:
        store: of the trainings.
    """
    config, data = context.config, context.data
    folds = context.folds()
    further = context.folds(MANY_PIXELS)[len(folds) :]
    return RaceTask(
        store,
        folds,
        config.recipes,
        config.seed,
        config.ranking_of(data.task),
        further,
        config.prefer,
        config.trained_front,
        linear_networks(context),
        config.target or "",
        finalist_count(context),
        config.race_steps,
    )


def finalist_count(context: RunContext) -> int:
    """Return how many finalists race: as configured, or as usual; 1 without validation pixels."""
    config = context.config
    if len(context.data.split.validation):
        return config.finalists or config.usual_finalists
    if (config.finalists or 1) > 1:
        rule = "a race ranks on validation pixels, and the split has none"
        raise InputError("finalists", config.finalists, rule, "use 1")
    return 1


def _fitness(context: RunContext) -> Ranks:
    """What the search ranks by: the first proxy, or combination of proxies.

    If finalists race, candidates are ranked among those of their kind and size: the race compares
    kinds and sizes.
    """
    leading = parse_proxies(context.config.proxy)[0]
    any_depth = not leading.members and leading.proxy.compares_depths
    races = finalist_count(context) > 1 and not context.config.minimised

    def ranks(items: Sequence[Evaluation]) -> NDArray[np.float64]:
        values = np.asarray(fitness(leading, [item.scores for item in items]), dtype=np.float64)
        if any(TRAINED_STEPS in item.scores for item in items):
            return _by_training(items, values)
        if not races:
            return values
        sizes = size_classes([size_of(item) for item in items])
        kinds = [item.kind_of_any_depth if any_depth else item.kind for item in items]
        return rank_in_kinds(values, list(zip(kinds, sizes, strict=True)))

    return ranks


def _by_training(items: Sequence[Evaluation], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks (n,): those trained longest first, then by accuracy; others by `values`."""
    order = sorted(
        range(len(items)),
        key=lambda at: (
            items[at].scores.get(TRAINED_STEPS, 0),
            items[at].scores.get(TRAINED_ACCURACY, 0),
            np.nan_to_num(values[at], nan=-np.inf),
        ),
    )
    ranks = np.empty(len(items))
    ranks[order] = np.arange(len(items))
    untrained = np.array([TRAINED_STEPS not in item.scores for item in items])
    ranks[np.isnan(values) & untrained] = np.nan
    return ranks


def _ranked(items: Sequence[Evaluation], ranks: Ranks) -> list[Evaluation]:
    """Return the candidates with a score, best first; of equals the earlier one first.

    Those of `start_with` race in any case, so they come last without a score.
    """
    values = ranks(items)
    failed = np.isnan(values)
    scored = [
        item.architecture
        for item, out in zip(items, failed, strict=True)
        if item.id >= 0 and not out
    ]
    valid = [
        (out, 0 if out else -value, item.id, item)
        for value, item, out in zip(values, items, failed, strict=True)
        if (not out if item.id >= 0 else item.architecture not in scored)
    ]
    return [item for *_, item in sorted(valid, key=lambda row: row[:3])]


def patches_for_proxies(
    data: PreparedData, specs: Sequence[ProxySpec], seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
    """Return the labelled patches for the proxies; None if no proxy needs them."""
    if not any(spec.proxy.needs_data for spec in base_proxies(specs)):
        return None
    side = data.shape.side
    return proxy_batch(data.scene, data.split.train, data.preprocessing, side, seed)
