"""A dense head: maps of tiles, from networks of images, learnt from labelled pixels."""

import numpy as np
import onnxruntime
import pytest
import torch

from hytas.data import make_split, scene_from_arrays
from hytas.lab.dense import DENSE_RECIPE, DenseNetwork, classify_tiles, fit_dense
from hytas.models import Network, build_network
from hytas.spaces.shape import ImageShape
from hytas.train import loop
from refusals import refuses
from small import GATED

VIT = {
    "space": "autoformer-mini",
    "depth": 1,
    "embed_dim": 16,
    "num_heads": [2],
    "mlp_ratio": [2],
}
SWIN = {
    "space": "s3",
    "embed_dim": 32,
    "window": [4, 4, 4, 4],
    **{f"depth_{stage}": 1 for stage in range(1, 5)},
    **{f"num_heads_{stage}": [1] for stage in range(1, 5)},
    **{f"mlp_ratio_{stage}": [1] for stage in range(1, 5)},
}
PIT = {"space": "pit-tiny", "base_dim": 16, "depth": [1, 1, 1], "num_heads": [1, 2, 4]} | {
    "mlp_ratio": 2
}
SHAPE = ImageShape.of_pixels(5, 3, 9)
SHORT = DENSE_RECIPE.changed(["steps=3", "batch_size=4"])


def halves(kind: str, changed: int = 0):
    """Two classes whose noisy spectra overlap, one beside the other, and their split.

    Args:
        changed: is added to the values of test pixels.
    """
    generator = np.random.default_rng(0)
    labels = np.full((40, 30), 5)
    labels[20:] = 10
    cube = 100 * generator.normal(labels[..., None] / 6, 1.0, (40, 30, 4))
    cube[0, 0], labels[0, 0] = -9999, 0
    scene = scene_from_arrays(cube.astype(np.int16), labels, nodata=-9999)
    split = make_split(scene, kind=kind, train_per_class=20)
    values = scene.cube[:].reshape(-1, 4)
    values[split.test] += changed
    return scene_from_arrays(values.reshape(cube.shape), labels, nodata=-9999), split


@pytest.mark.parametrize("architecture", [VIT, SWIN, PIT], ids=lambda genes: genes["space"])
def test_every_pixel_of_a_tile_has_logits(architecture) -> None:
    dense = DenseNetwork(build_network(architecture, SHAPE, seed=1), SHAPE).eval()
    tiles = torch.randn(2, 9, 9, 5, requires_grad=True)
    logits = dense(tiles)
    assert logits.shape == (2, 9, 9, 3)
    logits[0, 4, 4].square().sum().backward()
    assert tiles.grad is not None
    assert tiles.grad[0].abs().sum() > 0
    assert tiles.grad[1].abs().sum() == 0, "tiles of a batch do not mix"
    assert all(each.grad is not None for each in dense.classes.parameters())


def test_a_map_by_the_surroundings_of_pixels(tmp_path) -> None:
    scene, split = halves("random")
    model = fit_dense(scene, split, VIT, DENSE_RECIPE.changed(["steps=60"]), side=8)
    found = model.classify(scene.cube[:])
    assert found[0, 0] == 0, "no data"
    ids = np.asarray(scene.class_ids)[scene.labels.ravel()[split.test] - 1]
    assert (found.ravel()[split.test] == ids).mean() > 0.82, "pixels alone: at most .80"

    session = onnxruntime.InferenceSession(model.export(tmp_path / "dense.onnx", np.int16))
    index = classify_tiles(lambda tiles: session.run(None, {"tiles": tiles})[0], scene.cube[:], 8)
    again = np.asarray(scene.class_ids)[index]
    assert (again == found).ravel()[1:].mean() > 0.999


def test_test_pixels_of_other_blocks_do_not_count() -> None:
    weights = [
        fit_dense(*halves("blocks", changed), VIT, SHORT, side=8).network.state_dict()
        for changed in (0, 50)
    ]
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name]), name


def test_a_stopped_fit_resumes_to_the_same_bytes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    scene, split = halves("random")
    recipe = DENSE_RECIPE.changed(["epochs=3", "batch_size=16"])
    seen = []

    def fit(folder, stop_at: int = 0):
        def follow(epoch) -> None:
            seen.append(epoch.epoch)
            if epoch.epoch == stop_at:
                raise KeyboardInterrupt

        return fit_dense(scene, split, VIT, recipe, side=8, fits=folder, progress=follow)

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, stop_at=2)
    resumed, whole = fit(tmp_path).state_dict(), fit(None).state_dict()
    again = fit(tmp_path).state_dict()
    assert seen == [1, 2, 3, 1, 2, 3], "no epoch is repeated, and no fit that is done"
    for name, value in whole.items():
        assert torch.equal(value, resumed[name]), name
        assert torch.equal(value, again[name]), name


def test_a_turned_tile_has_the_labels_of_its_pixels() -> None:
    labels = np.random.default_rng(2).integers(1, 3, (24, 24))
    scene = scene_from_arrays(np.stack([labels, -labels], -1).astype(np.float32), labels)
    split = make_split(scene, kind="random", train_per_class=100)
    recipe = DENSE_RECIPE.changed(["steps=100", "brightness=0", "band_noise=0", "illumination=0"])
    losses = []
    fit_dense(scene, split, VIT, recipe, side=8, progress=lambda epoch: losses.append(epoch.loss))
    assert losses[-1] < 0.3, "a value is its class, and no neighbour's"


def test_tiles_overlap_and_cover_the_scene() -> None:
    cube = np.random.default_rng(1).integers(0, 3, (21, 37, 1))

    def own(tiles):
        return np.eye(3)[tiles[..., 0]]

    assert np.array_equal(classify_tiles(own, cube, 8), cube[..., 0])

    def border(tiles):
        return np.pad(np.zeros((len(tiles), 6, 6)), ((0, 0), (1, 1), (1, 1)), constant_values=1)[
            ..., None
        ] * [0, 1] + [0.5, 0]

    inner = classify_tiles(border, cube, 8)[1:-1, 1:-1]
    assert not inner.any(), "no pixel inside the scene is at the border of its tile"


def test_what_a_dense_head_refuses() -> None:
    scene, split = halves("random")
    with refuses("side", 31, "is larger than the scene of 40 x 30 pixels"):
        fit_dense(scene, split, VIT, SHORT, side=31)
    with refuses("space", "hytas-wide", "its networks take scenes"):
        fit_dense(scene, split, GATED, SHORT, side=7)
    with refuses("dense", rule="a Network has no stages of tokens on a grid"):
        DenseNetwork(Network(), SHAPE)
