"""Label maps in which another number than 0 marks unlabelled pixels."""

import numpy as np
import pytest
from scipy.io import savemat

from hytas import RunConfig
from hytas.data import Grid, labels_on_grid, load_scene
from hytas.data.synthetic import synthetic_scene
from hytas.errors import InputError


@pytest.fixture
def write(tmp_path):
    """Write the synthetic scene with its label map, `mark` where that is 0; returns the file."""
    scene = synthetic_scene()

    def written(mark, dtype):
        labels = np.where(scene.labels == 0, mark, scene.labels).astype(dtype)
        labels[0, 0] = 0
        savemat(tmp_path / "scene.mat", {"cube": scene.cube, "gt": labels})
        return tmp_path / "scene.mat"

    return written


@pytest.mark.parametrize(("mark", "dtype"), [(-1, np.int16), (255, np.uint8), (-1, np.float64)])
def test_the_users_mark_is_unlabelled_as_0_is(write, mark, dtype):
    path = write(mark, dtype)
    expected = synthetic_scene().labels.copy()
    expected[0, 0] = 0
    scene = RunConfig(data=str(path), unlabelled=mark).load_scene()
    assert np.array_equal(scene.labels, expected)
    (finding,) = scene.findings
    assert (finding.code, finding.case) == ("zero-is-unlabelled", "marked")
    assert finding.facts == {"nodata": mark}
    grid = Grid(None, None, *scene.labels.shape)
    ((_, values),) = labels_on_grid(path, grid, unlabelled=mark).maps
    assert np.array_equal(values, expected)


def test_a_mark_that_is_not_there_is_told(write):
    scene = load_scene(write(7, np.uint8), unlabelled=254)
    assert scene.codes == ("not-used",)


def test_a_mark_that_nobody_declared_is_told(write):
    with pytest.raises(InputError) as caught:
        load_scene(write(-1, np.int16), labels_key="gt")
    assert caught.value.value == "gt"
    assert caught.value.rule.startswith("is -1 at row 0, column")
    assert "`unlabelled`" in caught.value.hint
    scene = load_scene(write(255, np.uint8))
    (finding,) = scene.findings
    assert (finding.code, finding.where) == ("mark-is-a-class", "gt")


def test_a_mark_chooses_no_map_for_the_user(tmp_path):
    scene = synthetic_scene()
    mask = np.where(scene.labels > 0, 1, 255).astype(np.uint8)
    gt = np.where(scene.labels == 0, 255, scene.labels).astype(np.uint8)
    savemat(tmp_path / "two.mat", {"cube": scene.cube, "gt": gt, "mask": mask})
    assert load_scene(tmp_path / "two.mat", unlabelled=255).classes == scene.classes
    with pytest.raises(InputError, match="holds several maps"):
        load_scene(tmp_path / "two.mat")


def test_a_scene_with_labels_of_its_own_takes_no_mark():
    with pytest.raises(InputError) as caught:
        load_scene("synthetic", unlabelled=255)
    assert (caught.value.argument, caught.value.value) == ("unlabelled", 255)
    assert caught.value.rule == "the scene 'synthetic' has its own"
