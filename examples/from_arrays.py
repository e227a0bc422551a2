"""From arrays in memory to a deployed model, in Python.

    python examples/from_arrays.py runs/from-arrays

A cube (H, W, bands) and a label map (H, W), 0 for 'unlabelled', are all that is needed.
"""

import sys

import numpy as np

import hytas


def main(out: str) -> None:
    rng = np.random.default_rng(0)
    labels = np.zeros((30, 40), np.uint8)
    labels[2:14, 3:37], labels[16:28, 3:20], labels[16:28, 22:37] = 1, 2, 3
    spectra = rng.uniform(200, 3000, (4, 24))
    cube = (spectra[labels] + rng.normal(0, 120, (30, 40, 24))).astype(np.int16)

    scene = hytas.scene_from_arrays(cube, labels, class_names={1: "wheat", 2: "maize", 3: "soil"})
    config = hytas.RunConfig(
        budget="40K..60K-params",
        proxy="dss",
        population=8,
        generations=2,
        finalists=4,
        race_steps=20,
        recipe=hytas.Recipe(epochs=6),
    )
    outcome = hytas.run_pipeline(config, scene, out)
    print("architecture", outcome.architecture)
    print("params", outcome.costs["params"])
    assert outcome.metrics is not None
    print("test OA", outcome.metrics["test"]["OA"])

    model = hytas.DeployedModel.load(f"{out}/model.onnx")
    print("pixels a class", np.unique(hytas.classify_scene(model, cube).labels, return_counts=True))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/from-arrays")
