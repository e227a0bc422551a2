"""What searches would find, by which strategy and led by what: regret over evaluations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hytas.errors import InputError
from hytas.lab.analysis.bootstrap import cell
from hytas.lab.analysis.factors import Factors
from hytas.lab.analysis.scores import scores_of
from hytas.lab.analysis.sections.predictors import make_regressor
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.simulation import (
    RANDOM,
    SIMULATED,
    Simulation,
    TablePool,
    maker_of,
    simulate,
    space_of_all,
)
from hytas.lab.analysis.tables import RankingTable
from hytas.pictures.plots import draw_lines
from hytas.report import FactTable, Figure, Section
from hytas.types import Floats

TITLE = "What searches would find"
TRAINED = 50
"""Trained networks that a predictor leads by."""
PREDICTOR = f"predictor of {TRAINED}"
TREES = 50
ACCURACY = "accuracy"
LEADS = ("params", "depth-embed", "snip", "zico_pp", "dss", "naswot", "inherited")
"""Scores that lead a search, of those that a table has."""
ALL_SCORES = "all"
POINTS = (1, 10, 50, 100, 200, 500, 1000)
"""Evaluations that the table shows."""
CURVE = sorted({round(step * 10**power) for power in range(4) for step in (1, 1.5, 2, 3, 5, 7)})


def measure(tables: Sequence[RankingTable], settings: AnalysisSettings, log: Log) -> dict[str, Any]:
    """Return the regret of simulated searches.

    Returns:
        JSON-ready: table -> "networks", "best", and "regret": lead -> strategy -> number of
        evaluations -> mean over searches and the ends of its 95 % interval.
    """
    _check_leads(tables, settings)
    figures = {}
    for table in tables:
        pool, space = TablePool.of(table.architectures), space_of_all(table.architectures)
        budget = min(settings.budget, len(table))
        regret: dict[str, Any] = {}
        for lead, values in _leads(table, settings).items():
            log(f"{table.name}: searches led by {lead}")
            regret[lead] = {}
            for name in (RANDOM, *(each for each in SIMULATED if each != RANDOM)):
                make = maker_of(name, space, budget)
                seeds = range(settings.seed, settings.seed + settings.searches)
                result = simulate(pool, table.accuracy, make, budget, seeds, values)
                regret[lead][name] = _points(result, budget)
        figures[table.name] = {
            "networks": len(table),
            "best": float(table.accuracy.max()),
            "regret": regret,
        }
    return figures


def _check_leads(tables: Sequence[RankingTable], settings: AnalysisSettings) -> None:
    names = {name for table in tables for name in scores_of(table)}
    for name in settings.leads:
        if name != ALL_SCORES and name not in names:
            raise InputError("lead", name, f"must be all or one of {', '.join(sorted(names))}")


def _points(result: Simulation, budget: int) -> dict[str, list[float | None]]:
    points = sorted({*(point for point in CURVE if point < budget), budget})
    return {
        str(point): [None if np.isnan(value) else value for value in result.at(point)]
        for point in points
    }


def _leads(table: RankingTable, settings: AnalysisSettings) -> dict[str, Callable[[int], Floats]]:
    """Return lead -> function from a seed to the value of each network."""
    scores = scores_of(table)
    wanted = list(scores) if ALL_SCORES in settings.leads else settings.leads or LEADS
    fixed = {ACCURACY: table.measured, **{name: scores[name] for name in wanted if name in scores}}
    leads = {name: _always(values) for name, values in fixed.items()}
    if len(table) >= 2 * TRAINED:
        leads[PREDICTOR] = _predictions(table)
    return leads


def _always(values: Floats) -> Callable[[int], Floats]:
    return lambda _: values


def _predictions(table: RankingTable) -> Callable[[int], Floats]:
    features = Factors.of(table.architectures).with_scores(table.architectures, table.scores)
    kept: dict[int, Floats] = {}

    def predict(seed: int) -> Floats:
        if seed not in kept:
            # Another stream than that of random search, which would look at the same networks.
            chosen = np.random.default_rng([seed, TRAINED]).permutation(len(table))[:TRAINED]
            regressor = make_regressor("extra-trees", seed, TREES)
            regressor.fit(features[chosen], table.accuracy[chosen])
            kept[seed] = regressor.predict(features)
            kept[seed][chosen] = np.nan  # of trained networks, a search is given no prediction
        return kept[seed]

    return predict


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    grids, figures, sentences = [], [], []
    for table, entry in measured.items():
        regret = entry["regret"]
        every = list(next(iter(regret[ACCURACY].values())))
        last = every[-1]
        points = [point for point in every if int(point) in POINTS or point == last]
        rows = [
            [f"{lead}, {strategy}", *(cell(values[point], 4) for point in points)]
            for lead, strategies in regret.items()
            for strategy, values in strategies.items()
        ]
        title = f"{table}: mean regret by number of evaluations, with its 95 % interval"
        grids.append(FactTable(title, ("led by, strategy", *points), rows))
        panels = {
            f"led by {lead}": {strategy: _band(values) for strategy, values in strategies.items()}
            for lead, strategies in regret.items()
        }
        svg = draw_lines(panels, ("evaluations", "regret"), True)
        about = "Regret of simulated searches over evaluations; the table has the numbers"
        figures.append(Figure(f"{table}: regret", svg, about, wide=True))
        at_end = {
            (lead, strategy): values[last][0]
            for lead, strategies in regret.items()
            for strategy, values in strategies.items()
        }
        free = {key: value for key, value in at_end.items() if key[0] != ACCURACY}
        trained = {key: value for key, value in at_end.items() if key[0] == ACCURACY}
        best = min(trained, key=lambda key: trained[key])
        text = (
            f"{table}: after {last} trainings, {best[1]} has the least regret, {trained[best]:.4f}"
        )
        if free:
            chosen = min(free, key=lambda key: free[key])
            text += (
                f"; of searches that train nothing, {chosen[1]} led by {chosen[0]} has the least, "
                f"{free[chosen]:.4f}"
            )
        sentences.append(text + ".")
    notes = (
        "Regret is the accuracy of the best network of the table minus that of the network that a "
        "search would give back. A proposal that is not in the table is answered by the nearest "
        "network that the search has not seen; random search draws from the table. An evaluation "
        f"is a training where accuracy leads, else a score. {PREDICTOR}: an evaluation asks extra "
        f"trees that were fitted on {TRAINED} trained networks, which come on top and are not "
        "given back themselves.",
    )
    return Section("searches", TITLE, sentences, grids, figures, notes)


def _band(values: Mapping[str, Sequence[float | None]]) -> tuple[list[float], ...]:
    rows = [
        [float(point), *(np.nan if v is None else v for v in each)]
        for point, each in values.items()
    ]
    return tuple(list(column) for column in zip(*rows, strict=True))
