"""The report of runs: what their folders tell, which are only read, and the page of it."""

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hytas._engine import Budget
from hytas.data import Split
from hytas.decide.members import with_members
from hytas.deploy import DeployedModel
from hytas.errors import InputError, one_line
from hytas.model_card import ModelCard
from hytas.models.counting import counted_layers
from hytas.models.table import input_shape
from hytas.proxies import fitness, parse_proxies
from hytas.race import (
    RANKINGS,
    RungResult,
    joined_late,
    race_scores,
    results_by_racer,
    size_rows,
    smallest_as_good,
)
from hytas.race.rankings import Ranking
from hytas.race.results import TrialKey
from hytas.report import (
    Candidates,
    Finalist,
    ReportImages,
    ReportPixels,
    RunFacts,
    Section,
    write_report,
)
from hytas.report.explained import explained_section
from hytas.run.config import RunConfig
from hytas.run.context import Run
from hytas.run.folder import WHERE, RunFolder, if_there, read_json
from hytas.run.pace import shortened
from hytas.run.times import all_times, run_cost
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.spaces import open_space
from hytas.spaces.costs import LayerCost
from hytas.spaces.genes import gene_text
from hytas.spaces.shape import Shape
from hytas.tasks import Classes, task_of_card

MOST_CURVES = 4
"""Learning curves of further seeds that are drawn."""


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


def run_facts(
    folder: RunFolder, *, first: RunConfig | None = None, shape: Shape | None = None
) -> RunFacts:
    """Return what a run's folder holds for its report.

    Args:
        first: configuration of another run, which this one is compared with.
        shape: of a network's input; None asks the exported model.
    """
    config, fingerprint = folder.read_config()
    architecture = if_there(folder.architecture, read_json)
    metrics = if_there(folder.metrics, read_json)
    stored = _stored(folder)
    candidates = _candidates(stored.evaluations, config, architecture)
    winner = None if candidates is None else candidates.winner
    costs = stored.evaluations[winner].costs if winner is not None else {}
    card = None
    model = if_there(folder.onnx, _model)
    if model and architecture:
        card = DeployedModel.load(folder.onnx, "cpu", threads=1).card
    shape = shape or (None if card is None else input_shape(card))
    shipped = architecture
    if architecture is not None and metrics is not None and (mean := metrics.get("mean")):
        shipped = with_members(architecture, mean["members"])
    layers, unknown = _layers(shipped, shape)
    preset = str(read_json(folder.recipe, {}).get("preset", ""))
    split = if_there(folder.split, Split.load)
    task = Classes(1) if card is None else task_of_card(card)
    ranking = config.ranking_of(task)
    explanation, damaged = _explanation(folder)
    seeds = (metrics or {}).get("seeds", {}).get("of", [])[1:]
    return RunFacts(
        name=folder.path.resolve().name,
        path=str(folder.path),
        scene=_scene_name(config),
        class_ids=() if card is None else card.class_ids,
        config=_settings(config, preset),
        versions=read_json(folder.config).get("versions", {}),
        fingerprint=fingerprint,
        metrics=metrics,
        architecture=architecture,
        costs=(metrics or {}).get("costs", costs),
        units=_units(config),
        bounds=list(Budget.parse(config.budget).bounds) if config.budget else [],
        candidates=candidates,
        **_race_facts(stored, winner, preset, ranking, (metrics or {}).get("unit", "pixels")),
        layers=layers,
        pixels=if_there(folder.pixels, ReportPixels.load),
        samples=if_there(folder.samples, ReportImages.load),
        curves={
            seed: read_json(RunFolder(folder.path / f"seed-{seed}").metrics)["training"]
            for seed in seeds[:MOST_CURVES]
        },
        times=all_times(folder),
        cost=run_cost(folder),
        model=model,
        split="" if split is None else _split_digest(split),
        differences=[] if first is None else config.differences(first, WHERE),
        explanation=explanation,
        pairs={} if card is None else _pairs(folder, card),
        notes=[*stored.notes, *unknown, *damaged, *_shortened(folder, config)],
    )


def _pairs(folder: RunFolder, card: ModelCard) -> dict[str, Any]:
    """Return observed and predicted values, and places, of the table of test samples."""
    if not folder.predictions.is_file():
        return {}
    with folder.predictions.open(newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        if not {f"{name} observed" for name in card.class_names} <= {*(table.fieldnames or ())}:
            return {}
        rows = list(table)

    def column(name: str) -> Any:
        return np.array([float(row.get(name) or "nan") for row in rows])

    places = np.stack([column("column"), column("row")])
    return {name: (column(f"{name} observed"), column(name), places) for name in card.class_names}


def _settings(config: RunConfig, preset: str) -> dict[str, Any]:
    """Return all settings; those of the recipe are of the preset that trained the winner."""
    recipe = config.recipes.get(preset, config.recipe)
    return {**asdict(config), "recipe": asdict(recipe)}


def _race_facts(
    stored: "_Stored", winner: int | None, preset: str, ranking: str, unit: str
) -> dict[str, Any]:
    candidates, ranked_by = stored.evaluations, RANKINGS[ranking]
    places = {item.id: at for at, item in enumerate(candidates)}
    racers = results_by_racer(item for item in stored.trainings if item.id in places)
    scores = race_scores(racers, ranked_by)
    own = None if winner is None else (candidates[winner].id, preset)
    sizes = size_rows(candidates, racers, scores, own) if own and own in racers else []
    return {
        "finalists": _finalists(racers, scores, places, ranked_by, winner, preset),
        "sizes": [row._asdict() for row in sizes],
        "smaller": smallest_as_good(sizes, unit),
        "ranking": ranking,
        "preset": preset,
    }


class _Stored(NamedTuple):
    """What the store of a run holds, and notes for the reader."""

    evaluations: Sequence[Evaluation] = ()
    trainings: Sequence[Training] = ()
    notes: Sequence[str] = ()


def _stored(folder: RunFolder) -> _Stored:
    if not folder.evaluations.is_file():
        return _Stored()
    try:
        with EvaluationStore(folder.evaluations, read_only=True) as store:
            return _Stored(store.evaluations(), store.trainings())
    except (InputError, OSError) as error:
        return _Stored(notes=[f"The candidates are not shown: {one_line(error)}"])


def _candidates(
    evaluations: Sequence[Evaluation], config: RunConfig, winner: Mapping[str, Any] | None
) -> Candidates | None:
    if not evaluations:
        return None
    genes = [name for name in evaluations[0].architecture if name != "space"]
    names = list(dict.fromkeys(name for item in evaluations for name in item.scores))
    leading = parse_proxies(config.proxy)[0]
    led = fitness(leading, [item.scores for item in evaluations])
    scores = {str(leading): np.asarray(led, np.float64)}
    for name in names:
        scores.setdefault(
            name, np.array([item.scores.get(name, np.nan) for item in evaluations], np.float64)
        )
    # An architecture to start with, of negative id, may be a candidate of the search as well.
    places = [at for at, item in enumerate(evaluations) if item.architecture == winner]
    places.sort(key=lambda at: evaluations[at].id < 0)
    return Candidates(
        ids=[item.id for item in evaluations],
        generations=[item.generation for item in evaluations],
        genes={
            name: [gene_text(item.architecture.get(name)) for item in evaluations] for name in genes
        },
        costs={
            name: np.array([item.costs[name] for item in evaluations], np.float64)
            for name in evaluations[0].costs
        },
        scores=scores,
        winner=places[0] if places else None,
    )


def _finalists(
    racers: Mapping[TrialKey, Sequence[RungResult]],
    scores: Mapping[TrialKey, float],
    places: Mapping[int, int],
    ranking: Ranking,
    winner: int | None,
    preset: str,
) -> list[Finalist]:
    """Return the trained finalists: the longest rung first, then the best score."""
    late = joined_late(racers)

    def order(key: TrialKey) -> tuple[bool, int, int, int, float, int]:
        last, score, place = racers[key][-1], scores.get(key), places[key[0]]
        value = -np.inf if score is None else score
        # The score of one that joined late is of the last rung alone.
        joined = 0 if key not in late else -1 if place == winner else 1
        return score is None, -last.steps, -last.folds, joined, -value, place

    def finalist(key: TrialKey) -> Finalist:
        results, (number, recipe) = racers[key], key
        return Finalist(
            places[number],
            recipe,
            places[number] == winner and recipe == (preset or recipe),
            {one.steps: {} if one.reason else _with_score(one, ranking) for one in results},
            sum(one.seconds for one in results),
            next((one.reason for one in results if one.reason), ""),
            results[-1].folds,
        )

    return [finalist(key) for key in sorted(racers, key=order)]


def _with_score(result: RungResult, ranking: Ranking) -> dict[str, float]:
    score = result.score(ranking)
    return {**result.figures, **({"score": score} if np.isfinite(score) else {})}


def _layers(
    architecture: Mapping[str, Any] | None, shape: Shape | None
) -> tuple[list[LayerCost], list[str]]:
    """The layers of the winner; or a note, if this version has other genes than the run."""
    if architecture is None or shape is None:
        return [], []
    try:
        return counted_layers(architecture, shape), []
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = "this version builds no network of such genes"
        return [], [f"The layers are not shown: {reason} ({one_line(error)})"]


def _explanation(folder: RunFolder) -> tuple[Section | None, list[str]]:
    """The section on what the network looks at, if its file is there; or a note, if it is bad."""
    try:
        found = if_there(folder.explanation, read_json)
        return (None if found is None else explained_section(found)), []
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None, [f"{folder.explanation.name} is damaged; `hytas explain` writes it again"]


def _scene_name(config: RunConfig) -> str:
    more = len(config.files[0]) - 1
    return Path(config.first_data).stem + (f" and {more} more" if more else "")


def _units(config: RunConfig) -> Mapping[str, str]:
    try:
        return open_space(config.space, ())[0].cost_units
    except InputError:  # a space file that is not there any more
        return {}


def _shortened(folder: RunFolder, config: RunConfig) -> list[str]:
    plan = read_json(folder.pace, {})
    if config.minutes is None:  # the final training had no limit
        plan.pop("steps", None)
    text = shortened(plan)
    limit = "its time limit" if config.minutes is None else f"{config.minutes:g} minutes"
    return [f"For {limit} the run did {text}."] if text else []


def _model(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"name": path.name, "bytes": len(content), "sha256": digest}


def _split_digest(split: Split) -> str:
    parts = (split.train, split.validation, split.reported)
    pixels = b"".join(np.asarray(part, np.int64).tobytes() + b"/" for part in parts)
    return hashlib.sha256(pixels).hexdigest()
