"""Splits are disjoint, stratified, reproducible, and say how far they overlap."""

import contextlib
import re
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hytas.data import (
    Split,
    SplitSettings,
    load_scene,
    make_split,
    overlap_fraction,
    scene_from_arrays,
    synthetic_scene,
    takes_split_options,
)
from hytas.errors import InputError


def scene_of(labels):
    cube = np.arange(labels.size * 3, dtype=np.int32).reshape(*labels.shape, 3)
    return scene_from_arrays(cube, labels)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    per_class=st.integers(1, 12),
    fraction=st.floats(0, 0.9),
    classes=st.integers(2, 7),
)
def test_random_split(seed, per_class, fraction, classes):
    labels = np.random.default_rng(seed).integers(0, classes + 1, (12, 17)) * 3
    scene = scene_of(labels)
    options = {"train_per_class": per_class, "validation_fraction": fraction, "patch_size": 3}
    options["kind"] = "random"
    split = make_split(scene, seed=seed, **options)
    parts = (split.train, split.validation, split.test)
    joined = np.concatenate(parts)
    assert np.unique(joined).size == joined.size
    np.testing.assert_array_equal(np.sort(joined), np.flatnonzero(labels))
    assert all((np.diff(part) > 0).all() for part in parts)
    for label in range(1, scene.classes + 1):
        total, train, validation, test = (
            int((scene.labels.ravel()[p] == label).sum()) for p in (np.arange(labels.size), *parts)
        )
        assert train + validation == min(per_class, total // 2)
        assert train >= 1
        assert test >= 1
        assert (validation >= 1) == (fraction > 0 and train + validation >= 3)
    again = make_split(scene, seed=seed, **options)
    np.testing.assert_array_equal(split.test, again.test)
    np.testing.assert_array_equal(split.validation, again.validation)


def test_seeds_differ(labels):
    scene = scene_of(labels)
    first, second = (make_split(scene, seed=s, patch_size=3, train_per_class=5) for s in (0, 1))
    assert not np.array_equal(first.test, second.test)


def test_auto_is_fixed_where_the_scene_has_maps(cube, labels):
    mask = np.arange(labels.size).reshape(labels.shape) % 2 == 0
    scene = scene_from_arrays(cube, train=labels * mask, test=labels * ~mask)
    split = make_split(scene, patch_size=3)
    assert split.kind == "fixed"
    np.testing.assert_array_equal(split.test, np.flatnonzero(labels * ~mask))
    chosen = np.union1d(split.train, split.validation)
    np.testing.assert_array_equal(chosen, np.flatnonzero(labels * mask))
    # The validation draw never moves a test pixel.
    other = make_split(scene, patch_size=3, seed=9)
    np.testing.assert_array_equal(other.test, split.test)
    assert make_split(scene, kind="random", patch_size=3).kind == "random"
    assert make_split(scene_of(labels), patch_size=3).kind == "blocks"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), patch=st.sampled_from([1, 3, 5, 7]), count=st.integers(1, 30))
def test_overlap_against_brute_force(seed, patch, count):
    generator = np.random.default_rng(seed)
    height, width = int(generator.integers(7, 14)), int(generator.integers(7, 14))
    pixels = generator.permutation(height * width)
    train, test = pixels[:count], pixels[count : count + 15]
    hits = 0
    for pixel in test:
        row, column = divmod(int(pixel), width)
        hits += any(
            max(abs(row - t // width), abs(column - t % width)) <= patch // 2 for t in train
        )
    assert overlap_fraction((height, width), train, test, patch) == pytest.approx(hits / test.size)


def test_description_says_optimistic(labels):
    split = make_split(scene_of(labels), kind="random", patch_size=5)
    assert "optimistic" in split.describe()
    assert "5 x 5 patch" in split.describe()
    one = make_split(scene_of(labels), kind="random", patch_size=1)
    assert "optimistic" not in one.describe()
    overlap = "0% of the test pixels lie inside the 1 x 1 patch of a training pixel"
    assert one.describe().endswith(f"test pixels; {overlap}")


def test_save_and_load(tmp_path, labels):
    split = make_split(scene_of(labels), kind="random", patch_size=3, seed=4)
    split.save(tmp_path / "split.npz")
    loaded = Split.load(tmp_path / "split.npz")
    for name in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(split, name), getattr(loaded, name))
    assert (loaded.kind, loaded.seed, loaded.patch_size) == ("random", 4, 3)
    assert loaded.overlap == split.overlap
    data = (tmp_path / "split.npz").read_bytes()
    for broken in (data[: len(data) // 2], b"hello", b"", b"\x93NUMPY"):
        (tmp_path / "split.npz").write_bytes(broken)
        with pytest.raises(InputError, match="is truncated or corrupt: not a readable split"):
            Split.load(tmp_path / "split.npz")
    for place in range(0, len(data), 7):
        (tmp_path / "split.npz").write_bytes(
            data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]
        )
        with contextlib.suppress(InputError):
            Split.load(tmp_path / "split.npz")
    with pytest.raises(InputError, match="no such file"):
        Split.load(tmp_path / "other.npz")


def test_arguments_out_of_rule(labels):
    scene = scene_of(labels)
    for keywords, message in (
        ({"kind": "half"}, "split='half': must be one of auto, fixed, random, blocks, folds"),
        ({"kind": "fixed"}, "'fixed' needs a training and a test map"),
        ({"train_per_class": 0}, "train_per_class=0: must be at least 1"),
        ({"validation_fraction": 1.0}, r"validation_fraction=1.0: must be in \[0, 1\)"),
        ({"validation_fraction": float("nan")}, "validation_fraction=nan"),
        ({"seed": -1}, "seed=-1: must be 0 to 4294967295"),
        ({"patch_size": 4}, "patch_size=4: must be odd"),
        ({"patch_size": 0}, "patch_size=0: must be odd"),
        ({"patch_size": -3}, "patch_size=-3: must be odd"),
        ({"patch_size": 11}, "patch_size=11: is larger than the scene of 9 x 11 pixels"),
    ):
        with pytest.raises(InputError, match=message):
            make_split(scene, **({"patch_size": 3} | keywords))


def test_the_published_split_overlaps_as_measured(real):
    split = make_split(load_scene(real / "IndianPine.mat"), patch_size=7)
    assert (split.train.size + split.validation.size, split.test.size) == (695, 9671)
    assert split.overlap == pytest.approx(0.79, abs=0.005)


def striped(height, width, classes):
    """Fields of 5 columns, so that every class lies in many blocks."""
    return np.tile((np.arange(width) // 5) % classes + 1, (height, 1))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 999),
    patch=st.sampled_from([1, 3, 5, 7]),
    block=st.integers(7, 14),
    kind=st.sampled_from(["blocks", "folds"]),
)
def test_no_training_patch_contains_a_test_pixel(seed, patch, block, kind):
    labels = striped(40, 46, 3)
    labels[np.random.default_rng(seed).random(labels.shape) < 0.2] = 0
    scene = scene_of(labels)
    split = make_split(scene, kind=kind, seed=seed, patch_size=patch, block=block, folds=3)
    assert split.overlap == 0
    test = np.zeros(labels.shape, bool)
    test.ravel()[split.test] = True
    reach = patch // 2
    padded = np.pad(test, reach)
    for pixel in np.concatenate([split.train, split.validation]):
        row, column = divmod(int(pixel), labels.shape[1])
        assert not padded[row : row + patch, column : column + patch].any()
    again = make_split(scene, kind=kind, seed=seed, patch_size=patch, block=block, folds=3)
    np.testing.assert_array_equal(split.test, again.test)
    np.testing.assert_array_equal(split.train, again.train)
    assert set(scene.labels.ravel()[split.test]) == {1, 2, 3}


@pytest.mark.parametrize("kind", ["blocks", "folds"])
def test_validation_pixels_of_blocks_lie_at_one_end_of_their_class(kind):
    scene = scene_of(striped(60, 60, 3))
    options = {"kind": kind, "block": 12, "folds": 3, "patch_size": 3, "train_per_class": 40}
    split = make_split(scene, seed=4, **options)
    labels = scene.labels.ravel()
    angles = np.linspace(0, 2 * np.pi, 3600)
    for label in range(1, 4):
        train, validation = (
            np.stack(np.divmod(part[labels[part] == label], scene.width))
            for part in (split.train, split.validation)
        )
        assert validation.shape[1] == 8
        directions = np.stack([np.sin(angles), np.cos(angles)], axis=1)
        gap = (directions @ validation).min(axis=1) - (directions @ train).max(axis=1)
        assert gap.max() > -0.1  # in some direction all of them lie behind all of the others


@pytest.mark.parametrize("folds", [2, 4])
def test_folds_test_every_pixel_once(folds):
    scene = scene_of(striped(40, 46, 3))
    options = {"kind": "folds", "folds": folds, "patch_size": 3}
    parts = [make_split(scene, fold=fold, **options).test for fold in range(folds)]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(40 * 46))


def test_two_folds_share_one_deal():
    labels = striped(40, 46, 3)
    labels[3:6, 3:6] = 4  # in one block, so that each fold has deals that suit it better
    scene = scene_of(labels)
    for seed in range(10):
        options = {"kind": "folds", "folds": 2, "patch_size": 3, "block": 8, "seed": seed}
        first, second = (make_split(scene, fold=fold, **options).test for fold in range(2))
        assert not np.intersect1d(first, second).size


def test_a_class_on_one_side_only_is_named():
    labels = striped(48, 48, 2)
    labels[2:4, 2:4] = 3  # one field, inside one block at most seeds
    scene = scene_of(labels)
    for seed in range(5):
        split = make_split(
            scene, kind="blocks", block=12, seed=seed, patch_size=3, train_per_class=1
        )
        tested = set(scene.labels.ravel()[split.test])
        trained = set(scene.labels.ravel()[split.train])
        assert trained == {1, 2, 3}
        assert (3 in tested) == (not split.notes)
        if split.notes:
            assert "class 3 is not both trained and tested" in split.notes[0]
            assert ", 0 to test on" in split.notes[0]
    notes = [make_split(scene, kind="folds", folds=3, fold=i, patch_size=3).notes for i in range(3)]
    partly = "0 pixels to train on, 2 to test on, 2 for neither"
    assert any(partly in note for each in notes for note in each)


def test_a_class_inside_the_guard_band_is_named_for_what_it_is():
    result = set()
    for seed in range(60):
        labels = striped(48, 48, 2)
        labels[20:23, 20:23] = 3
        scene = scene_of(labels)
        split = make_split(scene, kind="folds", folds=4, fold=0, block=6, patch_size=9, seed=seed)
        sides = [
            set(scene.labels.ravel()[part]) for part in (split.train_and_validation, split.test)
        ]
        for note in split.notes:
            counts = re.match(
                r"class 3 is not both trained and tested: (\d) pixels to train on, "
                r"(\d) to test on, (\d) for neither",
                note,
            )
            if counts is None:  # of another class
                continue
            trained, tested, guarded = map(int, counts.groups())
            assert trained + tested + guarded == 9
            assert not (trained and tested)
            result.add((trained > 0, tested > 0, guarded > 0))
            assert (3 in sides[0] | sides[1]) == (trained > 0)
    assert result >= {(False, False, True), (False, True, True), (False, True, False)}


def test_block_arguments():
    scene = scene_of(striped(20, 20, 3))
    for keywords, message in (
        ({"kind": "blocks", "block": 0}, "block=0: must be at least 1"),
        ({"kind": "blocks", "block": 10**6}, "block=1000000: leaves fewer than 2 classes"),
        ({"kind": "blocks", "block": 10**20}, "block=1.*: must be at most 2147483647"),
        ({"kind": "random", "block": -1}, "block=-1: must be at least 1"),
        ({"kind": "folds", "folds": 1}, "folds=1: must be at least 2"),
        ({"kind": "folds", "folds": 10**10}, "folds=1.*: must be at most 400, the labelled"),
        ({"kind": "folds", "folds": 300}, "folds=300: leaves fewer than 2 cl"),
        ({"kind": "folds", "folds": 3, "fold": 3}, "fold=3: must be 0 to 2"),
        ({"kind": "blocks", "fold": 1}, "fold=1: is only for the split 'folds', not 'blocks'"),
        ({"train_fraction": 1.5}, r"train_fraction=1.5: must be in \(0, 1\)"),
        ({"train_fraction": 0.5, "train_per_class": 3}, "exclude each other"),
    ):
        with pytest.raises(InputError, match=message):
            make_split(scene, **({"patch_size": 3} | keywords))


def test_train_fraction_and_published_counts():
    scene = scene_of(striped(40, 45, 3))
    split = make_split(scene, train_fraction=0.1, validation_fraction=0)
    assert np.bincount(scene.labels.ravel()[split.train])[1:].tolist() == [60, 60, 60]
    published = replace(scene, train_counts=(10, 20, 5))
    split = make_split(published, validation_fraction=0)
    assert np.bincount(scene.labels.ravel()[split.train])[1:].tolist() == [10, 20, 5]
    split = make_split(published, train_per_class=7, validation_fraction=0)
    assert np.bincount(scene.labels.ravel()[split.train])[1:].tolist() == [7, 7, 7]


def test_block_split_of_real_scenes(real):
    for files in (["IndianPine.mat"], ["SalinasA_corrected.mat", "SalinasA_gt.mat"]):
        scene = load_scene(*(real / name for name in files))
        for seed in range(3):
            split = make_split(scene, kind="blocks", seed=seed)
            assert split.overlap == 0
            trained = np.unique(scene.labels.ravel()[split.train])
            assert trained.size == scene.classes
            assert len(split.notes) <= 3
            assert split.test.size > 1000


def test_auto_takes_smaller_blocks_and_else_random_pixels():
    columns = np.zeros((32, 32), np.uint8)
    columns[:, 0:9], columns[:, 11:20], columns[:, 22:31] = 1, 2, 3
    scene = scene_of(columns)
    split = make_split(scene, patch_size=3)
    assert (split.kind, split.overlap, split.notes) == ("blocks", 0.0, ())
    apart = np.zeros((26, 26), np.uint8)
    apart[:6, :6], apart[20:, 20:] = 1, 2  # blocks of 40 hardly ever cut both
    splits = [make_split(scene_of(apart), patch_size=3, block=40, seed=k) for k in range(6)]
    assert {split.kind for split in splits} == {"blocks"}
    notes = {note for split in splits for note in split.notes}
    fewer = "those separate fewer classes"
    assert notes & {f"blocks of {n} pixels, and not of 40: {fewer}" for n in (10, 20)}
    for split in splits:
        assert split.overlap == 0.0
        assert {int(apart.ravel()[pixel]) for pixel in split.test} == {1, 2}
    tiny = np.zeros((9, 9), np.uint8)
    tiny[4, 2:4], tiny[4, 5:7] = 1, 2
    split = make_split(scene_of(tiny), patch_size=7)
    assert split.kind == "random"
    assert "no blocks separate training" in split.notes[0]
    with pytest.raises(InputError, match="block=0: must be at least 1"):
        make_split(scene, block=0, patch_size=3)


def test_few_pixels_of_a_fixed_map_may_be_asked_for():
    scene = synthetic_scene()
    half = np.indices(scene.labels.shape)[1] % 2 == 0
    train, test = (np.where(part, scene.labels, 0) for part in (half, ~half))
    fixed = replace(scene, train=train, test=test)
    split = make_split(fixed, kind="fixed", train_per_class=5)
    pixels = np.union1d(split.train, split.validation)
    assert (np.bincount(train.ravel()[pixels])[1:] == 5).all()
    np.testing.assert_array_equal(split.test, make_split(fixed, kind="fixed").test)


@pytest.mark.parametrize("kind", ["random", "blocks"])
def test_folds_validate_on_one_pixel_once(kind: str) -> None:
    scene = synthetic_scene()
    split = make_split(scene, kind=kind, train_per_class=10, block=8, patch_size=3)
    labels = scene.labels.ravel()
    pairs = split.folds(scene, 10**6)
    everything = np.union1d(split.train, split.validation)
    assert np.array_equal(pairs[0][0], split.train)
    assert np.array_equal(pairs[0][1], split.validation)
    assert len(pairs) == 5  # two pixels of ten each
    for train, validation in pairs:
        assert np.array_equal(np.union1d(train, validation), everything)
        assert np.intersect1d(train, validation).size == 0
        assert np.array_equal(
            np.bincount(labels[validation]), np.bincount(labels[split.validation])
        )
    validated = np.concatenate([validation for _, validation in pairs])
    assert len(np.unique(validated)) == len(validated)
    again = split.folds(scene, 10**6)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(pairs, again, strict=True))


def test_folds_end_where_there_are_enough_pixels_or_no_more() -> None:
    scene = synthetic_scene()
    split = make_split(scene, kind="random", train_per_class=10)
    count = len(split.validation)
    assert [len(split.folds(scene, enough)) for enough in (count, count + 1, 2 * count)] == [
        1,
        2,
        2,
    ]
    none = make_split(scene, kind="random", train_per_class=10, validation_fraction=0.0)
    assert len(none.folds(scene, 100)) == 1
    # Three of four pixels a class are held back first, so that one is left for a second fold.
    large = make_split(scene, kind="random", train_per_class=4, validation_fraction=0.75)
    first, second = large.folds(scene, 10**6)
    assert len(first[1]) == 3 * scene.classes
    assert len(second[1]) == scene.classes


def test_folds_of_blocks_lie_side_by_side() -> None:
    scene = synthetic_scene()
    spreads = {}
    for kind in ("random", "blocks"):
        split = make_split(scene, kind=kind, train_per_class=40, block=8, patch_size=3)
        labels = scene.labels.ravel()
        spread = []
        for _, validation in split.folds(scene, 10**6)[1:]:
            for label in range(1, scene.classes + 1):
                places = np.stack(np.divmod(validation[labels[validation] == label], scene.width))
                spread.append(places.std(axis=1).mean())
        spreads[kind] = np.mean(spread)
    assert spreads["blocks"] < 0.9 * spreads["random"]


def counted(scene, pixels):
    return np.bincount(scene.labels.ravel()[pixels], minlength=scene.classes + 1)[1:].tolist()


@pytest.mark.parametrize("tested", [(1,), (1, 3)])
def test_a_class_of_the_training_map_alone_is_named_and_not_tested(tested):
    labels = striped(20, 30, 3)
    half = np.arange(20)[:, None] < 10
    train = np.where(half, labels, 0)
    test = np.where(~half & np.isin(labels, tested), labels, 0)
    cube = np.arange(labels.size * 3, dtype=np.int32).reshape(*labels.shape, 3)
    scene = scene_from_arrays(cube, train=train, test=test)
    missing = [label for label in (1, 2, 3) if label not in tested]
    counts = np.bincount(train.ravel(), minlength=4)
    notes = tuple(
        f"class {n} is not both trained and tested: {counts[n]} pixels to train on, 0 to test on, "
        "0 for neither"
        for n in missing
    )
    for options in ({}, {"train_per_class": 4}):
        split = make_split(scene, patch_size=3, **options)
        assert split.kind == "fixed"
        assert split.notes[-len(notes) :] == notes
        np.testing.assert_array_equal(split.test, np.flatnonzero(test))
        pixels = np.union1d(split.train, split.validation)
        assert counted(scene, pixels) == ([4, 4, 4] if options else [100, 100, 100])


def test_a_poisoned_test_map_changes_nothing_but_the_test():
    scene = synthetic_scene()
    test = np.where(scene.test > 0, 1, 0)
    poisoned = scene_from_arrays(scene.cube, train=scene.train, test=test)
    plain, split = (make_split(one, patch_size=3) for one in (scene, poisoned))
    for name in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(split, name), getattr(plain, name))
    assert len(split.notes) == scene.classes - 1


@pytest.mark.parametrize("kind", ["random", "blocks", "folds"])
def test_classes_with_fewer_training_pixels_than_asked_for_are_named(kind):
    labels = striped(48, 48, 2)
    labels[::7, ::6], labels[1::9, 1::7] = 3, 5
    scene = scene_of(labels)
    split = make_split(scene, kind=kind, block=6, patch_size=1, train_per_class=60)
    result = counted(scene, np.union1d(split.train, split.validation))
    assert result[:2] == [60, 60]
    few = f"class 3 ({result[2]}/60), class 5 ({result[3]}/60)"
    idle = ("not used: block 6; split: random",) if kind == "random" else ()
    assert split.notes == (*idle, f"fewer training pixels than asked for: {few}")
    enough = make_split(scene, kind=kind, block=6, patch_size=1, train_per_class=5)
    assert enough.notes == idle
    usual = make_split(scene, kind=kind, block=6, patch_size=1).notes[-1]
    assert usual.startswith("fewer training pixels than the usual 50: class ")


def test_shortfalls_of_fractions_and_of_a_training_map():
    scene = scene_of(striped(20, 30, 3))
    split = make_split(scene, kind="random", train_fraction=0.75, patch_size=3)
    few = ", ".join(f"class {n} (100/150)" for n in (1, 2, 3))
    assert split.notes == (f"fewer training pixels than asked for: {few}",)
    half = np.arange(20)[:, None] < 10
    train, test = np.where(half, scene.labels, 0), np.where(half, 0, scene.labels)
    train[1:] = np.where(train[1:] == 2, 0, train[1:])
    fixed = scene_from_arrays(scene.cube, train=train, test=test)
    split = make_split(fixed, train_per_class=30, patch_size=3)
    assert split.notes == ("fewer training pixels than asked for: class 2 (10/30)",)
    assert make_split(fixed, train_fraction=0.5, patch_size=3).notes == ()


def test_classes_without_validation_pixels_are_named():
    labels = striped(20, 30, 4)
    labels[labels == 2], labels[labels == 4] = 0, 0
    labels[0, :4], labels[5, :4] = 2, 4
    scene = scene_of(labels)
    split = make_split(scene, kind="random", train_per_class=20, patch_size=3)
    assert counted(scene, split.validation) == [4, 0, 4, 0]
    assert split.notes[-1] == (
        "fewer than 3 training pixels, so none for validation: class 2, class 4"
    )
    for none in ({"validation_fraction": 0.0}, {"train_per_class": 2}):
        split = make_split(scene, kind="random", patch_size=3, **none)
        assert not any("validate" in note for note in split.notes)


def test_settings_say_the_same_as_their_parts():
    scene = synthetic_scene()
    settings = SplitSettings("random", train_per_class=12, validation_fraction=0.25)
    split = make_split(scene, settings, seed=3, patch_size=3)
    parts = settings.options()
    assert parts["split"] == "random"
    assert SplitSettings.from_options(parts) == settings
    again = make_split(scene, kind=parts.pop("split"), seed=3, patch_size=3, **parts)
    np.testing.assert_array_equal(split.train, again.train)
    changed = make_split(scene, settings, seed=3, patch_size=3, train_per_class=5)
    assert len(changed.train_and_validation) == 5 * scene.classes
    assert SplitSettings(train_per_class=np.int64(4)) == SplitSettings(train_per_class=4)
    with pytest.raises(TypeError, match="'blok'"):
        make_split(scene, blok=3)


def test_a_class_with_a_split_takes_its_parts_by_name():
    @takes_split_options
    @dataclass(frozen=True)
    class Asked:
        split: SplitSettings = field(default_factory=SplitSettings)
        seed: int = 0

    blocks = Asked(split="blocks", block=8, seed=4)
    assert blocks == Asked(SplitSettings("blocks", block=8), 4)
    assert Asked(fold=2, split="folds").split == SplitSettings("folds", fold=2)
    assert replace(blocks, train_per_class=9).split == SplitSettings(
        "blocks", block=8, train_per_class=9
    )
    assert replace(blocks, seed=5).split == blocks.split
    with pytest.raises(InputError, match="block=0: must be at least 1"):
        Asked(block=0)
    with pytest.raises(TypeError, match="'blok'"):
        Asked(blok=8)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("fixed", False), ("random", False), ("blocks", True), ("folds", True), ("polygons", True)],
)
def test_which_splits_test_apart(kind: str, expected: bool) -> None:
    none = np.zeros(0, np.int64)
    assert Split(none, none, none, kind, 0, 3, 0.0).spatially_disjoint is expected
