"""Plug-ins: the examples of the documentation, run as they stand there, and what may go wrong."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from sklearn.base import clone

from hytas import HSIClassifier, plugins
from hytas._engine import Budget, Feasible
from hytas.data import load_scene, open_cube, open_file, synthetic_scene
from hytas.estimator.arguments import checked
from hytas.job import run_pipeline
from hytas.proxies import Evaluator
from hytas.run import RunConfig, read_run
from hytas.search import EvaluationStore, SearchWatch, StrategySettings, search
from hytas.search.strategies import STRATEGIES
from hytas.spaces import InputShape, open_space

from commands import Run, run_copy  # isort: skip
from refusals import refuses  # isort: skip

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
NETWORK, SCORES, ANNEALER, TARGET, READER, PRODUCT, CHECKS = EXAMPLES
SHAPE = InputShape(bands=20, classes=4)


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    """Each test leaves no plug-in behind."""
    yield
    for name in plugins.loaded_plugins():
        plugins.unload(name)
    assert plugins.carried(len) is len


def written(folder: Path, *texts: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def test_a_scene_of_a_plug_ins_format_is_read(tmp_path: Path) -> None:
    plugins.load_plugins([str(written(tmp_path, READER))])
    cube = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    path = tmp_path / "field.scan"
    path.write_bytes(b"SCANNER 2 3 4\n400 500 600 700\n" + cube.tobytes())
    np.save(tmp_path / "labels.npy", np.array([[1, 1, 2], [2, 1, 2]]))
    scene = load_scene(path, tmp_path / "labels.npy")
    np.testing.assert_array_equal(scene.cube[:], cube)
    assert scene.wavelengths.tolist() == [400, 500, 600, 700]


def test_a_product_of_a_plug_in_is_read(tmp_path: Path, here: Run) -> None:
    path, cube = tmp_path / "night.h5", np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    with h5py.File(path, "w") as file:
        file["airglow/counts"] = cube
        file["airglow/centres"] = np.array([400.0, 500, 600, 700])
    done = here("inspect", path, "--plugin", written(tmp_path, PRODUCT), "--json")
    assert json.loads(done.stdout)["format"] == "Airglow L1"
    opened = open_cube(path)
    np.testing.assert_array_equal(opened[0:2], cube.transpose(1, 2, 0))
    assert opened.wavelengths.tolist() == [400, 500, 600, 700]
    plugins.unload(str(tmp_path / "mine.py"))
    assert open_file(path).format == "HDF5"


def scorer(seed: int = 0) -> Evaluator:
    random = np.random.default_rng(seed)
    batch = random.normal(size=(4, 7, 7, 20)).astype(np.float32), np.arange(4)
    return Evaluator("logit-spread", SHAPE, batch=batch)


def fits(budget: str) -> Feasible:
    space, bounds = open_space("my-mlp", budget, offered=SHAPE.variables())
    return Feasible(space, bounds)


def searched(
    path: Path,
    feasible: Feasible,
    notes: list[str],
    generations: int = 5,
    until: Callable[[], bool] = lambda: False,
) -> list[dict]:
    with EvaluationStore(path) as store:
        search(
            feasible,
            scorer(),
            lambda items: [item.scores["logit-spread"] for item in items],
            StrategySettings("annealer", population=2, generations=generations, chunk=1),
            store,
            watch=SearchWatch(notify=notes.append, until=until),
        )
        return [(item.architecture, item.scores) for item in store.evaluations()]


def test_a_strategy_gets_only_new_candidates_that_fit(tmp_path: Path) -> None:
    plugins.load_plugins([str(written(tmp_path, NETWORK, SCORES, ANNEALER))])
    feasible, notes = fits("1500-params"), []
    found = searched(tmp_path / "a.sqlite", feasible, notes, generations=50)
    widths = [one["hidden"] for one, _ in found]
    assert sorted(widths) == [8, 16, 24, 32, 40, 48]  # all that fit, each once, then it ends
    assert len(notes) == 1
    assert "do not fit the budget 1500-params" in notes[0]


def test_an_interrupted_strategy_goes_on_as_if_it_was_not(tmp_path: Path) -> None:
    plugins.load_plugins([str(written(tmp_path, NETWORK, SCORES, ANNEALER))])
    feasible = fits("4K-params")
    whole = searched(tmp_path / "whole.sqlite", feasible, [], generations=3)
    searched(tmp_path / "parts.sqlite", feasible, [], generations=1)
    assert searched(tmp_path / "parts.sqlite", feasible, [], generations=3) == whole


def test_a_strategy_that_does_not_repeat_itself_is_refused(tmp_path: Path) -> None:
    plugins.load_plugins([str(written(tmp_path, NETWORK, SCORES, ANNEALER))])
    feasible = fits("4K-params")
    searched(tmp_path / "a.sqlite", feasible, [], generations=2)

    class Other(STRATEGIES["annealer"]):
        """Another seed each time."""

        def __init__(self, feasible, seed):
            super().__init__(feasible, seed + 1)

    STRATEGIES["annealer"] = Other
    with refuses("strategy", "annealer", "other candidates than before"):
        searched(tmp_path / "a.sqlite", feasible, [], generations=3)


def test_lists_of_layers_follow_the_depth(tmp_path: Path) -> None:
    plugins.load_plugins([str(written(tmp_path, ANNEALER))])
    space, _ = open_space("hytas", "1M-params", offered=SHAPE.variables())
    with EvaluationStore(tmp_path / "a.sqlite") as store:
        search(
            Feasible(space, Budget.parse("1M-params")),
            Evaluator("params", SHAPE),
            lambda items: [item.scores["params"] for item in items],
            StrategySettings("annealer", population=4, generations=10),
            store,
        )
        found = [item.architecture for item in store.evaluations()]
    assert len(found) == 40
    assert len({one["depth"] for one in found}) > 1


@pytest.mark.parametrize(
    ("text", "argument", "rule"),
    [
        ("x = 1", "plugins", "brings nothing"),
        ("import nowhere_at_all", "plugins", "its module fails: ModuleNotFoundError"),
        ("def f(:", "plugins", "its module fails: SyntaxError"),
        ("import sys\nsys.exit()", "plugins", "its module fails: SystemExit"),
        (NETWORK.replace('"my-mlp", space', '"hytas", space'), "network", "is built in"),
        (SCORES.replace("logit-spread", "dss"), "proxy", "is built in"),
        (ANNEALER.replace('"annealer"', '"evolution"'), "strategy", "is built in"),
        (ANNEALER.replace('"annealer"', '"local"'), "strategy", "is built in"),
        (NETWORK.replace('data="scenes"', 'data="scene"'), "data", "scenes or images"),
        (SCORES.replace('pass_name="network"', 'pass_name="net"'), "pass_name", "must be one of"),
        (re.sub(r' +"""Spread.*"""\n', "", SCORES), "proxy", "needs a docstring"),
        (SCORES.replace('pass_name="network"', 'speed="high"'), "proxy", "speed"),
        (SCORES.replace("cautious", "logit-spread") + SCORES, "proxy", "is registered twice"),
        (ANNEALER.replace("def tell", "def told"), "strategy", "needs a method tell"),
    ],
)
def test_bad_plug_ins_are_refused(text: str, argument: str, rule: str, tmp_path: Path) -> None:
    import hytas.models  # noqa: F401

    with refuses(argument, rule=rule):
        plugins.load_plugins([str(written(tmp_path, text))])


def test_an_estimator_takes_plug_ins(tmp_path: Path) -> None:
    path = written(tmp_path, SCORES)
    settings = {"proxy": "logit-spread", "ranking": "cautious", "plugins": [str(path)]}
    checked(clone(HSIClassifier("500K-params", **settings)))
    with refuses("plugins", 5, "must be a list"):
        checked(HSIClassifier("500K-params", plugins=5))


def test_an_installed_plug_in_is_named_by_its_entry_point(tmp_path: Path, monkeypatch) -> None:
    written(tmp_path, SCORES, name="installed_scores.py")
    info = tmp_path / "installed_scores-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-scores\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hytas.plugins]\nscores = installed_scores\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = RunConfig(plugins=["scores"], proxy="logit-spread", ranking="cautious")
    assert config.plugins == ["scores"]
    assert plugins.loaded_plugins() == {"scores": "1.0"}
    assert RunConfig.from_dict(config.to_dict()) == config


def config_of(path: Path, **settings: object) -> RunConfig:
    return RunConfig(
        budget="8K-params",
        plugins=[str(path)],
        space="my-mlp",
        proxy="logit-spread",
        strategy="annealer",
        effort="quick",
        ranking="cautious",
        **{"population": 2, "generations": 2, "finalists": 2, "self_training": "none", **settings},
    ).with_epochs(1)


def test_a_run_goes_on_with_its_plug_in_and_with_no_other(tmp_path: Path) -> None:
    path, scene = written(tmp_path, NETWORK, SCORES, ANNEALER), synthetic_scene()
    out = tmp_path / "run"
    run_pipeline(config_of(path), scene, out, references=False, workers=1)
    assert {row["space"] for row in read_run(out).candidates()} == {"my-mlp"}

    path.write_text(path.read_text().replace("0.9", "0.8"))
    with refuses(str(path), rule="has changed since the run"):
        run_pipeline(config_of(path), scene, out, references=False, workers=1)
    # Its folder brings no code: each command names the source again, wherever it lies.
    (tmp_path / "moved").mkdir()
    first = written(tmp_path / "moved", NETWORK, SCORES, ANNEALER)
    for named, words in (
        ((), "folder does not bring it"),
        (("--plugin", path), "has changed since"),
    ):
        refused = run_copy("export", out, *named)
        assert refused.returncode == 2
        assert words in " ".join(refused.stderr.split())
    exported = run_copy("export", out, "--plugin", first)
    assert exported.returncode == 0, exported.stderr
    classified = run_copy("classify", out / "model.onnx", "synthetic", "--out", tmp_path / "m.png")
    assert classified.returncode == 0, classified.stderr
