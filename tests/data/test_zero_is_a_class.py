"""A map of 0 and 1, where 0 is a class and not what is unlabelled."""

from pathlib import Path

import numpy as np
import pytest
from reader_files import write_envi

from hytas.data import Grid, labels_on_grid, load_scene
from hytas.errors import InputError
from hytas.run import RunConfig


@pytest.fixture
def target(tmp_path: Path, cube: np.ndarray) -> Path:
    """A cube (9, 11, 6) and a target map of 0 and 1, with a mark for unlabelled pixels."""
    gt = np.random.default_rng(1).integers(0, 2, (9, 11))
    gt[0] = 255
    np.savez(tmp_path / "t.npz", c=cube, gt=gt)
    return tmp_path / "t.npz"


def test_zero_becomes_a_class(target: Path) -> None:
    gt = np.load(target)["gt"]
    scene = load_scene(target, unlabelled=255, zero_is_a_class=True)
    np.testing.assert_array_equal(scene.labels, np.where(gt == 255, 0, gt + 1))
    assert scene.class_names == ("label 0", "label 1")
    assert scene.class_ids == (1, 2)
    assert any(note.startswith("0 is a class: ids in maps") for note in scene.notes)
    options = {"unlabelled": 255, "zero_is_a_class": True}
    ((name, values),) = labels_on_grid(target, Grid(None, None, *gt.shape), **options).maps
    assert name == "gt"
    np.testing.assert_array_equal(values, scene.labels)


def test_the_refusal_names_the_option(target: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_scene(target, unlabelled=255)
    assert caught.value.rule.startswith("holds labels of class 1")
    assert "`zero_is_a_class`" in caught.value.hint


def test_a_named_0_is_told(tmp_path, cube, labels):
    write_envi(tmp_path / "c.img", cube, "bsq", "<")
    names = "classes = 8\nclass names = {NAME, a, b, c, d, e, f, g}\n"
    for name, is_told in (("Wheat", True), ("Unclassified", False)):
        write_envi(tmp_path / "l.img", labels[..., None], "bsq", "<", names.replace("NAME", name))
        codes = load_scene(tmp_path / "c.img", tmp_path / "l.img").codes
        assert ("zero-is-unlabelled" in codes) == is_told


def test_names_of_the_file_stay_with_their_labels(tmp_path: Path, cube: np.ndarray) -> None:
    labels = np.arange(99).reshape(9, 11) % 2
    labels.astype(np.uint8).tofile(tmp_path / "gt.img")
    (tmp_path / "gt.hdr").write_text(
        "ENVI\nsamples = 11\nlines = 9\nbands = 1\ndata type = 1\nclass names = {Rock, Ore}\n"
        "class lookup = {9, 9, 9, 255, 0, 0}\n"
    )
    np.save(tmp_path / "c.npy", cube)
    scene = load_scene(tmp_path / "c.npy", tmp_path / "gt.hdr", zero_is_a_class=True)
    assert scene.class_names == ("Rock", "Ore")
    assert scene.class_colours == ((9, 9, 9), (255, 0, 0))


def test_what_leaves_no_meaning_to_zero_is_refused(mat, cube, labels, target: Path) -> None:
    with pytest.raises(InputError, match="cannot be given together") as caught:
        load_scene(target, unlabelled=0, zero_is_a_class=True)
    assert (caught.value.argument, caught.value.value) == ("unlabelled", 0)
    both = mat(input=cube, TR=labels, TE=labels)
    with pytest.raises(InputError, match="TR and TE given: 0 has one meaning only") as caught:
        load_scene(both, zero_is_a_class=True)
    assert caught.value.argument == "zero_is_a_class"
    with pytest.raises(InputError, match="the scene 'synthetic' has its own"):
        load_scene("synthetic", zero_is_a_class=True)
    with pytest.raises(InputError, match="labels must be whole numbers"):
        load_scene(mat(c=cube, gt=labels + 0.5), zero_is_a_class=True)


def test_a_run_keeps_the_choice(target: Path) -> None:
    config = RunConfig(data=str(target), unlabelled=255, zero_is_a_class=True)
    again = RunConfig.from_dict(config.to_dict())
    assert again.load_scene().class_names == ("label 0", "label 1")
