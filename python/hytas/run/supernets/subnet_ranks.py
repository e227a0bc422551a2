"""Compare how well inherited weights (AutoFormer, supplementary) and proxies rank subnets."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data import LabelledData
from hytas.errors import InputError
from hytas.proxies import Evaluator
from hytas.run.config import RunConfig
from hytas.run.context import Run, open_feasible, open_run, shorter
from hytas.run.progress import SILENT, Report
from hytas.run.supernet import load_supernet, probability_of, score_with, train_alone
from hytas.search.ranks import spearman
from hytas.spaces.keys import stable_hash
from hytas.supernet import InheritedScore, Judge, Supernet
from hytas.train import Recipe

RACE_STEPS = 60
"""Optimiser steps of the short race that is a rival."""
RESAMPLED = 1000
INTERVAL = (5.0, 95.0)
FEWEST = 8
"""Networks that an interval needs; resampling fewer gives mostly equal copies."""
RIVALS = ("inherited", "race", "dss", "params", "depth-embed", "embed_dim")


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation of a ranker with the test accuracy of networks trained alone.

    Attributes:
        ranker: one of `RIVALS`.
        spearman: None where the ranker, or the accuracy, is the same for all.
        low, high: interval of 90 %, by resampling the networks; None with fewer than `FEWEST`.
    """

    ranker: str
    spearman: float | None
    low: float | None
    high: float | None


def rank_subnets(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    budget: str,
    count: int,
    *,
    device: str = "auto",
    report: Report = SILENT,
) -> tuple[list[dict[str, Any]], list[RankCorrelation]]:
    """Draw subnets, train each alone, and compare rankers with what they then reach.

    The folder keeps every training, so the same call goes on where it was stopped.

    Args:
        scene: of the run. Its test pixels are the truth; nothing is chosen by them.
        out: the folder of `train_supernet`.
        budget: subnets are drawn inside it, and inside that of the supernet.
        device: cpu, cuda or auto.

    Returns:
        Of each subnet its architecture, scores and accuracies; and the rankers, `RIVALS`.

    Raises:
        InputError: fewer than 3 subnets, no subnet inside the budget, or no whole supernet.
    """
    if count < 3:
        raise InputError("count", count, "must be 3 or more, to rank them")
    with open_run(out, config, scene, device, report) as run:
        supernet = load_supernet(run.context, run.folder.supernet)
        inside = replace(config, budget=f"{config.budget},{budget}")
        _, feasible = open_feasible(inside, run.context.data.shape, fits=())
        assert feasible is not None
        seed = stable_hash(config.seed, "ranked subnets")
        drawn = feasible.space.unpack(feasible.sample(count, seed, "choices"))
        rows = _rows(run, supernet, drawn)
    return rows, [_rank(name, rows, config.seed) for name in RIVALS]


def _rows(run: Run, supernet: Supernet, drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the scores and accuracies of each architecture; the store keeps the trainings."""
    context, data = run.context, run.context.data
    score = score_with(context, supernet)
    test = data.labelled(data.split.test)
    judge = Judge(test, context.device, context.config.seed)
    on_test = InheritedScore(supernet.to(context.device), test, context.config.seed)
    evaluator = Evaluator("dss,params,depth-embed", data.shape, seed=context.config.seed)
    rows: list[dict[str, Any]] = []
    for number, architecture in enumerate(drawn, start=1):
        (scores,) = evaluator.score([architecture])
        measured = {
            "architecture": architecture,
            "inherited": score(architecture),
            **scores["scores"],
            "embed_dim": float(architecture.get("embed_dim", 0)),
            "race": _trained(run, architecture, RACE_STEPS, None),
            "inherited_test": on_test.figures(architecture)["accuracy"],
            "alone_test": _trained(run, architecture, None, judge),
        }
        rows.append(measured)
        run.report.line(
            f"subnet {number}/{len(drawn)}: {measured['params']:,.0f} parameters, inherited "
            f"probability {measured['inherited']:.4f}, test accuracy alone "
            f"{measured['alone_test']:.4f}"
        )
    return rows


def _trained(
    run: Run, architecture: dict[str, Any], steps: int | None, judge: Judge | None
) -> float:
    """Train an architecture alone: its accuracy by `judge`, or its validation probability."""
    recipe: Recipe = run.recipe[1]
    if steps is not None:
        recipe = shorter(recipe, steps)
    network, result = train_alone(run, architecture, recipe)
    if judge is None:
        return probability_of(result)
    return judge.figures(network)["accuracy"]


def _rank(name: str, rows: list[dict[str, Any]], seed: int) -> RankCorrelation:
    values = np.array([row[name] for row in rows], np.float64)
    truth = np.array([row["alone_test"] for row in rows], np.float64)
    draw = np.random.default_rng(seed)
    correlations: list[float] = []
    for _ in range(RESAMPLED if len(rows) >= FEWEST else 0):
        chosen = draw.integers(len(rows), size=len(rows))
        value = spearman(values[chosen], truth[chosen])
        correlations += [] if value is None else [value]
    low, high = np.percentile(correlations, INTERVAL).tolist() if correlations else (None, None)
    return RankCorrelation(name, spearman(values, truth), low, high)
