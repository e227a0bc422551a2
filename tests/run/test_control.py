"""A search in an evolved space says what it must be compared with."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from one_candidate import CONFIG
from without_references import run_pipeline

from hytas.data import Scene
from hytas.report import render
from hytas.results import RunResults
from hytas.run.delivering.control import EVOLVED
from hytas.run.delivering.findings import run_facts
from hytas.run.folder import RunFolder
from hytas.spaces.opening import with_values
from refusals import refuses
from told import Told


@pytest.mark.parametrize("evolved", [True, False])
def test_log_and_report_name_the_control(evolved: bool, scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    about = f"{EVOLVED}hytas for scene s and budget 50K-params. Error before" if evolved else ""
    path.write_text(with_values("hytas", {}, about))
    recipe = replace(CONFIG.recipe, epochs=0)
    config = replace(CONFIG, space=str(path), budget="30K-params", recipe=recipe)
    told = Told()
    run_pipeline(config, scene, tmp_path / "run", device="cpu", report=told)
    said = [text for text in told.notices if "evolved from hytas" in text]
    facts = run_facts(RunFolder(tmp_path / "run"))
    noted = [note for note in facts.notes if "same search in hytas" in note]
    assert (len(said), len(noted)) == ((1, 1) if evolved else (0, 0))
    page = render([facts])
    assert ("gained nothing" in page) == evolved


def test_control_is_reported_next_to_the_run(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_text(with_values(CONFIG.space, {"depth": [1]}, f"{EVOLVED}tiny.json for s. Error"))
    config = replace(CONFIG, space=str(path))
    alone = run_pipeline(config, scene, tmp_path / "run", device="cpu").metrics
    assert alone is not None
    assert "control" not in alone
    config = replace(config, control=CONFIG.space)  # later
    both = run_pipeline(config, scene, tmp_path / "run", device="cpu").metrics
    assert both is not None
    own, control = both.pop("control")
    assert both == alone
    assert (own["space"], control["space"]) == (str(path), CONFIG.space)
    assert own["OA"] == RunResults.of(alone).of_map["OA"]
    # The control is what a run of its own is.
    other = run_pipeline(CONFIG, scene, tmp_path / "other", device="cpu").metrics
    assert other is not None
    assert control["OA"] == RunResults.of(other).of_map["OA"]
    assert (own["candidates"], control["candidates"]) == (2, 2)
    inner = RunFolder(tmp_path / "run" / "control")
    inner.weights.unlink()  # killed: it goes on to the same result
    again = run_pipeline(config, scene, tmp_path / "run", device="cpu").metrics
    assert again == {**both, "control": [own, control]}
    facts = run_facts(RunFolder(tmp_path / "run"))
    assert "The same search in another space" in render([facts])
    assert "race of the control" in facts.times
    assert not [note for note in facts.notes if "fair control" in note]
    third = tmp_path / "third.json"
    third.write_text(with_values(CONFIG.space, {"depth": [2]}, "Another space."))
    before = (tmp_path / "run" / "config.json").read_bytes()
    with refuses("control", str(third), f"has the control {re.escape(CONFIG.space)}"):
        run_pipeline(replace(config, control=str(third)), scene, tmp_path / "run", device="cpu")
    assert (tmp_path / "run" / "config.json").read_bytes() == before
