"""Predict the accuracy of a network from a few trained networks.

Sources: few-shot predictors of White et al. (How powerful are performance predictors in NAS?,
NeurIPS 2021), on genes and proxies together; extremely randomised trees of Geurts et al. (2006).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hytas.errors import InputError
from hytas.metrics import mean_of_known
from hytas.search.ranks import spearman
from hytas.spaces.features import Architecture, FeatureTable, check_lengths, gene_features
from hytas.spaces.keys import architecture_key
from hytas.types import Floats

ProxyScores = Sequence[Mapping[str, float]]

MODELS = ("extra-trees", "random-forest")
TREES = 200


class Prediction(NamedTuple):
    """Mean (n,) and spread (n,) of the trees' predictions, in the unit of the targets."""

    mean: Floats
    spread: Floats


def make_regressor(model: str, seed: int, trees: int = TREES) -> Any:
    """Return a seeded scikit-learn regressor, which runs on one thread."""
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    if model not in MODELS:
        raise InputError("predictor", model, f"must be one of {', '.join(MODELS)}")
    # Each split of a tree sees a third of the columns. Most columns depend on the network's size,
    # so with all columns the trees would be too similar.
    kind = ExtraTreesRegressor if model == "extra-trees" else RandomForestRegressor
    return kind(n_estimators=trees, max_features=1 / 3, random_state=seed)


class ArchitecturePredictor:
    """Predict a figure such as validation accuracy from genes and proxy scores.

    It works for any search space, because `gene_features` makes columns of any architectures. The
    same seed and rows give the same predictions.

    Args:
        model: one of `MODELS`.
    """

    def __init__(self, *, model: str = "extra-trees", seed: int = 0, trees: int = TREES) -> None:
        self._regressor = make_regressor(model, seed, trees)
        self._table: FeatureTable | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of the fitted columns."""
        return self._table.names if self._table else ()

    def fit(
        self, architectures: Sequence[Architecture], proxy_scores: ProxyScores, targets: ArrayLike
    ) -> "ArchitecturePredictor":
        """Learn from trained architectures.

        Args:
            architectures: n, at least two.
            proxy_scores: n mappings, proxy -> score. The median of the others replaces a score
                that is missing or not finite.
            targets: (n,) figure of each architecture; larger is better.
        """
        values = _check_targets(architectures, proxy_scores, targets)
        self._table = FeatureTable.fit(architectures, proxy_scores)
        self._regressor.fit(self._table.rows(architectures, proxy_scores), values)
        return self

    def predict(
        self, architectures: Sequence[Architecture], proxy_scores: ProxyScores
    ) -> Prediction:
        """Return the predicted figure of each architecture, and the spread over the trees."""
        if self._table is None:
            raise InputError("predictor", rule="must be fitted before it predicts")
        if len(architectures) == 0:
            return Prediction(np.zeros(0), np.zeros(0))
        rows = self._table.rows(architectures, proxy_scores).astype(np.float32)
        trees = np.stack([tree.predict(rows) for tree in self._regressor.estimators_])
        return Prediction(trees.mean(axis=0), trees.std(axis=0))


RANDOM_ORDERS = 200


def cross_validated_rank_correlation(
    architectures: Sequence[Architecture],
    proxy_scores: ProxyScores,
    targets: ArrayLike,
    *,
    params: ArrayLike | None = None,
    model: str = "extra-trees",
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    trees: int = TREES,
) -> dict[str, float | None]:
    """Return Spearman's rho of the predictor, cross-validated, and of rankings that it must beat.

    The trees that predict an architecture have not seen it, nor another training of it. rho is over
    all architectures, and is the mean of several divisions into folds. A prediction counts relative
    to the mean target of its trees. Otherwise folds would bias rho: with few rows, this mean is low
    if the held-out targets are high. The rankings to beat need no fit.

    Args:
        architectures, proxy_scores, targets: as `ArchitecturePredictor.fit`.
        params: (n,) true parameter counts; the score named "params" if left out.
        folds: at most as many as there are different architectures.
        repeats: divisions into folds.

    Returns:
        "predictor", "params", "depth-embed" and "random" (the mean of `RANDOM_ORDERS`). None if rho
        is undefined: the column is constant, or the architectures do not have it.
    """
    values = _check_targets(architectures, proxy_scores, targets)
    if params is None:
        params = [scores.get("params", np.nan) for scores in proxy_scores]
    shapes = [gene_features(item).get("depth-embed", np.nan) for item in architectures]
    generator = np.random.default_rng(seed)
    numbers: dict[str, int] = {}
    kinds = np.array([numbers.setdefault(architecture_key(a), len(numbers)) for a in architectures])
    rows = []
    for repeat in range(repeats):
        parts = np.array_split(generator.permutation(len(numbers)), min(folds, len(numbers)))
        held_out = [np.flatnonzero(np.isin(kinds, part)) for part in parts]
        predictor = ArchitecturePredictor(model=model, seed=seed + repeat, trees=trees)
        predicted = _predict_held_out(predictor, architectures, proxy_scores, values, held_out)
        rows.append(spearman(predicted, values))
    orders = np.random.default_rng(seed)
    random = [spearman(orders.permutation(len(values)), values) for _ in range(RANDOM_ORDERS)]
    return {
        "predictor": mean_of_known(rows),
        "params": spearman(params, values),
        "depth-embed": spearman(shapes, values),
        "random": mean_of_known(random),
    }


def _predict_held_out(
    predictor: ArchitecturePredictor,
    architectures: Sequence[Architecture],
    proxy_scores: ProxyScores,
    values: Floats,
    held_out: Sequence[NDArray[np.int64]],
) -> Floats:
    """Return predictions (n,) for each part, relative to the mean of the parts it is fitted on."""
    predicted = np.zeros(len(values))
    for part in held_out:
        kept = np.setdiff1d(np.arange(len(values)), part)
        if len(kept) < 2:  # too few rows to fit
            continue
        predictor.fit(_pick(architectures, kept), _pick(proxy_scores, kept), values[kept])
        rows = _pick(architectures, part), _pick(proxy_scores, part)
        predicted[part] = predictor.predict(*rows).mean - values[kept].mean()
    return predicted


def _check_targets(
    architectures: Sequence[Architecture], proxy_scores: ProxyScores, targets: ArrayLike
) -> Floats:
    check_lengths(architectures, proxy_scores)
    values = np.asarray(targets, dtype=np.float64)
    if values.shape != (len(architectures),):
        raise InputError(
            "targets",
            rule=f"{values.size} for {len(architectures)} architectures",
            hint="one each is needed",
        )
    if values.size < 2:
        raise InputError(
            "targets", rule=f"{values.size} trained architectures", hint="at least 2 are needed"
        )
    if not np.isfinite(values).all():
        raise InputError("targets", rule="must all be finite numbers")
    return values


def _pick(items: Sequence[Any], chosen: NDArray[np.int64]) -> list[Any]:
    return [items[index] for index in chosen]
