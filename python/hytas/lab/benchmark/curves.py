"""Make learning curves: train networks on each fold of a task, and each once for the test.

A training keeps its learning rate at the peak, with snapshots at several lengths; another one
continues a snapshot, and its rate falls, as in the last rung of a race. All of them are fits in the
store of a run, so the work goes on where it was stopped.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.decide.decisions import Conditions, decide, tempered
from hytas.decide.members import choose_members, with_members
from hytas.decide.records import HeldOut
from hytas.lab.benchmark.curve_table import TABLE, TEST, CurveTable, FinalFigures, Snapshot
from hytas.lab.benchmark.suite import SuiteTask
from hytas.metrics import accuracy_report, log_mean
from hytas.race import Racer, RaceTask, Rung, choose_finalists, size_of
from hytas.race.finalists import sees_single_spectra
from hytas.race.plan import Trial
from hytas.race.race import fit_of, training_of
from hytas.race.results import TrialKey
from hytas.race.rungs import plan_rungs
from hytas.references import bounded_split
from hytas.references.runner import figures_of_test
from hytas.references.table import classical_methods
from hytas.results import NETWORK
from hytas.run.choosing.searching import (
    finalist_count,
    race_task,
    ranked_evaluations,
    search_stage,
)
from hytas.run.context import Run, open_run
from hytas.run.final.fits import record_of
from hytas.run.final.prior import adapt_prior, no_prior
from hytas.run.final.stage import averaged
from hytas.run.final.task import HELD_OUT, NEIGHBOURS, UNLABELLED, Fold
from hytas.run.fits import Wanted
from hytas.run.folder import read_json, write_json
from hytas.run.pace import Invocation
from hytas.run.progress import SILENT, Report
from hytas.run.stages import begin, do
from hytas.search import Evaluation, EvaluationStore
from hytas.train.fit import Fit, Fitted
from hytas.types import Logits, Pixels
from hytas.workers import Workers, WorkersLike, open_workers

CARD = "card.json"
LENGTHS = (0.5, 1, 2, 4)
"""Lengths of snapshots at the peak of the learning rate, relative to the first rung of a race."""
TOGETHER = 4
"""Networks that train at a time; their weights are kept until all of their trainings have ended."""
SINGLE = 4
"""Networks of single spectra, the smallest ones."""
LONGER = 24
"""Finalists of a longer race."""
MOST_TRAIN = 1500
"""Training pixels of a reference method, as in a run."""


def make_curves(
    tasks: Sequence[SuiteTask],
    out: Path,
    *,
    networks: int = 40,
    workers: WorkersLike = None,
    device: str = "auto",
    report: Report = SILENT,
    command: Invocation = Invocation(),
) -> list[Path]:
    """Write a table for each task, and a card of all; return the paths of the tables.

    The same call goes on where one was stopped. Tasks whose files are missing are left out.

    Args:
        tasks: in the order in which they are done.
        out: folder of the tables; `runs` in it has the state of the work.
        networks: of each task (`choose_networks`); more of them extend a table.
        workers: where networks are scored and trained (`hytas.workers.open_workers`).
    """
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for task in tasks:
        if task.lacks:
            report.notice(f"{task.name}: left out, because {task.lacks} is missing")
            continue
        scene = task.load(out / "data")
        with open_run(
            out / "runs" / task.name,
            task.config,
            scene,
            device,
            report,
            command=command,
            workers=workers,
        ) as run:
            begin(run, ["search"])
            do(run, "search", search_stage)
            with EvaluationStore(run.folder.evaluations) as store:
                paths.append(_Curves(run, task, store, networks).make(out))
        write_card(out, command.text)
    return paths


def write_card(out: Path, command: str = "") -> None:
    """Write what the tables of a folder are, with their digests."""
    tables = sorted(out.glob(f"*{TABLE}"))
    loaded = [CurveTable.load(path) for path in tables]
    card = {
        "about": "Learning curves of networks of hytas, a table a task. NAME.curves.gz is what a "
        "race sees; NAME.test.json has the figures of the test, which no rule reads.",
        "command": command,
        "tasks": {
            one.name: {
                **one.facts,
                "sensor": one.sensor,
                "networks": len(one.networks),
                "trainings": len(one.snapshots),
                "seconds": round(sum(each.training.seconds for each in one.snapshots)),
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path, one in zip(tables, loaded, strict=True)
        },
    }
    write_json(out / CARD, card)


def choose_networks(
    task: RaceTask, ranked: Sequence[Evaluation], count: int, seed: int
) -> list[Evaluation]:
    """Return the networks of a table; fewer of them are a beginning of more.

    The finalists of a race come first. Small ones of single spectra, random ones of the first
    generation, and finalists of a longer race follow in turn.

    Args:
        ranked: candidates, the best first.
        count: of the networks.
    """
    own = choose_finalists(task, ranked)
    single = sorted((one for one in ranked if sees_single_spectra(one.architecture)), key=size_of)
    first = [one for one in ranked if one.generation == 0]
    drawn = [first[at] for at in np.random.default_rng(seed).permutation(len(first))]
    longer = choose_finalists(replace(task, finalists=LONGER), ranked)
    others = chain.from_iterable(zip_longest(single[:SINGLE], drawn, longer))
    chosen = {one.id: one for one in (*own, *others) if one is not None}
    return list(chosen.values())[: max(count, len(own))]


@dataclass(eq=False)
class _Curves:
    """The work on one task."""

    run: Run
    suite_task: SuiteTask
    store: EvaluationStore
    count: int

    def __post_init__(self) -> None:
        context = self.run.context
        self.data, self.task = context.data, race_task(context, self.run.store)
        self.ranked = ranked_evaluations(context, self.store)
        finalists, first = finalist_count(context), context.config.race_steps
        seed = context.config.seed
        self.networks = choose_networks(self.task, self.ranked, self.count, seed)
        share = len(self.task.folds) / len(self.task.all_folds)
        *_, self.last = plan_rungs(finalists, first, self.task.final_steps, share)
        lengths = (round(length * first) for length in LENGTHS)
        self.steady = [Rung(0, one, first) for one in lengths if one <= self.task.final_steps]
        test = self.data.split.test
        self.tested, self.test_pixels = (
            (test, test) if self.data.smoother is None else self.data.with_neighbours(test)
        )
        self.snapshots: list[Snapshot] = []
        self.decided: dict[TrialKey, Mapping[str, Any]] = {}
        self.figures: dict[TrialKey, Mapping[str, float]] = {}

    def make(self, out: Path) -> Path:
        """Train all networks; write the table after each group of them."""
        source, began = self.run.context.source, time.monotonic()
        path, test = (out / f"{self.suite_task.name}{end}" for end in (TABLE, TEST))
        if path.exists() and test.exists():  # weights of racers that were tested are gone
            self.decided = dict(CurveTable.load(path).decided)
            self.figures = dict(FinalFigures.load(test).racers)
        methods = self._methods()
        groups = [
            self.networks[at : at + TOGETHER] for at in range(0, len(self.networks), TOGETHER)
        ]
        with open_workers(
            self.run.training_workers,
            on_cpu=source.device.type == "cpu",
            sent_bytes=source.patch_bytes + source.scene_bytes,
            shared_gpu=source.device,
        ) as pool:
            self._measure(self.linear, pool)
            done: list[Evaluation] = []
            for group in groups:
                self._measure(self._racers(group), pool)
                done += group
                FinalFigures(self.figures, methods).save(test)
                self._table(done).save(path)
                self.run.report.notice(
                    f"{self.suite_task.name}: {len(done)} of {len(self.networks)} networks, "
                    f"{(time.monotonic() - began) / 60:.0f} min"
                )
        return path

    def _measure(self, racers: Sequence[Racer], pool: Workers) -> None:
        """Train racers on all folds and for the test, and keep what they give."""
        folds, store = range(len(self.task.all_folds)), self.run.store
        lengths = [] if racers == self.linear else self.steady
        waves = [
            [self._fold_fit(Trial(racer, fold, rung)) for racer in racers for fold in folds]
            for rung in (*lengths, self.last)
        ]
        waves.append([self._final_fit(racer) for racer in racers])
        sent = self.run.context.source.packed(with_data=True) if pool.elsewhere else None
        for number, wave in enumerate(waves, 1):
            kept = number == len(waves) and racers == self.linear
            for _, fitted in store.run(wave, pool, sent=sent, weights=kept):
                if fitted.lacks_memory:
                    raise OSError(f"curves: {fitted.reason}")
        for racer in racers:
            for rung in (*lengths, self.last):
                for fold in folds:
                    trial = Trial(racer, fold, rung)
                    training = training_of(self.task, trial, self._result(self._fold_fit(trial)))
                    self.snapshots.append(Snapshot(training, rung.before))
            trials = [Trial(racer, fold, self.last) for fold in folds]
            fits = [self._final_fit(racer), *map(self._fold_fit, trials)]
            if racer.key not in self.figures and not any(self._result(fit).reason for fit in fits):
                self._test(racer)
        store.keep_weights([self._final_fit(racer) for racer in self.linear])

    def _result(self, fit: Fit) -> Fitted:
        fitted = self.run.store.get(fit)
        assert fitted is not None
        return fitted

    @cached_property
    def linear(self) -> list[Racer]:
        """The networks in closed form, which have one length."""
        return [Racer(one, next(iter(self.task.recipes))) for one in self.task.linear]

    def _racers(self, networks: Sequence[Evaluation]) -> list[Racer]:
        return [
            Racer(one, name) for one in networks for name in self.task.recipes_for(one.architecture)
        ]

    @cached_property
    def _groups(self) -> list[tuple[Pixels, dict[str, Pixels]]]:
        """For each fold the pixels that smoothing is compared on, and those with logits."""
        sample = self.data.unlabelled_sample(self.task.seed)
        groups = []
        for _, held_out in self.task.all_folds:
            compared, neighbours = self.data.with_neighbours(held_out)
            none = held_out[:0] if sample is None else sample.pixels
            groups.append(
                (compared, {HELD_OUT: held_out, NEIGHBOURS: neighbours, UNLABELLED: none})
            )
        return groups

    def _fold_fit(self, trial: Trial) -> Fit:
        if trial.rung != self.last:
            return fit_of(self.task, trial, [one for one in self.steady if one < trial.rung])
        before = [one for one in self.steady if one.steps <= (self.last.before or 0)]
        fit = fit_of(self.task, trial, [] if trial.racer in self.linear else before)
        return replace(fit, logits=self._groups[trial.fold][1])

    def _final_fit(self, racer: Racer) -> Fit:
        context = self.run.context
        recipe, seed = self.task.recipes[racer.recipe], context.config.seed
        logits = {HELD_OUT: self.test_pixels}
        architecture = racer.finalist.architecture
        return Fit(architecture, recipe, seed, *context.final_pixels, logits=logits)

    def _test(self, racer: Racer) -> None:
        """Decide by held-out pixels how a network ships, and test it."""
        records = [self._record(racer, fold) for fold in range(len(self.task.all_folds))]
        smoother, context = self.data.smoother, self.run.context
        disjoint = self.data.split.spatially_disjoint
        pixels = sum(len(one.pixels) for one in records)
        conditions = Conditions(
            disjoint=disjoint, no_self_training="left out", folds=len(records), pixels=pixels
        )
        others = [one for one in self.linear if one != racer]
        names = [one.finalist.architecture["fit"] for one in others]

        def fits(members: Sequence[str]) -> bool:
            return context.fits_budget(with_members(racer.finalist.architecture, members))

        mean = choose_members(records, smoother, conditions, names, fits)
        records = [one.mean(mean.members) for one in records]
        decisions = decide(records, smoother, conditions)
        logits = {
            name: self._result(self._final_fit(one)).logits[HELD_OUT]
            for name, one in zip((NETWORK, *names), (racer, *others), strict=True)
        }
        own, shipped = logits[NETWORK], log_mean([logits[name] for name in mean.members])
        if mean.members == (NETWORK,):
            shipped = own
        smoothing = None if decisions.smoothing is None else decisions.smoothing.method
        temperature = decisions.calibration.temperature
        maps = {"raw": self._predicted(own, 1.0, False)}
        if smoother is not None:
            maps["smoothed"] = self._predicted(own, 1.0, True)
        maps["shipped"] = self._predicted(shipped, temperature, smoothing == "guided")
        everything = log_mean(list(logits.values()))
        maps["mean of all"] = self._predicted(everything, 1.0, smoother is not None)
        fit = self._final_fit(racer)
        context = replace(context, config=replace(context.config, class_prior="auto"))
        if not no_prior(context, fit.recipe):
            linear = {n: self._final_fit(one) for n, one in zip(names, others, strict=True)}
            members = {name: one for name, one in linear.items() if name in mean.members}
            network, _ = averaged(self.run.store, fit, members, self.data.shape)
            prior = adapt_prior(network, context, fit.recipe, fit.trained, records, decisions)
            shift = temperature * np.array(prior.log_factors) if prior.used else 0.0
            shifted = shipped + np.asarray(shift, np.float32)
            maps["auto class prior"] = self._predicted(shifted, temperature, smoothing == "guided")
        self.decided[racer.key] = {"members": list(mean.members), "smoothing": smoothing}
        self.figures[racer.key] = {
            f"{name} {figure}": value
            for name, predicted in maps.items()
            for figure, value in self._accuracies(predicted).items()
        }

    def _record(self, racer: Racer, fold: int) -> HeldOut:
        own, *others = (
            self._fold_fit(Trial(one, fold, self.last)) for one in (racer, *self.linear)
        )
        return record_of(
            self.data, self.run.store, Fold(self._groups[fold][0], own, own, tuple(others))
        )

    def _predicted(self, logits: Logits, temperature: float, smooth: bool) -> NDArray[np.int64]:
        """Return the classes of the tested pixels by logits of these and their neighbours."""
        chances, smoother = tempered(logits, temperature), self.data.smoother
        if smooth and smoother is not None:
            chances = smoother(self.test_pixels, chances)
        classes: NDArray[np.int64] = chances.argmax(axis=1)
        return classes[np.searchsorted(self.test_pixels, self.tested)]

    def _accuracies(self, predicted: NDArray[np.int64]) -> dict[str, float]:
        truth, names = self.data.targets(self.tested), self.data.scene.class_names
        report = accuracy_report(truth, predicted, names)
        return {name: round(float(report[name]), 6) for name in ("OA", "AA")}

    def _methods(self) -> dict[str, dict[str, float]]:
        """Return the figures of the reference methods on the same pixels, raw and smoothed."""
        path = self.run.folder.path / "methods.json"
        if path.exists():
            return read_json(path)
        scene, split = self.data.scene, replace(self.data.split, test=self.tested)
        split = bounded_split(scene, split, MOST_TRAIN, len(self.tested))
        names = classical_methods(scene)
        smoothed = None if self.data.smoother is None else split.test
        fits = self.run.fits.results([Wanted(name, split, smoothed) for name in names])
        found: dict[str, dict[str, float]] = {}
        for name, fit in zip(names, fits, strict=True):
            reports = figures_of_test(scene, split, fit)
            found[name] = {
                f"{kind} {figure}": float(reports[key][figure])
                for kind, key in (("raw", "test"), ("smoothed", "smoothed"))
                if key in reports
                for figure in ("OA", "AA")
            }
        write_json(path, found)
        return found

    def _table(self, done: Sequence[Evaluation]) -> CurveTable:
        context, task = self.run.context, self.task
        facts = {
            "about": self.suite_task.about,
            "split": self.data.split.describe(),
            "classes": self.data.shape.classes,
            "bands": self.data.shape.bands,
            "budget": context.config.budget,
            "folds": len(task.folds),
            "ranking": task.ranking,
            "seed": task.seed,
            "finalists": finalist_count(context),
            "steps": context.config.race_steps,
            "final_steps": task.final_steps,
            "complete": len(done) == len(self.networks),
        }
        return CurveTable(
            self.suite_task.name,
            self.suite_task.sensor,
            facts,
            [len(held_out) for _, held_out in task.all_folds],
            len(task.folds[0][0]),
            self.ranked,
            {one.id: task.recipes_for(one.architecture) for one in done},
            task.linear,
            task.recipes,
            self.snapshots,
            self.decided,
        )
