"""Fit predictors on a few networks of a table, and test them on the others.

Sources: few-shot predictors of White et al. (How powerful are performance predictors in NAS?,
NeurIPS 2021), on genes and proxies together; extremely randomised trees of Geurts et al. (2006).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.lab.analysis.scores import RANK_FIGURES, rank_figures
from hytas.lab.analysis.tables import RankingTable
from hytas.metrics import mean_and_deviation
from hytas.spaces.features import feature_rows
from hytas.types import Floats

MODELS = {"extra-trees": "ExtraTreesRegressor", "random-forest": "RandomForestRegressor"}
"""Name -> class of scikit-learn."""
TREES = 200
PREDICTOR_SIZES = (20, 50, 100, 200)
LEAST_TESTED = 10
"""Least number of networks to test a predictor on."""


def make_regressor(model: str, seed: int, trees: int = TREES) -> Any:
    """Return a seeded scikit-learn regressor, one of `MODELS`, which runs on one thread."""
    from sklearn import ensemble

    # Each split of a tree sees a third of the columns. Most columns depend on the network's size,
    # so with all columns the trees would be too similar.
    kind = getattr(ensemble, MODELS[model])
    return kind(n_estimators=trees, max_features=1 / 3, random_state=seed)


def predictors(
    table: RankingTable,
    groups: Mapping[str, NDArray[np.bool_]],
    seeds: int,
    sizes: Sequence[int],
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Return rank correlations of predictors on networks that they were not fitted on.

    The features are numeric genes, the table's scores and the true parameter count. The regressors
    are `MODELS`. A seed decides the trees and the networks to fit on,
    which are the same for all regressors.

    Returns:
        "random-forest 20" and so on -> "kind" and group -> "spearman" and "kendall" (means over
        seeds), "spearman_std", and for all networks the gains. Sizes that leave fewer than ten
        networks to test on are left out.
    """
    true_params = {} if table.size is None else {"true params": table.size.params}
    features = feature_rows(table.architectures, {**table.scores, **true_params})
    figures: dict[str, Any] = {}
    for size in sizes:
        if len(table) - size < LEAST_TESTED:
            progress(
                f"{table.name}: no predictor with {size} of {len(table)} networks: at least "
                f"{LEAST_TESTED} must be left to test on"
            )
            continue
        for model in MODELS:
            progress(f"{table.name}: {model} on {size} networks")
            runs = [
                _one_run(features, table.accuracy, groups, model, size, seed)
                for seed in range(seeds)
            ]
            figures[f"{model} {size}"] = {"kind": "predictor", **_over_seeds(runs)}
    return figures


def _one_run(
    features: Floats,
    accuracy: Floats,
    groups: Mapping[str, NDArray[np.bool_]],
    model: str,
    size: int,
    seed: int,
) -> dict[str, dict[str, float | None]]:
    order = np.random.default_rng(seed).permutation(len(accuracy))
    fitted, rest = order[:size], order[size:]
    regressor = make_regressor(model, seed)
    # The median of all networks replaces a failed score. Only accuracies of test networks must stay
    # unseen.
    regressor.fit(features[fitted], accuracy[fitted])
    predicted, reached = regressor.predict(features[rest]), accuracy[rest]
    return {
        group: rank_figures(predicted, reached, mask[rest], bool(mask.all()), 1)
        for group, mask in groups.items()
    }


def _over_seeds(runs: Sequence[Mapping[str, Mapping[str, float | None]]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for group in runs[0]:
        result[group] = {}
        for figure in RANK_FIGURES:
            over = mean_and_deviation([run[group].get(figure) for run in runs])
            result[group][figure] = over["mean"]
            if figure == "spearman":
                result[group]["spearman_std"] = over["std"]
    return result
