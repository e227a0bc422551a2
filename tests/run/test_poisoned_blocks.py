"""Where test pixels lie apart, networks see them in maps, but nothing reads a label."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_run_race import CPU, RACE, kept, without_time

from hytas.data import Scene, Split
from hytas.job import choose, train_winner
from hytas.run import RunConfig, RunFolder, prepared
from hytas.run.context import open_run, prepare
from hytas.run.delivering.comparing import references_stage
from hytas.run.delivering.reporting import run_facts
from hytas.run.final.fits import records_of
from hytas.run.final.task import final_task
from hytas.run.folder import read_json
from hytas.run.stages import do
from hytas.run.weights import load_weights
from small import fields
from told import Told


def made(config: RunConfig, scene: Scene, out: Path) -> dict[str, Any]:
    """What a run makes and says until the reference methods are compared with its map."""
    told = Told()
    with open_run(out, config, scene, "cpu", told, workers="1") as run:
        choose(run)
        train_winner(run)
        do(run, "reference methods", references_stage)
        records = records_of(final_task(run))
    folder = RunFolder(out)
    facts, model = run_facts(folder, shape=run.context.data.shape), load_weights(folder.weights)
    return {
        "trainings": without_time(kept(out)[1]),
        "architecture": read_json(folder.architecture),
        "recipe": read_json(folder.recipe),
        "sizes": (facts.sizes, facts.smaller),
        "records": [
            {
                name: value.tolist()
                for name, value in vars(one).items()
                if isinstance(value, np.ndarray)
            }
            for one in records
        ],
        "training": model.training,
        "card": model.card,
        "weights": {name: one.tolist() for name, one in model.network.state_dict().items()},
        "comparison": read_json(folder.references)["validation"],
        "lines": told.lines,
    }


def test_labels_of_test_pixels_change_nothing_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(RACE, split="blocks", train_per_class=60, finalists=4)
    asked, scene = asked.with_epochs(8), fields(0.8)
    split = prepare(asked, scene, CPU).data.split
    poisoned = scene.labels.copy()
    others = np.setdiff1d(np.arange(poisoned.size), split.train_and_validation)
    poisoned.flat[others] = poisoned.flat[others] % 3 + 1

    def same_split(*_: object, **__: object) -> Split:
        return split  # it is drawn by the labels

    monkeypatch.setattr(prepared, "make_split", same_split)
    clean, other = (
        made(asked, replace(scene, labels=labels), tmp_path / name)
        for name, labels in (("clean", scene.labels), ("poisoned", poisoned))
    )
    for name, value in clean.items():
        assert other[name] == value, name
    # Every path of such a run was taken.
    assert clean["sizes"][0]
    assert len(clean["records"]) > 1
    assert np.isin(split.test, clean["records"][0]["unlabelled"]).any()
    training = clean["training"]
    assert training["smoothing"]["pixels"] > 0
    assert training["self_training"]["pixels"] > 0
    assert clean["comparison"]["pixels"] > 0
    assert any(line.startswith("OA on") or "the winner is below" in line for line in clean["lines"])
