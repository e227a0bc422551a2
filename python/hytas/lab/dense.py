"""A dense head: a network of images gives a map of a tile of a scene in one pass.

The networks of AutoFormer, PiT and S3 keep the tokens of their stages on grids. Here these tokens
are enlarged to the tile and classified pixel by pixel. The loss is the cross-entropy of labelled
pixels; all others count nothing. A scene is mapped by overlapping tiles.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from hytas.data import Preprocessing, Scene, Split, valid_mask
from hytas.errors import InputError
from hytas.export.onnx_file import OPSET, save, take_dtype, trace
from hytas.models import Network
from hytas.models.network import as_network
from hytas.models.sensor import Scaling
from hytas.run.source import RunSource
from hytas.run.start import Scratch
from hytas.spaces.shape import ImageShape
from hytas.store import open_store
from hytas.tasks import Classes
from hytas.train import LabelledPixels
from hytas.train.fit import Fit, begin_with
from hytas.train.loop import DivergedError, Watch
from hytas.train.recipe import Recipe
from hytas.train.state import Epoch
from hytas.types import Architecture, Array, Pixels

__all__ = ["DENSE_RECIPE", "DenseNetwork", "DenseSensor", "classify_tiles", "fit_dense"]

DENSE_RECIPE = Recipe(
    steps=300, most_epochs=None, batch_size=8, borders=0.0, mixup=0.0, whitened=False
)
"""Recipe of `fit_dense`: a batch is tiles, and tiles are not mixed."""
PLACES = 4
"""Tiles of an epoch that are drawn for each training pixel."""
UNLABELLED = -1
MARGIN = 8
"""A tile of a map overlaps the next by two of so many parts of its side."""


class DenseNetwork(nn.Module):
    """Logits of each pixel of a tile, from the tokens of all stages of a network of images.

    Normalised tokens of every stage get one width, are enlarged to the tile by bilinear
    interpolation, and added up, as in the decoder of SegFormer (Xie et al., NeurIPS 2021).

    Args:
        network: whose read-out is not used.
        shape: of a tile; its `image_size` is S.

    Input: scaled tiles (N, S, S, bands), float. Output: logits (N, S, S, classes).

    Raises:
        InputError: tokens of the network lie on no grid.
    """

    def __init__(self, network: Network, shape: ImageShape) -> None:
        super().__init__()
        self.network, self.side = network, shape.image_size
        for unused in ("norm", "head"):
            setattr(network, unused, nn.Identity())
        with torch.no_grad():
            tokens = network.stage_tokens(torch.zeros(1, self.side, self.side, shape.channels))
        widths = [stage.shape[2] for stage in tokens]
        self.norms = nn.ModuleList(map(nn.LayerNorm, widths))
        self.lateral = nn.ModuleList(nn.Linear(width, widths[0]) for width in widths)
        self.classes = nn.Linear(widths[0], shape.classes)

    def forward(self, tiles: Tensor) -> Tensor:
        """(N, S, S, bands) -> (N, S, S, classes)."""
        total = torch.zeros(())
        for tokens, norm, lateral in zip(
            self.network.stage_tokens(tiles), self.norms, self.lateral, strict=True
        ):
            total = total + self._enlarged(lateral(norm(tokens)))
        logits: Tensor = self.classes(F.gelu(total))
        return logits

    def _enlarged(self, tokens: Tensor) -> Tensor:
        """(N, T, E) -> (N, S, S, E)."""
        side = round(tokens.shape[1] ** 0.5)
        laid = tokens.reshape(-1, side, side, tokens.shape[2])
        if side == self.side:
            return laid
        laid = F.interpolate(laid.permute(0, 3, 1, 2), [self.side] * 2, mode="bilinear")
        return laid.permute(0, 2, 3, 1)


class DenseSensor(nn.Module):
    """A dense network with the scaling before it and probabilities after it.

    Input: tiles (N, S, S, sensor bands) in the sensor's values. Output: probabilities
    (N, S, S, classes), float32.

    Attributes:
        class_ids: of the classes, in the order of the probabilities.
    """

    def __init__(
        self,
        network: DenseNetwork,
        preprocessing: Preprocessing,
        class_ids: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.scaling, self.network = Scaling(preprocessing), network
        self.class_ids, self.preprocessing = class_ids, preprocessing

    def forward(self, tiles: Tensor) -> Tensor:
        """(N, S, S, sensor bands) -> (N, S, S, classes)."""
        return torch.softmax(self.network(self.scaling(tiles.to(torch.float32))), dim=-1)

    def classify(self, cube: Array) -> NDArray[np.int64]:
        """Return the class ids (H, W) of a cube (H, W, sensor bands); 0 where no band has data."""

        def run(tiles: Array) -> Array:
            with torch.inference_mode():
                return np.asarray(self(torch.from_numpy(tiles.astype(np.float32))))

        index, scaling = classify_tiles(run, cube, self.network.side), self.preprocessing
        valid = valid_mask(cube, scaling.nodata, scaling.bands)
        return np.where(valid, np.asarray(self.class_ids)[index], 0)

    def export(self, path: str | Path, dtype: Any = np.float32) -> Path:
        """Write an ONNX file: raw tiles (N, S, S, sensor bands) -> probabilities.

        Args:
            dtype: element type of the tiles, such as that of the scene's cube.
        """
        side, scaling = self.network.side, self.preprocessing
        example = torch.zeros(2, side, side, scaling.sensor_bands)
        names = (["tiles"], ["probabilities"])
        most = max(parameter.numel() for parameter in self.parameters())
        batch = {0: torch.export.Dim("N", min=1)}
        graph = trace(self.eval(), example, batch, names, OPSET, most)
        take_dtype(graph, np.dtype(dtype).name)
        return save(graph, path)


def classify_tiles(run: Callable[[Array], Array], cube: Array, side: int) -> NDArray[np.int64]:
    """Return the index of the most probable class of each pixel (H, W), by overlapping tiles.

    A pixel takes the tile in which it lies an eighth of the side or more from the border, where
    the scene goes on.

    Args:
        run: raw tiles (N, S, S, bands) -> probabilities (N, S, S, classes), as a session of
            onnxruntime gives them.
        side: S.

    Raises:
        InputError: the cube is smaller than a tile.
    """
    _check_side(side, *cube.shape[:2])
    classes = np.empty(cube.shape[:2], np.int64)
    margin = side // MARGIN
    for top in _starts(cube.shape[0], side):
        lefts = _starts(cube.shape[1], side)
        tiles = np.stack([cube[top : top + side, left : left + side] for left in lefts])
        for left, tile in zip(lefts, run(tiles).argmax(axis=-1), strict=True):
            above, before = (margin if start else 0 for start in (top, left))
            classes[top + above : top + side, left + before : left + side] = tile[above:, before:]
    return classes


def _starts(length: int, side: int) -> list[int]:
    """Return the first row (or column) of each tile, so that neighbours share twice the margin."""
    return [*range(0, length - side, side - 2 * (side // MARGIN)), length - side]


def _check_side(side: int, height: int, width: int) -> None:
    if side > min(height, width):
        raise InputError("side", side, f"is larger than the scene of {height} x {width} pixels")


def fit_dense(
    scene: Scene,
    split: Split,
    architecture: Architecture,
    recipe: Recipe = DENSE_RECIPE,
    *,
    side: int = 16,
    seed: int = 0,
    fits: Path | None = None,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> DenseSensor:
    """Train an architecture with a dense head on the training and validation pixels of a split.

    An epoch sees each training pixel in `PLACES` tiles, at random places of them. In a spatially
    disjoint split, test pixels are 0 in all tiles, the mean of their bands, so that no training
    sees their values.

    Args:
        architecture: of a space of images, such as `autoformer-mini` or `s3`; a token is a pixel.
        recipe: `steps`, rates and augmentation; `batch_size` is in tiles.
        side: S of a tile; at most the height and the width of the scene.
        fits: folder of the training, which resumes from it; None keeps nothing.
        progress: called with each new epoch.

    Raises:
        InputError: the tile does not fit the scene, the architecture has no tokens on a grid, or
            the training diverged.
    """
    _check_side(side, scene.height, scene.width)
    known = split.train_and_validation
    scaling = Preprocessing.fit_scene(scene, known)
    values = scaling.apply(np.asarray(scene.cube[:])).reshape(scene.labels.size, -1)
    if split.spatially_disjoint:
        values[split.reported] = 0.0
    targets = np.full(scene.labels.size, UNLABELLED, np.int64)
    targets[known] = scene.labels.ravel()[known] - 1
    tiles = _tiles_of(known, scene.labels.shape, side, seed, recipe.flips)
    source = _source(values, targets, tiles, scene, side, scaling)
    plain = replace(recipe, flips=False)  # tiles are turned already
    fit = Fit(architecture, plain, seed, tiles, tiles[:0])
    network = source.network(fit)
    with open_store(fits, source) as store:
        done = store.one(fit, Watch(progress))
        if done.reason:
            raise DivergedError(done.reason)
        begin_with(network, store.files(fit).weights)
    return DenseSensor(network, scaling, scene.class_ids).eval()


def _tiles_of(
    known: Pixels, size: tuple[int, int], side: int, seed: int, turned: bool
) -> NDArray[np.int64]:
    """Return the numbers of random tiles (n,) that hold training pixels: 8 corner + symmetry."""
    numbers = np.random.default_rng(seed)
    corners = np.stack(np.divmod(np.repeat(known, PLACES), size[1]))
    corners -= numbers.integers(0, side, corners.shape)
    top, left = corners.clip(0, np.array(size)[:, None] - side)
    symmetries = numbers.integers(0, 8 if turned else 1, len(top))
    return np.unique(8 * (top * size[1] + left) + symmetries)


def _pixels_of(tiles: NDArray[np.int64], width: int, side: int) -> NDArray[np.int64]:
    """Return the flat indices (n, S, S) of the pixels of tiles, by their numbers."""
    corners, symmetries = np.divmod(tiles[:, None], 8)
    forth = np.arange(side)
    rows, columns = (
        corner + np.where(symmetries & turn, forth[::-1], forth)
        for corner, turn in zip(np.divmod(corners, width), (1, 2), strict=True)
    )
    pixels = rows[:, :, None] * width + columns[:, None, :]
    turned: NDArray[np.int64] = np.where(symmetries[..., None] & 4, pixels.swapaxes(1, 2), pixels)
    return turned


@dataclass(frozen=True)
class _DenseClasses(Classes):
    """The classes of the labelled pixels of a tile; all others have no aim."""

    def aims(self, targets: Tensor) -> Tensor:
        """(n, S, S), or `UNLABELLED` -> (n, S, S, C)."""
        labelled = targets != UNLABELLED
        return super().aims(targets.clamp_min(0)) * labelled[..., None]

    def loss(
        self, logits: Tensor, aims: Tensor, weights: Tensor | None, smoothing: float
    ) -> Tensor:
        """Return the mean loss of labelled pixels."""
        labelled = aims.sum(-1) > 0
        return super().loss(logits[labelled], aims[labelled], weights, smoothing)

    def weights(self, targets: NDArray[Any], exponent: float) -> NDArray[np.float32] | None:
        """Return the weights of classes by their labelled pixels."""
        return super().weights(targets[targets != UNLABELLED], exponent)


class _DenseSource(RunSource):
    """What the training of a dense head reads; its pixels are tiles, by their numbers."""

    def network(self, fit: Fit) -> DenseNetwork:
        """Return the network with its head, whose weights the seed of the fit decides."""
        assert isinstance(self.shape, ImageShape)
        network = as_network(self.begun(fit.architecture, fit.recipe, fit.seed), "dense")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(fit.seed)
            return DenseNetwork(network, self.shape)


def _source(
    values: NDArray[np.float32],
    targets: NDArray[np.int64],
    tiles: NDArray[np.int64],
    scene: Scene,
    side: int,
    scaling: Preprocessing,
) -> _DenseSource:
    """Return the source of pixels with values (H W, bands) and targets (H W,)."""
    shape = ImageShape.of_pixels(len(scaling.bands), len(scene.class_ids), side)

    def pixels(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        return _pixels_of(chosen, scene.width, side)

    return _DenseSource(
        digest=hashlib.sha256(
            repr((shape, scene.labels.shape)).encode() + values.tobytes() + targets.tobytes()
        ).hexdigest(),
        shape=shape,
        origin=Scratch(),
        tune="all",
        class_names=(),
        device=torch.device("cpu"),
        one_thread=False,
        known=LabelledPixels(
            lambda chosen: values[pixels(chosen)],
            tiles,
            targets[pixels(tiles)],
            shape.classes,
            scaling.dark,
            of=_DenseClasses(shape.classes),
        ),
        others=None,
        data=None,
    )
