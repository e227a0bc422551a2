"""`HSIClassifier` and `HSIRegressor`, with the conventions of scikit-learn."""

from hytas.estimator.classifier import HSIClassifier
from hytas.estimator.regressor import HSIRegressor

__all__ = ["HSIClassifier", "HSIRegressor"]
