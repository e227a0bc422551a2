"""The store of fits: whatever happens to it, every kind of fit gives the same bytes in the end."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hytas.run.context import prepare
from hytas.run.final.task import linear_fit, self_training_after
from hytas.run.source import RunSource
from hytas.store import Store
from hytas.train import Recipe, Schedule, loop
from hytas.train.fit import Fit, Fitted
from hytas.train.loop import Watch
from hytas.workers import ExecutorWorkers
from run.one_candidate import CONFIG
from small import NARROW, strips

CPU = torch.device("cpu")
RECIPE = Recipe(epochs=4, batch_size=16)


@pytest.fixture(scope="module")
def source() -> RunSource:
    """What the fits of a small run read."""
    return prepare(replace(CONFIG, space="hytas", budget=None), strips(), CPU).source


def kinds(source: RunSource) -> dict[str, Fit]:
    """A fit of every kind."""
    assert source.data is not None
    split = source.data.split
    groups = {"held out": split.validation, "others": split.test[:40]}
    plain = Fit(NARROW, RECIPE, 0, split.train, split.validation, logits=groups)
    rung = replace(plain, schedule=Schedule(2, 3.0, None), logits={}, classes=groups)
    longer = replace(rung, schedule=Schedule(5, 3.0, 8.0), shorter=rung)
    wild = replace(plain, recipe=replace(RECIPE, learning_rate=1e20))
    return {
        "plain": plain,
        "rung": rung,
        "the rung after it": longer,
        "self-training": self_training_after(plain, groups),
        "linear": replace(linear_fit("lda", split.train), logits=groups),
        "diverging": wild,
    }


def contents(store: Store, fit: Fit) -> dict[str, Any]:
    """All that a fit left but for its seconds."""
    fitted = store.get(fit)
    assert fitted is not None
    facts = replace(fitted, seconds=0.0)
    training = facts.training
    epochs = () if training is None else tuple(replace(e, seconds=0.0) for e in training.history)
    arrays: dict[str, Any] = {n: v.tobytes() for n, v in (facts.logits | facts.classes).items()}
    tensors = {} if fitted.reason else store.weights(fit)
    arrays |= {name: one.numpy().tobytes() for name, one in tensors.items()}
    return arrays | {"epochs": epochs, "reason": facts.reason}


@pytest.fixture(scope="module")
def whole(source: RunSource, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What each fit leaves where nothing happens."""
    found = {}
    for name, fit in kinds(source).items():
        store = Store(tmp_path_factory.mktemp("whole"), source)
        store.one(fit)
        found[name] = contents(store, fit)
    return found


KINDS = ("plain", "rung", "the rung after it", "self-training", "linear", "diverging")


def test_the_list_of_kinds_is_whole(source: RunSource) -> None:
    assert tuple(kinds(source)) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_read_and_nothing_is_done_again(
    kind: str, source: RunSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, fit = Store(tmp_path, source), kinds(source)[kind]
    first = store.one(fit)
    monkeypatch.setattr("hytas.train.fit.train", lambda *_, **__: pytest.fail("it trains again"))
    again = Store(tmp_path, source).one(kinds(source)[kind])
    assert again.training == first.training
    assert again.reason == first.reason
    assert ("diverged" in first.reason) == (kind == "diverging")


@pytest.mark.parametrize("kind", ["plain", "the rung after it", "self-training"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_kill_changes_no_byte_and_repeats_no_epoch(
    kind: str,
    at: int,
    source: RunSource,
    whole: Mapping[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, fit = Store(tmp_path, source), kinds(source)[kind]
    begun = 0
    epoch = loop.train_epoch

    def stopping(*arguments: Any) -> float:
        nonlocal begun
        begun += 1
        if begun == at:
            raise KeyboardInterrupt
        return epoch(*arguments)

    monkeypatch.setattr(loop, "train_epoch", stopping)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)

    def do() -> None:
        if fit.shorter is not None:
            store.one(fit.shorter)
        store.one(fit)

    with pytest.raises(KeyboardInterrupt):
        do()
    do()
    rounds = 2 if kind == "self-training" else 0  # of an epoch each
    assert begun == fit.chain[0].epochs + rounds + 1
    assert contents(store, fit) == whole[kind]
    assert not list(tmp_path.glob("*.part"))


def flipped(content: bytes, place: int) -> bytes:
    place %= len(content)
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


DAMAGE: dict[str, Callable[[bytes, int], bytes]] = {
    "cut": lambda content, place: content[: place % len(content)],
    "flipped": flipped,
    "of something else": lambda content, place: b"PK" * (place % 60),
}


@pytest.mark.parametrize("kind", ["plain", "self-training", "linear"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_changes_no_byte(
    kind: str, damage: str, source: RunSource, whole: Mapping[str, Any], tmp_path: Path
) -> None:
    store, fit, draw = Store(tmp_path, source), kinds(source)[kind], np.random.default_rng(3)
    store.one(fit)
    for suffix in (".npz", ".safetensors"):
        for path in tmp_path.glob(f"*{suffix}"):
            path.write_bytes(DAMAGE[damage](path.read_bytes(), int(draw.integers(2**31))))
    store.one(fit)
    assert contents(store, fit) == whole[kind]


def test_a_result_without_its_weights_is_made_again_only_where_they_are_needed(
    source: RunSource, whole: Mapping[str, Any], tmp_path: Path
) -> None:
    store, fit = Store(tmp_path, source), kinds(source)["self-training"]
    store.one(fit)
    store.keep_weights([fit])
    assert len(list(tmp_path.glob("*.safetensors"))) == 3  # those that it began with, too
    store.keep_weights()
    assert not list(tmp_path.glob("*.safetensors"))
    assert store.get(fit) is not None
    assert store.get(fit, weights=True) is None
    store.one(fit)
    assert contents(store, fit) == whole["self-training"]


def test_two_at_once_leave_what_one_does(
    source: RunSource, whole: Mapping[str, Any], tmp_path: Path
) -> None:
    fits = [kinds(source)[name] for name in ("plain", "plain", "the rung after it")]
    with ProcessPoolExecutor(2, get_context("forkserver")) as executor:
        workers = ExecutorWorkers(executor, 2)
        found = dict(Store(tmp_path, source).run(fits, workers, sent=source.packed(with_data=True)))
    assert sorted(found) == [0, 1, 2]
    for name, fit in zip(("plain", "plain", "the rung after it"), fits, strict=True):
        assert contents(Store(tmp_path, source), fit) == whole[name]


@pytest.mark.parametrize("sees_files", [True, False])
@pytest.mark.parametrize("with_data", [True, False])
def test_workers_leave_the_same_bytes(
    sees_files: bool, with_data: bool, source: RunSource, whole: Mapping[str, Any], tmp_path: Path
) -> None:
    """Workers that cannot read all pixels, or see no files, too."""
    asked = kinds(source)
    store, done = Store(tmp_path, source), []
    with ProcessPoolExecutor(1, get_context("forkserver")) as executor:
        workers = ExecutorWorkers(executor, 1, sees_files=sees_files)
        sent = source.packed(with_data=with_data)
        for _ in store.run(list(asked.values()), workers, sent=sent, weights=True):
            done.append(1)
    assert len(done) == len(KINDS)
    for name, fit in asked.items():
        assert contents(store, fit) == whole[name]


def test_every_input_is_part_of_the_key(source: RunSource) -> None:
    plain = kinds(source)["plain"]
    others = [
        replace(plain, architecture={**NARROW, "depth": 2}),
        replace(plain, recipe=replace(RECIPE, ema_decay=0.9)),
        replace(plain, seed=1),
        replace(plain, trained=plain.trained[1:]),
        replace(plain, watched=plain.watched[1:]),
        replace(plain, schedule=Schedule(4, 0.0, None)),
        replace(plain, start=plain),
        replace(plain, self_trains=True),
        replace(plain, taught=True),
        replace(plain, target="int8"),
        replace(plain, logits={}),
        replace(plain, logits=plain.logits | {"others": plain.trained}),
        replace(plain, logits={}, classes=plain.logits),
    ]
    keys = [fit.key(source.digest) for fit in (plain, *others)] + [plain.key("other data")]
    assert len(set(keys)) == len(keys)
    assert replace(plain, shorter=others[0]).key(source.digest) == keys[0]
    assert len(others) == len(vars(plain))  # pixels of logits twice, and `shorter` not at all


def test_data_scaling_and_what_networks_begin_with_are_part_of_the_key(source: RunSource) -> None:
    scene = strips()
    changed = replace(CONFIG, space="hytas", budget=None)
    assert prepare(changed, scene, CPU).source.digest == source.digest
    other = prepare(replace(changed, scaling="minmax"), scene, CPU)
    assert other.source.digest != source.digest
    brighter = prepare(changed, strips(dead_band=5), CPU)
    assert brighter.source.digest != source.digest


def test_progress_counts_pixels(
    source: RunSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hytas.store.CHECKPOINT_SECONDS", 0.01)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    store, fit = Store(tmp_path, source), kinds(source)["self-training"]
    seen: list[tuple[int, int]] = []
    slow = threading.Event()

    def watched(_: object) -> None:
        slow.wait(0.05)

    fitted: list[tuple[int, Fitted]] = list(
        store.run([fit], watch=Watch(watched), progress=lambda *both: seen.append(both))
    )
    assert len(fitted) == 1
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert 0 < done[-1] <= seen[-1][1] == store.under_way(fit)[1]
    assert store.under_way(fit)[0] == seen[-1][1]
