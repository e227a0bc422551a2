"""Several scenes read as one: parts, classes, bands, scaling, and nothing that leaks."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
from shapely.geometry import box, mapping

from hytas.data import (
    PatchReader,
    Preprocessing,
    Scene,
    Split,
    load_scenes,
    make_split,
    scene_from_arrays,
)
from hytas.data.join import join_scenes
from hytas.data.mapped import MappedCube, OwnScaling, Resampling
from hytas.errors import InputError

NAMES = {1: "wheat", 4: "maize", 6: "rye"}


def strips(name: str, size: tuple[int, int] = (20, 24), seed: int = 0, **facts: object) -> Scene:
    """A scene of three strips of classes 1, 4 and 6 in an int16 cube of 5 bands."""
    generator = np.random.default_rng(seed)
    labels = np.zeros(size, np.int16)
    third = size[0] // 3
    for place, number in enumerate(NAMES):
        labels[place * third : (place + 1) * third, 1:] = number
    cube = generator.integers(100, 900, (*size, 5)).astype(np.int16) + 300 * labels[..., None]
    facts.setdefault("class_names", NAMES)
    facts.setdefault("wavelengths", np.linspace(400, 800, 5))
    return scene_from_arrays(cube, labels, name=name, **facts)  # type: ignore[arg-type]


def test_patches_of_a_part_are_those_of_its_scene() -> None:
    scenes = [strips("a"), strips("b", (15, 9), 1), strips("c", (9, 30), 2)]
    joined = join_scenes(scenes[:2], scenes[2:])
    read = joined.reader(7)
    for scene, part in zip(scenes, joined.parts, strict=True):
        own = PatchReader(scene.cube, 7)(np.arange(scene.labels.size))
        np.testing.assert_array_equal(read(part.pixels(joined.width)), own)
        np.testing.assert_array_equal(joined.labels[part.window], scene.labels)


def test_a_patch_must_fit_every_part() -> None:
    joined = join_scenes([strips("a"), strips("b", (15, 9), 1)])
    with pytest.raises(InputError, match="patch_size=11: is larger than the scene of 15 x 9"):
        make_split(joined, patch_size=11)


@pytest.mark.parametrize("kind", ["random", "blocks", "folds", "auto"])
def test_no_pixel_of_a_test_scene_trains(kind: str) -> None:
    learnt, tested = [strips("a", (30, 30)), strips("b", (30, 20), 1)], strips("c", seed=2)
    joined = join_scenes(learnt, [tested])
    split = make_split(joined, kind=kind, patch_size=3, block=4)
    apart = joined.parts[2].pixels(joined.width)
    assert not np.isin(np.concatenate([split.train_and_validation, split.test]), apart).any()
    assert len(split.test_only) == (tested.labels > 0).sum()
    for training_area, held_out in split.folds_like_test(joined, 4, 5):
        assert not np.isin(np.concatenate([training_area, held_out]), apart).any()


def test_values_of_a_test_scene_decide_nothing() -> None:
    learnt, tested = [strips("a", (30, 30))], strips("c", seed=2)
    brighter = replace(tested, cube=tested.cube * 2)
    scenes = [join_scenes(learnt, [one]) for one in (tested, brighter)]
    splits = [make_split(one, kind="blocks", patch_size=3, block=4) for one in scenes]
    for name in ("train", "validation", "test", "test_only"):
        np.testing.assert_array_equal(getattr(splits[0], name), getattr(splits[1], name))
    fits = [
        Preprocessing.fit_scene(scene, split.train)
        for scene, split in zip(scenes, splits, strict=True)
    ]
    assert fits[0].to_dict() == fits[1].to_dict()
    assert not np.isin(scenes[0].training_area, scenes[0].parts[1].pixels(scenes[0].width)).any()


def test_a_split_keeps_the_pixels_apart_in_its_file(tmp_path: Path) -> None:
    joined = join_scenes([strips("a", (30, 30))], [strips("c", seed=2)])
    split = make_split(joined, kind="random", patch_size=3)
    split.save(tmp_path / "split.npz")
    np.testing.assert_array_equal(Split.load(tmp_path / "split.npz").test_only, split.test_only)


def test_classes_are_matched_by_name_or_number() -> None:
    first = strips("a")
    renumbered = strips("b", class_names={1: "maize", 4: "wheat", 6: "rye"})
    unnamed = strips("c", class_names=None)
    joined = join_scenes([first, renumbered, unnamed])
    maps = [joined.labels[part.window] for part in joined.parts]
    np.testing.assert_array_equal(maps[1] == 2, renumbered.labels == 1)
    np.testing.assert_array_equal(maps[2], unnamed.labels)
    (finding,) = joined.findings
    assert (finding.code, finding.where, finding.facts["owner"]) == (
        "classes-by-number",
        "c",
        "a+b+c",
    )
    fewer = replace(first, labels=np.where(first.labels == 3, 0, first.labels))
    assert join_scenes([first, fewer]).class_names == first.class_names
    tested = strips("b", class_names={1: "wheat", 4: "maize", 6: "oats"})
    joined = join_scenes([first], [tested])
    assert "oats" not in joined.class_names
    (finding,) = joined.findings
    count = int((tested.labels == 3).sum())
    assert finding.facts == {"count": count, "classes": ["oats"]}
    assert (finding.code, len(joined.test_only)) == (
        "classes-untrained",
        int((tested.labels > 0).sum()) - count,
    )


@pytest.mark.parametrize(
    ("ids", "names", "joined"),
    [
        ((6, 6, 6), NAMES, {1: "wheat", 4: "maize", 6: "rye"}),
        ((0, 0, 0), NAMES, {1: "wheat", 4: "maize", 6: "rye"}),
        ((1, 6, 9), {1: "maize", 6: "oats"}, {1: "wheat", 4: "maize", 6: "rye", 7: "oats", 9: ""}),
        ((4, 6, 8), None, {1: "wheat", 4: "maize", 6: "rye", 8: ""}),
    ],
)
def test_classes_are_those_of_all_training_scenes(ids, names, joined) -> None:
    """One tile may have a single class, no label, or classes that the first one lacks."""
    first, third = strips("a"), np.repeat(ids, 7)[:20]
    labels = np.repeat(third[:, None], 24, axis=1)
    tile = scene_from_arrays(first.cube, labels, name="b", class_names=names, least_classes=0)
    both = join_scenes([first, tile])
    assert dict(zip(both.class_ids, both.class_names, strict=True)) == {
        number: name or f"class {number}" for number, name in joined.items()
    }
    own = {number: (names or {}).get(number, joined.get(number)) or "class" for number in {*ids}}
    for number in {*ids} - {0}:
        place = both.labels[both.parts[1].window][labels == number]
        assert len({*place.tolist()}) == 1
        assert both.class_names[place[0] - 1].startswith(own[number])
    assert (both.labels[both.parts[1].window] > 0).sum() == (labels > 0).sum()
    only_tested = {*tile.class_names} <= {*first.class_names} and tile.classes > 0
    if only_tested:
        assert len(join_scenes([first], [tile]).test_only) == (labels > 0).sum()


@pytest.mark.parametrize(
    ("training", "tested", "rule"),
    [
        ([6], [], "holds labels of rye"),
        ([0, 0], [], "holds labels of nothing"),
    ],
)
def test_scenes_without_two_classes_are_refused(training, tested, rule) -> None:
    def of(number: int) -> Scene:
        first = strips("a", seed=number)
        labels = np.full((20, 24), number)
        facts = {"class_names": NAMES, "least_classes": 0}
        return scene_from_arrays(first.cube, labels, name="a", **facts)

    with pytest.raises(InputError, match=rule):
        join_scenes([of(each) for each in training], [of(each) for each in tested])


@pytest.mark.parametrize("labels", ["fields.geojson", "fields.tif"])
def test_tiles_of_one_file_of_labels(labels: str, tmp_path: Path) -> None:
    """Tile a has two classes, b a third one alone, and c lies beside all fields."""
    ids = np.zeros((8, 24), np.uint8)
    ids[:4, :8], ids[4:, :8], ids[:, 8:16] = 1, 2, 3

    def raster(name: str, values: np.ndarray, left: int) -> None:
        facts = {"count": len(values), "height": 8, "width": values.shape[2], "crs": "EPSG:32632"}
        place = rasterio.Affine(1, 0, 500000 + left, 0, -1, 0)
        with rasterio.open(
            tmp_path / name, "w", dtype=values.dtype, transform=place, **facts
        ) as file:
            file.write(values)

    for at, name in enumerate("abc"):
        cube = np.random.default_rng(at).integers(1, 99, (4, 8, 8)).astype(np.uint16)
        raster(f"{name}.tif", cube, 8 * at)
    raster("fields.tif", ids[None], 0)
    boxes = {1: (0, 0, 8, -4), 2: (0, -4, 8, -8), 3: (8, 0, 16, -8), 4: (90, 90, 95, 95)}
    fields = [
        {"type": "Feature", "geometry": mapping(box(*place)), "properties": {"class": number}}
        for number, (left, *rest) in boxes.items()
        for place in [(500000 + left, rest[0], 500000 + rest[1], rest[2])]
    ]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}}
    collection = {"type": "FeatureCollection", "crs": crs, "features": fields}
    (tmp_path / "fields.geojson").write_text(json.dumps(collection))
    files = [(str(tmp_path / f"{name}.tif"), str(tmp_path / labels)) for name in "abc"]
    scene = load_scenes(files)
    assert scene.class_ids == (1, 2, 3)
    for at, part in enumerate(scene.parts):
        np.testing.assert_array_equal(scene.labels[part.window], ids[:, 8 * at : 8 * at + 8])
    assert len(make_split(scene, kind="random", patch_size=3).train) > 0
    (tmp_path / "none.geojson").write_text(json.dumps(collection | {"features": []}))
    empty = str(tmp_path / "c.tif"), str(tmp_path / "none.geojson")
    assert load_scenes([*files[:2], empty]).class_ids == (1, 2, 3)
    with pytest.raises(InputError, match="holds no shapes"):
        load_scenes([files[0]], [empty])
    tested = load_scenes(files[:1], files[1:2])
    assert "classes-untrained" in tested.codes
    assert (tested.class_ids, len(tested.test_only)) == ((1, 2), 0)
    with pytest.raises(InputError, match=r"no label lies|no labelled pixel"):
        load_scenes(files[2:], files[:1])


def test_labels_that_may_count_from_0_are_told() -> None:
    first = strips("a", class_names=None)
    first = replace(first, class_ids=(1, 2, 3), class_names=("class 1", "class 2", "class 3"))
    labels = np.maximum(first.labels - 1, 0)
    other = scene_from_arrays(first.cube, labels, name="b")
    assert "labels-from-0" in join_scenes([first], [other]).codes
    named = scene_from_arrays(
        first.cube, labels, name="b", class_names={1: "class 2", 2: "class 3"}
    )
    assert "labels-from-0" not in join_scenes([first], [named]).codes


def test_other_bands_are_refused() -> None:
    first = strips("a")
    moved = strips("b", wavelengths=np.linspace(400, 800, 5) + 150)
    with pytest.raises(InputError, match=r"data='b': has band 1 at 550\.0 nm, and a at 400\.0 nm"):
        join_scenes([first, moved])
    fewer = scene_from_arrays(first.cube[..., :4], first.labels, name="b")
    with pytest.raises(
        InputError,
        match="has 4 bands, and a 5: they must agree; scenes of other bands",
    ):
        join_scenes([first, fewer])


def test_values_of_another_scale_are_told() -> None:
    scene = strips("may")
    percent = replace(strips("june", seed=1), cube=strips("june", seed=1).cube * np.float32(0.01))
    assert "values-of-other-scale" not in join_scenes([scene, scene]).codes
    joined = join_scenes([scene, percent])
    (finding,) = [one for one in joined.findings if one.code == "values-of-other-scale"]
    assert finding.where == "june"


def test_a_scene_of_water_is_not_of_another_scale() -> None:
    crops, water = (
        replace(scene, cube=np.full(scene.cube.shape, level, np.float32))
        for scene, level in ((strips("crops"), 0.445), (strips("water", seed=1), 0.012))
    )
    water.cube[:, :8] = 0.3  # a shore
    assert "values-of-other-scale" not in join_scenes([crops, water]).codes


def test_one_no_data_value_holds_for_all() -> None:
    first, second = strips("a"), strips("b", seed=1)
    for scene, mark in ((first, -9), (second, -7)):
        scene.cube[0, 0] = mark
    joined = join_scenes([replace(first, nodata=-9.0), replace(second, nodata=-7.0)])
    held = joined.valid_mask(np.arange(5))
    for part in joined.parts:
        assert not held[part.window][0, 0]
        assert held[part.window].sum() == part.height * part.width - 1
    assert held.sum() == sum(part.height * part.width - 1 for part in joined.parts)


@pytest.mark.parametrize("marks", [(0.0, -9.0), (-9.0, 0.0), (0.0, None), (7.0, 5.0)])
def test_measurements_of_one_scene_are_not_the_no_data_value_of_another(
    marks: tuple[float, float | None],
) -> None:
    scenes = [strips("a"), strips("b", seed=1)]
    for scene, mark, other in zip(scenes, marks, marks[::-1], strict=True):
        if mark is not None:
            scene.cube[0, 0] = mark
        if other is not None:
            scene.cube[1, :5] = other
    joined = join_scenes(
        [replace(scene, nodata=mark) for scene, mark in zip(scenes, marks, strict=True)]
    )
    held = joined.valid_mask(np.arange(5))
    for part, mark in zip(joined.parts, marks, strict=True):
        assert held[part.window].sum() == part.height * part.width - (mark is not None)
        assert held[part.window][0, 0] == (mark is None)


def test_fingerprints_tell_scenes_and_their_part_in_the_run() -> None:
    a, b = strips("a"), strips("b", seed=1)
    result = {
        join_scenes(*scenes).fingerprint for scenes in (([a, b],), ([b, a],), ([a], [b]), ([a, a],))
    }
    assert len(result) == 4


def test_polygons_of_two_scenes_stay_apart() -> None:
    a, b = strips("a"), strips("b", seed=1)
    numbers = [np.where(one.labels > 0, one.labels, 0).astype(np.int32) for one in (a, b)]
    joined = join_scenes([a.with_polygons(numbers[0]), b.with_polygons(numbers[1])])
    assert joined.polygons is not None
    first, second = (np.unique(joined.polygons[part.window]) for part in joined.parts)
    assert set(first) & set(second) == {0}


def test_own_scaling_is_that_of_numpy_and_takes_light_away() -> None:
    generator = np.random.default_rng(0)
    cube = generator.integers(1000, 9000, (40, 30, 4)).astype(np.int32)
    cube[3, 4] = -1
    scaling = OwnScaling.fit(cube, -1.0, rows=7)
    plain = np.where(cube == -1, np.nan, cube).astype(np.float64).reshape(-1, 4)
    np.testing.assert_allclose(scaling.mean, np.nanmean(plain, axis=0))
    np.testing.assert_allclose(scaling.deviation, np.nanstd(plain, axis=0))
    whole = scaling.of(cube).whole()
    assert np.isnan(whole[3, 4]).all()
    other = np.where(cube == -1, -1, cube * 3 + 50)
    np.testing.assert_allclose(OwnScaling.fit(other, -1.0).of(other).whole(), whole, atol=1e-4)


def test_a_mapped_cube_gives_the_same_rows_however_they_are_read() -> None:
    generator = np.random.default_rng(1)
    cube = generator.normal(size=(17, 8, 30)).astype(np.float32)
    change = Resampling.between(np.linspace(400, 900, 30), np.linspace(450, 850, 9))
    mapped = MappedCube(cube, change, 9)
    np.testing.assert_array_equal(mapped.whole(3), mapped[0:17])
    np.testing.assert_array_equal(mapped[5:9], mapped[0:17][5:9])


def test_resampling_interpolates_without_widths() -> None:
    own, wanted = np.linspace(400, 900, 26), np.array([405.0, 433.0, 811.0])
    spectra = np.random.default_rng(2).uniform(0, 1, (6, 26))
    result = Resampling.between(own, wanted)(spectra)
    expected = [np.interp(wanted, own, spectrum) for spectrum in spectra]
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_resampling_weighs_bands_by_the_response_of_their_width() -> None:
    own, wanted, fwhm = np.linspace(400, 900, 501), np.array([500.0, 700.0]), np.array([20.0, 40.0])
    spectra = np.stack([np.sin(own / 40), (own == 500.0).astype(float)])
    result = Resampling.between(own, wanted, fwhm)(spectra)
    for place, (centre, width) in enumerate(zip(wanted, fwhm, strict=True)):
        response = np.exp(-0.5 * ((own - centre) / (width / 2.35482)) ** 2)
        expected = spectra @ response / response.sum()
        np.testing.assert_allclose(result[:, place], expected, atol=5e-3)


def test_resampling_leaves_out_what_was_not_measured() -> None:
    own, wanted = np.linspace(400, 800, 41), np.array([300.0, 500.0, 600.0])
    change = Resampling.between(own, wanted, nodata=-1.0, bad_bands=(20,))
    assert change.lacking.tolist() == [0]
    spectra = np.ones((2, 41))
    spectra[:, 20] = 99.0
    spectra[1, 10] = -1.0
    result = change(spectra)
    assert np.isnan(result[:, 0]).all()
    assert np.isnan(result[1, 1])
    np.testing.assert_allclose(result[:, 2], 1.0)
    with pytest.raises(InputError, match="resample: wavelengths 400 to 800 nm hold fewer than 2"):
        Resampling.between(own, wanted + 2000)


def saved(path: Path, scene: Scene, bands: int = 5) -> str:
    ids = np.array([0, *scene.class_ids])
    waves = np.linspace(400, 800, bands)
    kept = np.asarray(scene.wavelengths)
    cube = np.stack([np.interp(waves, kept, one) for one in scene.cube.reshape(-1, 5)])
    np.savez(
        path,
        cube=cube.reshape(scene.height, scene.width, bands).astype(np.float32),
        labels=ids[scene.labels],
        wavelengths=waves,
    )
    return str(path)


def test_scenes_of_files_are_read_as_one(tmp_path: Path) -> None:
    files = [saved(tmp_path / f"{name}.npz", strips(name, seed=s)) for s, name in enumerate("abc")]
    scene = load_scenes([(files[0], None), (files[1], files[1])], [(files[2], None)])
    assert [(part.name, part.trains) for part in scene.parts] == [
        ("a", True),
        ("b", True),
        ("c", False),
    ]
    scaled = load_scenes([(files[0], None)], [(files[2], None)], scale_by="scene")
    for part in scaled.parts:
        values = scaled.cube[part.window]
        np.testing.assert_allclose(values.mean(axis=(0, 1)), 0, atol=1e-5)
        np.testing.assert_allclose(values.std(axis=(0, 1)), 1, atol=1e-5)
    with pytest.raises(InputError, match="test_data='a': is also a training scene"):
        load_scenes([(files[0], None)], [(files[0], None)])
    with np.load(files[0]) as file:
        relabelled = {**file, "labels": np.where(file["labels"] == 4, 0, file["labels"])}
    np.savez(tmp_path / "other.npz", **relabelled)
    with pytest.raises(InputError, match="test_data='other': is also a training scene"):
        load_scenes([(files[0], None)], [(str(tmp_path / "other.npz"), None)])
    copied = shutil.copy(files[0], tmp_path / "copy.npz")
    for again in (files[0], str(copied)):
        with pytest.raises(InputError, match=r"data='\w+': is given twice"):
            load_scenes([(files[0], None), (files[1], None), (again, None)])


def test_scenes_of_other_bands_are_resampled_on_request(tmp_path: Path) -> None:
    coarse = saved(tmp_path / "coarse.npz", strips("a"))
    fine = saved(tmp_path / "fine.npz", strips("a", seed=1), bands=41)
    with pytest.raises(InputError, match="data='fine': has 41 bands, and coarse 5"):
        load_scenes([(coarse, None), (fine, None)])
    scene = load_scenes([(coarse, None), (fine, None)], resample=True)
    expected = load_scenes([(saved(tmp_path / "same.npz", strips("a", seed=1)), None)])
    result = scene.cube[scene.parts[1].window]
    np.testing.assert_allclose(result, expected.cube, rtol=1e-5)


def test_bands_that_only_a_test_scene_lacks_are_not_used() -> None:
    marked = replace(strips("b", seed=1), bad_bands=(4,))
    assert join_scenes([strips("a")], [marked]).bad_bands == (4,)
    assert join_scenes([strips("a")], [strips("b", seed=1)]).bad_bands == ()


def test_bands_of_joined_scenes_are_chosen_by_wavelengths() -> None:
    joined = join_scenes([strips("a"), replace(strips("b", seed=1), bad_bands=(1,))])
    scaling = Preprocessing.fit_scene(joined, np.arange(50), bands="390-610nm,5")
    assert scaling.bands.tolist() == [0, 2, 4]
