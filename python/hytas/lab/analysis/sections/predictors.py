"""Predictors of accuracy with and without proxy scores, over numbers of trained networks.

Sources: few-shot predictors of White et al. (How powerful are performance predictors in NAS?,
NeurIPS 2021), on genes and proxies together; extremely randomised trees of Geurts et al. (2006).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hytas.lab.analysis.bootstrap import rounded
from hytas.lab.analysis.factors import Factors
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.tables import RankingTable
from hytas.metrics import mean_and_deviation
from hytas.pictures.plots import draw_lines
from hytas.report import FactTable, Figure, Section
from hytas.search.ranks import spearman
from hytas.types import Floats

TITLE = "Predictors with and without proxy scores"
PUBLISHED = "random-forest, defaults"
"""scikit-learn's random forest as it comes, which HyTAS used."""
SCORES = ("snip", "grad_norm", "synflow", "dss", "zico", "fisher")
"""Scores that HyTAS gave its predictor; of a table without any, all scores are given."""
WITH, WITHOUT = "genes and scores", "genes alone"
MODELS = {"extra-trees": "ExtraTreesRegressor", "random-forest": "RandomForestRegressor"}
"""Name -> class of scikit-learn."""
LEAST_TESTED = 10
"""Least number of networks to test a predictor on."""


def measure(tables: Sequence[RankingTable], settings: AnalysisSettings, log: Log) -> dict[str, Any]:
    """Return how well predictors rank networks that they were not fitted on.

    A seed draws the networks to fit on, the same for all predictors.

    Returns:
        JSON-ready: table -> predictor -> inputs -> number of networks -> "mean", "std" and "values"
        of Spearman's rho over `settings.fits` draws.
    """
    figures: dict[str, Any] = {}
    for table in tables:
        sizes = [size for size in settings.sizes if len(table) - size >= LEAST_TESTED]
        inputs = _inputs(table)
        figures[table.name] = {}
        for model in (PUBLISHED, *MODELS):
            log(f"{table.name}: {model}")
            figures[table.name][model] = {
                name: {
                    str(size): mean_and_deviation(
                        [
                            _fit(rows, table.accuracy, model, size, settings.seed + number)
                            for number in range(settings.fits)
                        ]
                    )
                    for size in sizes
                }
                for name, rows in inputs.items()
            }
    return figures


def _inputs(table: RankingTable) -> dict[str, Floats]:
    chosen = [name for name in SCORES if name in table.scores] or list(table.scores)
    with_scores = {WITH: {name: table.scores[name] for name in chosen}} if chosen else {}
    inputs = {**with_scores, WITHOUT: {}}
    factors, drawn = Factors.of(table.architectures), table.architectures
    return {name: factors.with_scores(drawn, scores) for name, scores in inputs.items()}


def _fit(rows: Floats, accuracy: Floats, model: str, size: int, seed: int) -> float | None:
    order = np.random.default_rng(seed).permutation(len(accuracy))
    fitted, rest = order[:size], order[size:]
    regressor = _regressor(model, seed).fit(rows[fitted], accuracy[fitted])
    return spearman(regressor.predict(rows[rest]), accuracy[rest])


def _regressor(model: str, seed: int) -> Any:
    from sklearn import ensemble

    if model == PUBLISHED:
        return ensemble.RandomForestRegressor(random_state=seed)
    # Each split of a tree sees a third of the columns. Most columns depend on the network's size,
    # so with all columns the trees would be too similar.
    return getattr(ensemble, MODELS[model])(max_features=1 / 3, random_state=seed)


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    grids, figures, sentences = [], [], []
    for table, models in measured.items():
        sizes = list(next(iter(models[PUBLISHED].values())))
        if not sizes:
            sentences.append(f"{table}: too few networks to fit a predictor and to test it.")
            continue
        lines = {
            f"{model}, {name}": entry
            for model, inputs in models.items()
            for name, entry in inputs.items()
        }
        rows = [
            [label, *(f"{rounded(entry[n]['mean'])} ± {rounded(entry[n]['std'])}" for n in sizes)]
            for label, entry in lines.items()
        ]
        title = f"{table}: Spearman's rho by number of trained networks"
        grids.append(FactTable(title, ("predictor, inputs", *sizes), rows))
        bands = {label: band for label, entry in lines.items() if (band := _band(entry))}
        if not bands:
            sentences.append(f"{table}: no predictor has a rank correlation.")
            continue
        svg = draw_lines({table: bands}, ("trained networks", "Spearman's rho"), True)
        figures.append(Figure(title, svg, f"{title}; the table has the numbers"))
        sentences.append(_verdict(table, lines, sizes))
    notes = (
        f"{PUBLISHED}: 100 trees that see all columns at each split, as in HyTAS's supplementary "
        "7.5. The others see a third of the columns. Genes are numbers: of a list the mean over "
        "layers. Mean and deviation are over draws of the networks to fit "
        "on; all others test.",
    )
    return Section("predictors", TITLE, sentences, grids, figures, notes)


def _verdict(table: str, lines: Mapping[str, Any], sizes: Sequence[str]) -> str:
    first, last = sizes[0], sizes[-1]
    best = max(lines, key=lambda label: lines[label][last]["mean"] or -2)
    text = (
        f"{table}: with {last} networks, {best} ranks best, "
        f"rho {rounded(lines[best][last]['mean'])}."
    )
    pair = [lines.get(f"{PUBLISHED}, {name}", {}).get(first, {}) for name in (WITH, WITHOUT)]
    if all(entry.get("mean") is not None for entry in pair):
        text += (
            f" With {first}, scores change the rho of {PUBLISHED} "
            f"from {rounded(pair[1]['mean'])} to {rounded(pair[0]['mean'])}."
        )
    return text


def _band(entry: Mapping[str, Any]) -> tuple[list[float], ...]:
    """Return sizes, means, and the means minus and plus the deviation; () without any mean."""
    rows = [
        (float(size), each["mean"], each["std"] or 0.0)
        for size, each in entry.items()
        if each["mean"] is not None
    ]
    bands = [(size, mean, mean - spread, mean + spread) for size, mean, spread in rows]
    return tuple(list(column) for column in zip(*bands, strict=True))
