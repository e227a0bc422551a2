"""A search in an evolved space says what it must be compared with."""

from dataclasses import replace
from pathlib import Path

from one_candidate import CONFIG
from without_references import run_pipeline

from hytas.data import Scene
from hytas.report import render
from hytas.results import RunResults
from hytas.run.delivering.reporting import run_facts
from hytas.run.folder import RunFolder
from hytas.spaces.opening import with_values


def test_control_is_reported_next_to_the_run(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_text(with_values(CONFIG.space, {"depth": [1]}, "Another space."))
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
