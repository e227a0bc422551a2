"""A scikit-learn estimator over the whole road: fit, score, export.

    python examples/estimator.py [FOLDER]

prints the accuracy on the pixels that were kept apart ("test OA"), and writes FOLDER/model.onnx.
"""

import sys
from pathlib import Path

import numpy as np

import hytas


def main(out: str) -> None:
    rng = np.random.default_rng(0)
    labels = np.zeros((30, 40), np.uint8)
    labels[2:14, 3:37], labels[16:28, 3:20], labels[16:28, 22:37] = 1, 2, 3
    spectra = rng.uniform(200, 3000, (4, 24))
    cube = (spectra[labels] + rng.normal(0, 120, (30, 40, 24))).astype(np.int16)
    # The left half trains, the right half tests; the columns between belong to neither.
    train, test = labels.copy(), labels.copy()
    train[:, 15:], test[:, :19] = 0, 0
    train[:, 26:30] = labels[:, 26:30]  # the third field lies on the right only
    test[:, 23:33] = 0

    model = hytas.HSIClassifier(
        budget="30K..60K-params", population=8, generations=2, finalists=3, epochs=8, work_dir=out
    )
    model.fit(cube, train)
    print("architecture", model.architecture_)
    print("test OA", model.score(cube, test))
    print("map", model.predict(cube).shape)
    model.export(Path(out) / "model.onnx")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/estimator")
