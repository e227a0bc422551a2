"""What a run has recorded, as rows."""

from pathlib import Path

import pandas as pd
import pytest

import hytas
from hytas.search import Evaluation, EvaluationStore, Training

from refusals import refuses  # isort: skip


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


def test_a_folder_without_a_search_is_refused(tmp_path: Path) -> None:
    with refuses("run", tmp_path, "no folder of a search"):
        hytas.read_run(tmp_path)
    with pytest.raises(hytas.InputError):
        hytas.read_run(tmp_path / "gone")
