"""`HSIClassifier`: search, training and export with the conventions of scikit-learn."""

from hytas.estimator.classifier import HSIClassifier

__all__ = ["HSIClassifier"]
