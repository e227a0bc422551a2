"""What a run has recorded, as rows."""

from pathlib import Path

import pandas as pd

import hytas
from hytas.search import Evaluation, EvaluationStore, Training


def test_candidates_and_trainings_are_rows(tmp_path: Path) -> None:
    genes = {"space": "hytas", "depth": 4, "num_heads": [3, 3, 4, 4]}
    with EvaluationStore(tmp_path / "evaluations.sqlite") as store:
        store.add([Evaluation(0, 1, genes, {"params": 9}, {"dss": 0.5}, {}, 0.25)])
        store.add_training(Training(0, "full", 30, 1, 20, {"accuracy": 0.75}, 2.0))
    run = hytas.read_run(tmp_path)
    candidates = pd.DataFrame(run.candidates())
    row = candidates.loc[0]
    assert (row.depth, row.num_heads, row.params, row.dss) == (4, [3, 3, 4, 4], 9, 0.5)
    (training,) = run.trainings()
    expected = {"id": 0, "recipe": "full", "steps": 30, "fold": 1, "accuracy": 0.75}
    assert expected.items() <= training.items()
