"""The race that ends a search."""

import math
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hytas.data import Scene, Split, scene_from_arrays
from hytas.errors import InputError
from hytas.run import RunConfig, race, run_mission, trials, workers
from hytas.run.context import prepare
from hytas.run.earlier import read_earlier
from hytas.run.folder import read_json
from hytas.run.proposals import describe_predictor, diverse, waves
from hytas.run.rounds import RoundResult, round_results
from hytas.search import Evaluation, EvaluationStore, Training
from hytas.train import DivergedError, Recipe

RACE = RunConfig(
    space="hytas",
    budget="30K..60K-params",
    proxy="params",
    population=6,
    generations=2,
    finalists=5,
    race_steps=3,
    patch_size=3,
    validation_fraction=0.2,
    recipe=Recipe(epochs=0, batch_size=16),
)


def fixed_scene(poison: int = 0) -> Scene:
    """Three classes with a fixed split; `poison` shifts the labels of the test pixels."""
    generator = np.random.default_rng(1)
    labels = np.repeat(np.arange(1, 4), 12)[None].repeat(12, 0)
    cube = generator.normal(labels[..., None], 0.8, (12, 36, 9)).astype(np.float32)
    is_train = np.zeros(labels.shape, bool)
    is_train[:, ::3] = True
    changed = np.where(is_train, labels, (labels - 1 + poison) % 3 + 1)
    scene = scene_from_arrays(cube, changed, name="stripes")
    train, test = (np.where(part, scene.labels, 0) for part in (is_train, ~is_train))
    return replace(scene, train=train, test=test)


def plain_scene() -> Scene:
    """The same without a split of its own."""
    return replace(fixed_scene(), train=None, test=None)


@pytest.fixture(autouse=True)
def one_fold(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "folds" not in request.node.name:
        monkeypatch.setattr(trials, "ENOUGH_PIXELS", 1)


def trainings(folder: Path) -> list[Training]:
    with EvaluationStore(folder / "evaluations.sqlite") as store:
        return store.trainings()


def results(folder: Path) -> list[RoundResult]:
    return round_results(trainings(folder))


def without_time(items: list[Training]) -> list[Training]:
    return [replace(item, seconds=0.0) for item in items]


def test_the_best_on_validation_pixels_wins(tmp_path: Path) -> None:
    outcome = run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")
    done = results(tmp_path / "run")
    first, last = ([t for t in done if t.steps == steps] for steps in (3, 6))
    assert (len(done), len(first), len(last)) == (8, 5, 3)
    best = sorted(first, key=lambda t: -t.merit)[:3]
    assert {t.id for t in best} == {t.id for t in last}
    early = {t.id: t.merit for t in first}
    winner = max(last, key=lambda t: 2 * t.merit + early[t.id])
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        (item,) = [item for item in store.evaluations() if item.id == winner.id]
    assert outcome.architecture == item.architecture


@pytest.mark.parametrize(
    ("merits", "winner"),
    [
        # The fast one is second by a hair in the long round.
        ({3: (0.5, 0.9, 0.8, 0.2, 0.1), 6: (0.0, 0.960, 0.965, 0.0, 0.0)}, 1),
        # Ahead in the first round, and no longer when it counts.
        ({3: (0.9, 0.7, 0.6, 0.1, 0.1), 6: (0.7, 0.85, 0.8, 0, 0)}, 1),
    ],
)
def test_a_round_counts_by_its_length(
    merits: dict[int, tuple[float, ...]],
    winner: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: dict[int, list[int]] = {}

    def fake(context: object, chosen: Sequence[trials.Trial], steps: int) -> Iterator[Training]:
        for trial in chosen:
            number = trial.finalist.id
            trained.setdefault(steps, []).append(number)
            merit = merits[steps][trained[3].index(number)]
            yield Training(number, steps, trial.fold, 29, 0.0, 1.0, merit, 0.0)

    monkeypatch.setattr(race, "run_trials", fake)
    config = replace(RACE, finalists=len(merits[3]))
    outcome = run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    assert set(trained) == set(merits)
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        (item,) = [item for item in store.evaluations() if item.id == trained[3][winner]]
    assert outcome.architecture == item.architecture


def test_the_last_two_are_trained_in_full(tmp_path: Path) -> None:
    # 144 training pixels, a fifth kept to choose on: 8 steps of 16 an epoch.
    config = replace(RACE, recipe=replace(RACE.recipe, epochs=2))
    run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    rounds = {t.steps for t in trainings(tmp_path / "run")}
    assert rounds == {3, 6, 16}
    assert sum(t.steps == 16 for t in trainings(tmp_path / "run")) == 2


def test_two_are_trained_in_full_when_that_is_hardly_longer(tmp_path: Path) -> None:
    config = replace(RACE, finalists=8, recipe=replace(RACE.recipe, epochs=2), race_steps=5)
    run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    assert [t.steps for t in trainings(tmp_path / "run")] == [5] * 8 + [10] * 4 + [16] * 2


def test_no_further_round_is_longer_than_the_training_to_come(tmp_path: Path) -> None:
    config = replace(RACE, finalists=9, recipe=replace(RACE.recipe, epochs=1))
    run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    # A third round would take 12 steps; the retraining takes 8, and tells no more than these.
    assert [t.steps for t in trainings(tmp_path / "run")] == [3] * 9 + [6] * 5 + [8] * 3


def test_a_race_that_was_stopped_trains_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_mission(RACE, fixed_scene(), tmp_path / "whole", device="cpu")
    monkeypatch.setattr(workers, "_workers", lambda *_: 1)  # in this process
    train, calls = trials.train, []

    def stopping(*arguments: object) -> Training:
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return train(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(trials, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_mission(RACE, fixed_scene(), tmp_path / "stopped", device="cpu")
    assert len(trainings(tmp_path / "stopped")) == 3
    resumed = run_mission(RACE, fixed_scene(), tmp_path / "stopped", device="cpu")
    assert len(calls) == 4 + 5  # three of eight were done
    whole, stopped = (trainings(tmp_path / name) for name in ("whole", "stopped"))
    assert without_time(whole) == without_time(stopped)
    assert (tmp_path / "whole" / "architecture.json").read_bytes() == (
        resumed.folder / "architecture.json"
    ).read_bytes()


def test_few_pixels_are_validated_in_folds(tmp_path: Path) -> None:
    scene = fixed_scene()
    run_mission(RACE, scene, tmp_path / "run", device="cpu")
    with np.load(tmp_path / "run" / "split.npz") as split:
        count = len(split["validation"])
    done = trainings(tmp_path / "run")
    folds = math.ceil(trials.ENOUGH_PIXELS / count)
    assert 1 < folds < 5
    by_round = [{(t.id, t.fold) for t in done if t.steps == steps} for steps in (3, 6)]
    assert [len(found) for found in by_round] == [5 * folds, 3 * folds]
    assert {t.fold for t in done} == set(range(folds))
    # The winner is the best over all folds, not of any one.
    whole = {(r.id, r.steps): r.merit for r in results(tmp_path / "run")}
    last = {number for number, steps in whole if steps == 6}
    winner = max(last, key=lambda number: 2 * whole[number, 6] + whole[number, 3])
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        (item,) = [item for item in store.evaluations() if item.id == winner]
    assert read_json(tmp_path / "run" / "architecture.json") == item.architecture


def test_a_round_that_was_stopped_between_folds_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this process: joblib warns of jobs that a stop gives up, and warnings are errors here.
    monkeypatch.setattr(workers, "_workers", lambda *_: 1)
    scene = fixed_scene()
    run_mission(RACE, scene, tmp_path / "whole", device="cpu")
    add = EvaluationStore.add_training

    def stopping(store: EvaluationStore, training: Training) -> None:
        add(store, training)
        if training.fold == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(EvaluationStore, "add_training", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_mission(RACE, scene, tmp_path / "stopped", device="cpu")
    monkeypatch.setattr(EvaluationStore, "add_training", add)
    assert 0 < len(trainings(tmp_path / "stopped")) < len(trainings(tmp_path / "whole"))
    run_mission(RACE, scene, tmp_path / "stopped", device="cpu")
    whole, stopped = (trainings(tmp_path / name) for name in ("whole", "stopped"))
    assert without_time(whole) == without_time(stopped)


def test_finalists_side_by_side_train_as_one_alone_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (1, 2):
        monkeypatch.setattr(workers, "_workers", lambda *_, count=count: count)
        run_mission(RACE, fixed_scene(), tmp_path / str(count), device="cpu")
    alone, beside = (trainings(tmp_path / name) for name in ("1", "2"))
    assert without_time(alone) == without_time(beside)


@pytest.mark.skipif(shutil.which("ps") is None, reason="no ps to list processes with")
def test_what_trained_is_gone_when_the_race_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_workers", lambda *_: 2)
    run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")
    children = ["ps", "-o", "args=", "--ppid", str(os.getpid())]
    left = subprocess.run(children, capture_output=True, text=True, check=True).stdout
    assert "loky.backend.popen_loky" not in left


def failing(*finalists: int) -> Callable[..., Training]:
    """Training as it is, but for the networks with these numbers among those to train."""
    order: list[int] = []

    def train(trial: trials.Trial, network: object, ground: object) -> Training:
        number = trial.finalist.id
        order.extend([] if number in order else [number])
        if order.index(number) in finalists:
            raise DivergedError("too wild")
        return _train(trial, network, ground)  # type: ignore[arg-type]

    return train


_train = trials._train


def test_a_finalist_whose_training_fails_is_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_workers", lambda *_: 1)  # in this process
    monkeypatch.setattr(trials, "_train", failing(0, 2))
    config = replace(RACE, strategy="predictor", finalists=8, population=12)
    run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    done = results(tmp_path / "run")
    failed = {t.id for t in done if t.reason}
    assert len(failed) == 2
    assert all("too wild" in t.reason and math.isnan(t.oa) for t in done if t.id in failed)
    assert not failed & {t.id for t in done if t.steps == 6}
    split = Split.load(tmp_path / "run" / "split.npz")
    assert len(read_earlier([str(tmp_path / "run")], "hytas", fixed_scene(), split)) == 6
    calls: list[object] = []
    monkeypatch.setattr(trials, "_train", calls.append)
    (tmp_path / "run" / "architecture.json").unlink()
    run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    assert not calls  # what failed is in the store, too


def test_where_all_of_a_round_fail_the_next_take_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_workers", lambda *_: 1)
    tried: list[int] = []

    def failing_late(trial: trials.Trial, network: object, ground: trials._Ground) -> Training:
        if ground.recipe.steps == 6:
            tried.append(trial.finalist.id)
            if len(tried) <= 3:
                raise DivergedError("too wild")
        return _train(trial, network, ground)  # type: ignore[arg-type]

    monkeypatch.setattr(trials, "_train", failing_late)
    outcome = run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")
    first = sorted((t for t in results(tmp_path / "run") if t.steps == 3), key=lambda t: -t.merit)
    assert set(tried[:3]) == {t.id for t in first[:3]}
    assert set(tried[3:]) == {t.id for t in first[3:]}
    with EvaluationStore(tmp_path / "run" / "evaluations.sqlite") as store:
        (winner,) = (e.id for e in store.evaluations() if e.architecture == outcome.architecture)
    assert winner in tried[3:]


def test_a_finalist_that_memory_is_short_for_is_out_and_may_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_workers", lambda *_: 1)
    short: list[int] = []

    def out_of_memory(trial: trials.Trial, network: object, ground: object) -> Training:
        short.append(trial.finalist.id)
        if trial.finalist.id == short[0]:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return _train(trial, network, ground)  # type: ignore[arg-type]

    monkeypatch.setattr(trials, "_train", out_of_memory)
    run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")
    failed = [t for t in trainings(tmp_path / "run") if t.reason]
    assert [t.id for t in failed] == short[:1]
    assert "OutOfMemoryError: CUDA out of memory" in failed[0].reason
    (tmp_path / "run" / "architecture.json").unlink()
    again: list[int] = []
    monkeypatch.setattr(
        trials,
        "_train",
        lambda trial, *rest: (again.append(trial.finalist.id), _train(trial, *rest))[1],
    )
    run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")
    assert again[0] == short[0]
    assert not any(t.reason for t in trainings(tmp_path / "run"))


def test_any_other_error_ends_the_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_workers", lambda *_: 1)

    def wrong(*_: object) -> Training:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(trials, "_train", wrong)
    with pytest.raises(RuntimeError, match="mat1"):
        run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")
    assert not trainings(tmp_path / "run")


def test_a_race_in_which_all_fail_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_workers", lambda *_: 1)
    monkeypatch.setattr(trials, "_train", failing(*range(5)))
    with pytest.raises(InputError, match=r"every finalist failed; the first: .*too wild"):
        run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")


def killed(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_training_process_that_is_killed_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_workers", lambda *_: 2)
    monkeypatch.setattr(trials, "train", killed)
    with pytest.raises(OSError, match="one of 2 training processes was killed"):
        run_mission(RACE, fixed_scene(), tmp_path / "run", device="cpu")


def test_how_many_train_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = fixed_scene()
    context = prepare(RACE, scene, torch.device("cpu"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(workers, "cpu_count", lambda: 3)  # of a container on a large machine
    assert [workers._workers(context, count) for count in (0, 2, 9)] == [0, 2, 3]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # OMP_NUM_THREADS=1
    assert workers._workers(context, 9) == 1
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(workers, "MOST_BYTES", 0)  # patches that are too large to be sent
    assert workers._workers(context, 9) == 1


@pytest.mark.parametrize("proxy", ["params", "snip", "naswot"])
def test_labels_of_test_pixels_change_nothing(proxy: str, tmp_path: Path) -> None:
    trained = replace(RACE, proxy=proxy, recipe=replace(RACE.recipe, epochs=1))
    honest = run_mission(trained, fixed_scene(), tmp_path / "honest", device="cpu")
    poisoned = run_mission(trained, fixed_scene(poison=1), tmp_path / "poisoned", device="cpu")
    assert honest.architecture == poisoned.architecture
    pair = [without_time(trainings(tmp_path / name)) for name in ("honest", "poisoned")]
    assert pair[0] == pair[1]
    scores, weights = [], []
    for name in ("honest", "poisoned"):
        with EvaluationStore(tmp_path / name / "evaluations.sqlite") as store:
            scores.append([item.scores for item in store.evaluations()])
        weights.append((tmp_path / name / "weights.safetensors").read_bytes())
    assert scores[0] == scores[1]
    assert weights[0] == weights[1]
    assert honest.metrics is not None
    assert poisoned.metrics is not None
    assert honest.metrics["test"]["OA"] != poisoned.metrics["test"]["OA"]


def test_epochs_of_the_race_are_so_many_steps(tmp_path: Path) -> None:
    config = replace(RACE, finalists=2, race_epochs=2)
    run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    # 144 training pixels, a fifth of each class kept to choose on; batches of 16.
    assert {t.steps for t in trainings(tmp_path / "run")} == {2 * 8}


def test_a_race_needs_validation_pixels(tmp_path: Path) -> None:
    config = replace(RACE, validation_fraction=0.0)
    with pytest.raises(InputError, match="finalists 5: a race ranks on validation pixels"):
        run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()  # the folder is free for the command put right


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="'dsss': unknown; did you mean dss"):
        replace(RACE, proxy="dsss")
    with pytest.raises(InputError, match=r"strategy 'foo': must be one of evolution, .*predictor"):
        replace(RACE, strategy="foo")
    with pytest.raises(InputError, match="finalists 0: must be 1 or more"):
        replace(RACE, finalists=0)
    with pytest.raises(InputError, match="race steps 0: must be 1 or more"):
        replace(RACE, race_steps=0)
    with pytest.raises(InputError, match="race epochs 0: must be 1 or more"):
        replace(RACE, race_epochs=0)
    with pytest.raises(InputError, match=r"population 10{20}: must be at most 1000000000"):
        replace(RACE, population=10**20)


def test_a_predictor_proposes_the_other_finalists(tmp_path: Path) -> None:
    config = replace(RACE, strategy="predictor", finalists=8, population=12)
    scene = fixed_scene()
    outcome = run_mission(config, scene, tmp_path / "run", device="cpu")
    first = [t for t in trainings(tmp_path / "run") if t.steps == 3]
    assert len(first) == 8
    found = read_json(tmp_path / "run" / "predictor.json")
    assert (found["trained"], found["earlier"], found["proposed"]) == (8, 0, 4)
    assert "proposed 4 of 8 finalists; rank" in describe_predictor(found)
    lost = {**found, "trained": 5, "failed": 3}
    assert "proposed 4 of 8 finalists, 3 failed; rank" in describe_predictor(lost)
    assert set(found["spearman"]) == {"predictor", "params", "depth-embed", "random"}
    again = run_mission(config, scene, tmp_path / "again", device="cpu")
    assert again.architecture == outcome.architecture
    assert without_time(trainings(tmp_path / "again")) == without_time(trainings(tmp_path / "run"))
    # Taught by an earlier race, the predictor needs no finalists of the proxy's.
    taught = replace(config, learn_from=(str(tmp_path / "run"),), seed=1)
    run_mission(taught, scene, tmp_path / "taught", device="cpu")
    learnt = read_json(tmp_path / "taught" / "predictor.json")
    assert (learnt["earlier"], learnt["proposed"]) == (8, 8)
    # The winner of the earlier race was trained the longest, and is its best example.
    split = Split.load(tmp_path / "run" / "split.npz")
    examples = read_earlier([str(tmp_path / "run")], "hytas", scene, split)
    assert max(examples, key=lambda one: one.target).architecture == outcome.architecture


@pytest.mark.parametrize(("finalists", "proposed"), [(2, 0), (3, 0), (4, 1), (5, 2)])
def test_a_predictor_of_few_finalists(finalists: int, proposed: int, tmp_path: Path) -> None:
    config = replace(RACE, strategy="predictor", finalists=finalists)
    run_mission(config, fixed_scene(), tmp_path / "run", device="cpu")
    found = read_json(tmp_path / "run" / "predictor.json")
    assert (found["raced"], found["proposed"]) == (finalists, proposed)
    assert f"proposed {proposed or 'none'}" in describe_predictor(found)


def test_what_a_predictor_may_not_learn_from(tmp_path: Path) -> None:
    config = replace(RACE, strategy="predictor")
    with pytest.raises(InputError, match=r"learn from .*: holds no run"):
        run_mission(
            replace(config, learn_from=(str(tmp_path / "none"),)),
            fixed_scene(),
            tmp_path / "run",
            device="cpu",
        )
    run_mission(replace(RACE, finalists=1), fixed_scene(), tmp_path / "plain", device="cpu")
    with pytest.raises(InputError, match=r"learn from .*: its run trained nothing"):
        run_mission(
            replace(config, learn_from=(str(tmp_path / "plain"),)),
            fixed_scene(),
            tmp_path / "other",
            device="cpu",
        )
    blocks = replace(RACE, split="random", train_per_class=4)
    run_mission(blocks, plain_scene(), tmp_path / "earlier", device="cpu")
    later = replace(blocks, strategy="predictor", learn_from=(str(tmp_path / "earlier"),), seed=1)
    with pytest.raises(InputError, match=r"its race saw \d+ of this run's test pixels"):
        run_mission(later, plain_scene(), tmp_path / "later", device="cpu")
    assert not (tmp_path / "later").exists()
    # The same pixels, whatever else is said of them.
    for other in (
        scene_from_arrays(plain_scene().cube, plain_scene().labels + 4, name="other ids"),
        replace(plain_scene(), labels=np.where(np.arange(36) == 7, 0, plain_scene().labels)),
        scene_from_arrays(plain_scene().cube.astype(np.float64), plain_scene().labels),
    ):
        with pytest.raises(InputError, match=r"its race saw \d+ of this run's test pixels"):
            run_mission(later, other, tmp_path / "later", device="cpu")
    run_mission(replace(later, seed=0), plain_scene(), tmp_path / "same", device="cpu")
    (tmp_path / "earlier" / "architecture.json").unlink()
    with pytest.raises(InputError, match=r"learn from .*earlier: its search has not ended"):
        run_mission(replace(later, seed=0), plain_scene(), tmp_path / "later", device="cpu")
    (tmp_path / "earlier" / "split.npz").unlink()
    with pytest.raises(InputError, match=r"learn from .*: holds no run \(no split.npz\)"):
        run_mission(replace(later, seed=0), plain_scene(), tmp_path / "later", device="cpu")
    with pytest.raises(InputError, match="is for the strategy predictor, not evolution"):
        replace(RACE, learn_from=("runs/a",))
    with pytest.raises(InputError, match="learn from runs/a: is named twice"):
        replace(config, learn_from=("runs/a", "runs/b", "runs/a"))
    with pytest.raises(InputError, match="finalists 1: strategy predictor learns from finalists"):
        replace(config, finalists=1)


def test_what_was_learnt_from_must_stay_until_the_architecture_is_chosen(tmp_path: Path) -> None:
    earlier, config = tmp_path / "earlier", replace(RACE, strategy="predictor")
    run_mission(RACE, fixed_scene(), earlier, device="cpu")
    taught = replace(config, learn_from=(str(earlier),), seed=1)
    outcome = run_mission(taught, fixed_scene(), tmp_path / "run", device="cpu")
    earlier.rename(tmp_path / "moved")
    again = run_mission(taught, fixed_scene(), tmp_path / "run", device="cpu")
    assert again.metrics == outcome.metrics
    # As if killed before its architecture was chosen, and the earlier run were done again.
    for file in (
        "architecture.json",
        "metrics.json",
        "checkpoint.safetensors",
        "weights.safetensors",
    ):
        (tmp_path / "run" / file).unlink(missing_ok=True)
    with pytest.raises(InputError, match=r"learn from .*: holds no run"):
        run_mission(taught, fixed_scene(), tmp_path / "run", device="cpu")
    run_mission(replace(RACE, seed=5), fixed_scene(), earlier, device="cpu")
    with pytest.raises(InputError, match=r"has changed since the run in .* began"):
        run_mission(taught, fixed_scene(), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run" / "architecture.json").exists()


def test_waves_sum_to_the_finalists() -> None:
    for count in range(1, 40):
        assert sum(waves(count)) == count
    assert waves(16) == [8, 4, 4]


def evaluation(number: int, tokens: str, embed_dim: int, heads: int) -> Evaluation:
    genes = {"space": "s", "tokens": tokens, "embed_dim": embed_dim, "heads": [heads]}
    return Evaluation(number, 0, genes, {}, {}, {}, 0.0)


def test_finalists_are_of_every_kind_and_width() -> None:
    ranked = [
        evaluation(0, "band", 64, 2),
        evaluation(1, "band", 64, 4),
        evaluation(2, "band", 48, 4),
        evaluation(3, "pixel", 64, 2),
        evaluation(4, "pixel", 64, 4),
    ]
    assert [item.id for item in diverse(ranked, 2)] == [0, 3]
    assert [item.id for item in diverse(ranked, 3)] == [0, 2, 3]
    assert [item.id for item in diverse(ranked, 9)] == [0, 1, 2, 3, 4]
    # What was chosen before counts: bands had their turn, and these two architectures, too.
    assert [item.id for item in diverse(ranked[1:], 1, before=ranked[:1])] == [3]
    assert [item.id for item in diverse(ranked, 1, before=[ranked[0], ranked[3]])] == [2]


def test_every_value_of_a_gene_that_is_no_size_has_its_share() -> None:
    def item(number: int, **genes: object) -> Evaluation:
        return Evaluation(number, 0, {"space": "s", "embed_dim": number, **genes}, {}, {}, {}, 0.0)

    ranked = [
        item(place, tokens=tokens, patch=patch)
        for place, (tokens, patch) in enumerate(
            [("band", 7)] * 5 + [("band", 5)] + [("pixel", 7)] + [("pixel", 5)]
        )
    ]
    assert [found.id for found in diverse(ranked, 2)] == [0, 7]
    assert [found.id for found in diverse(ranked, 5)] == [0, 1, 5, 6, 7]
