"""Which scores say the same: rank correlations between scores, clustered."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.lab.analysis.bootstrap import rounded
from hytas.lab.analysis.scores import rank_last_if_failed, scores_of
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.tables import RankingTable
from hytas.pictures.plots import draw_heat_map
from hytas.report import FactTable, Figure, Section

TITLE = "Which scores say the same"
ALIKE = 0.9
"""Scores in one cluster have at least this mean |rho| with each other."""
ACCURACY = "OA"


def measure(tables: Sequence[RankingTable], settings: AnalysisSettings, log: Log) -> dict[str, Any]:
    """Return Spearman's rho between all scores, and their clusters.

    The mean is over the tables that have both scores. Clusters come from average linkage of
    1 - |rho|.

    Returns:
        JSON-ready: "names" in the order of the clusters, "rho" (None where no table has both),
        "clusters": lists of names.
    """
    log("correlations between scores")
    columns = [_columns(table) for table in tables]
    names = list(dict.fromkeys(name for each in columns for name in each))
    sums, counts = np.zeros((2, len(names), len(names)))
    for each in columns:
        own = [names.index(name) for name in each]
        places = np.ix_(own, own)
        sums[places] += np.corrcoef(np.stack(list(each.values()))) if len(each) > 1 else 1.0
        counts[places] += 1
    rho = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    order, clusters = _clustered(rho)
    ordered = rho[np.ix_(order, order)]
    return {
        "names": [names[place] for place in order],
        "rho": [[None if np.isnan(v) else round(float(v), 6) for v in row] for row in ordered],
        "clusters": [[names[place] for place in group] for group in clusters],
    }


def _columns(table: RankingTable) -> dict[str, NDArray[np.float64]]:
    """Return the ranks (n,) of each score that is not constant, and of the accuracy."""
    ranks = {name: rank_last_if_failed(each) for name, each in scores_of(table).items()}
    ranks[ACCURACY] = rank_last_if_failed(table.accuracy)
    return {name: values for name, values in ranks.items() if np.ptp(values) > 0}


def _clustered(rho: NDArray[np.float64]) -> tuple[list[int], list[list[int]]]:
    """Return all places, those of similar scores next to each other, and the clusters of them."""
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(rho) < 3:
        return list(range(len(rho))), []
    far = 1 - np.abs(np.nan_to_num(rho))
    np.fill_diagonal(far, 0)
    condensed = squareform(np.clip((far + far.T) / 2, 0, 1), checks=False)
    tree = linkage(condensed, "average")
    order = leaves_list(optimal_leaf_ordering(tree, condensed)).tolist()
    labels = fcluster(tree, 1 - ALIKE, "distance")
    groups: dict[int, list[int]] = {}
    for place in order:
        groups.setdefault(int(labels[place]), []).append(place)
    return order, [group for group in groups.values() if len(group) > 1]


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    names, clusters = measured["names"], measured["clusters"]
    values = np.array(measured["rho"], dtype=np.float64)
    svg = draw_heat_map(names, names, values)
    about = f"Heat map of Spearman's rho between {len(names)} columns; similar ones are neighbours"
    clustered, scores = sum(map(len, clusters)), len(set(names) - {ACCURACY})
    verdict = (
        f"Of {scores} scores, {clustered} lie in {len(clusters)} clusters whose members "
        f"rank alike (mean |rho| of {ALIKE} or more)."
        if clusters
        else f"No two of {scores} scores rank alike (mean |rho| of {ALIKE} or more)."
    )
    rows = [
        [f"cluster {number}", rounded(_least(names, values, cluster)), ", ".join(cluster)]
        for number, cluster in enumerate(clusters, start=1)
    ]
    grids = [FactTable("Clusters", ("", "lowest |rho| inside", "scores that rank alike"), rows)]
    figure = Figure("Spearman's rho between scores, mean over tables", svg, about, wide=True)
    return Section("alike", TITLE, [verdict], grids if rows else (), [figure])


def _least(names: Sequence[str], values: NDArray[np.float64], cluster: Sequence[str]) -> float:
    places = [names.index(name) for name in cluster]
    return float(np.nanmin(np.abs(values[np.ix_(places, places)])))
