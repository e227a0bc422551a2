"""A search in an evolved space says what it must be compared with."""

from dataclasses import replace
from pathlib import Path

import pytest
from one_candidate import CONFIG

from hytas.data import Scene
from hytas.report import render
from hytas.run import run_pipeline
from hytas.run.control import EVOLVED
from hytas.run.delivering.findings import run_facts
from hytas.run.folder import RunFolder
from hytas.run.progress import Report
from hytas.spaces.narrowing import with_values


class Kept(Report):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


@pytest.mark.parametrize("evolved", [True, False])
def test_log_and_report_name_the_control(evolved: bool, scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    about = f"{EVOLVED}hytas for scene s and budget 50K-params. Error before" if evolved else ""
    path.write_text(with_values("hytas", {}, about))
    recipe = replace(CONFIG.recipe, epochs=0)
    config = replace(CONFIG, space=str(path), budget="30K-params", recipe=recipe)
    kept = Kept()
    run_pipeline(config, scene, tmp_path / "run", device="cpu", report=kept)
    said = [text for text in kept.notices if "evolved from hytas" in text]
    facts = run_facts(RunFolder(tmp_path / "run"))
    noted = [note for note in facts.notes if "same search in hytas" in note]
    assert (len(said), len(noted)) == ((1, 1) if evolved else (0, 0))
    page = render([facts, facts])
    assert "candidates scored" in page
    assert ("gained nothing" in page) == evolved
