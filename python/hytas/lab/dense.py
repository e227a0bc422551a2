"""A dense head: a network of images gives a map of a tile of a scene in one pass.

The networks of AutoFormer, PiT and S3 keep the tokens of their stages on grids. Here these tokens
are enlarged to the tile and classified pixel by pixel. The loss is the cross-entropy of labelled
pixels; all others count nothing. A scene is mapped by overlapping tiles.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.data import Preprocessing, Scene, Split, valid_mask
from hytas.errors import InputError
from hytas.export.onnx_file import OPSET, save, take_dtype, trace
from hytas.models import Network, build_network
from hytas.models.network import as_network
from hytas.models.sensor import Scaling
from hytas.spaces.shape import ImageShape
from hytas.train.augment import augment, random_symmetry
from hytas.train.optimiser import ema_decay
from hytas.train.rate import usual_rate
from hytas.train.recipe import Recipe
from hytas.types import Architecture, Array

__all__ = ["DENSE_RECIPE", "DenseNetwork", "DenseSensor", "classify_tiles", "fit_dense"]

DENSE_RECIPE = Recipe(
    steps=300, most_epochs=None, batch_size=8, borders=0.0, mixup=0.0, whitened=False
)
"""Recipe of `fit_dense`: a batch is tiles, and tiles are not mixed."""
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

    def classify(self, cube: Array) -> npt.NDArray[np.int64]:
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


def classify_tiles(run: Callable[[Array], Array], cube: Array, side: int) -> npt.NDArray[np.int64]:
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
    progress: Callable[[int, float], None] = lambda step, loss: None,
) -> DenseSensor:
    """Train an architecture with a dense head on the training and validation pixels of a split.

    A tile of a batch holds a random training pixel at a random place. In a spatially disjoint
    split, test pixels are 0 in it, the mean of their bands, so that no training sees their values.

    Args:
        architecture: of a space of images, such as `autoformer-mini` or `s3`; a token is a pixel.
        recipe: `steps`, rates and augmentation; `batch_size` is in tiles.
        side: S of a tile; at most the height and the width of the scene.
        progress: called with the number and the loss of each step.

    Raises:
        InputError: the tile does not fit the scene, or the architecture has no tokens on a grid.
    """
    _check_side(side, scene.height, scene.width)
    known = split.train_and_validation
    scaling = Preprocessing.fit_scene(scene, known)
    values = scaling.apply(np.asarray(scene.cube[:]))
    if split.spatially_disjoint:
        values.reshape(-1, values.shape[2])[split.reported] = 0.0
    targets = np.full(scene.labels.size, UNLABELLED, np.int64)
    targets[known] = scene.labels.ravel()[known] - 1
    shape = ImageShape.of_pixels(len(scaling.bands), len(scene.class_ids), side)
    drop = {"drop_path": recipe.drop_path, "dropout": recipe.dropout}
    network = as_network(build_network(architecture, shape, seed=seed, **drop), "dense")
    rate = recipe.learning_rate or usual_rate([network], recipe.optimiser)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        dense = DenseNetwork(network, shape)
        batches = _Tiles(values, targets.reshape(scene.labels.shape), known, side, seed)
        _train(dense, batches, recipe, rate, torch.from_numpy(scaling.dark), progress)
    return DenseSensor(dense, scaling, scene.class_ids).eval()


@dataclass
class _Tiles:
    """Random tiles of a scene that hold training pixels.

    Attributes:
        values: scaled (H, W, bands).
        targets: class indices (H, W), or `UNLABELLED`.
        pixels: flat indices of training pixels.
    """

    values: npt.NDArray[np.float32]
    targets: npt.NDArray[np.int64]
    pixels: npt.NDArray[np.int64]
    side: int
    seed: int

    def __post_init__(self) -> None:
        self.numbers = np.random.default_rng(self.seed)
        self.generator = torch.Generator().manual_seed(self.seed)

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Return tiles (N, S, S, bands), in a random symmetry, and targets (N, S, S)."""
        chosen = self.numbers.choice(self.pixels, count)
        corner = np.stack(np.divmod(chosen, self.targets.shape[1]))
        corner -= self.numbers.integers(0, self.side, corner.shape)
        most = np.array(self.targets.shape)[:, None] - self.side
        top, left = corner.clip(0, most)[..., None] + np.arange(self.side)
        at = top[:, :, None], left[:, None, :]
        both = np.concatenate([self.values[at], self.targets[at][..., None]], -1, dtype=np.float32)
        turned = random_symmetry(torch.from_numpy(both), self.generator)
        return turned[..., :-1], turned[..., -1].long()


def _train(
    network: DenseNetwork,
    batches: _Tiles,
    recipe: Recipe,
    rate: float,
    dark: Tensor,
    progress: Callable[[int, float], None],
) -> None:
    """Train in place; the weights end as their moving average."""
    parameters: list[Tensor] = list(network.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=rate)
    schedule = recipe.schedule(recipe.batch_size)  # an epoch is a step
    average = [parameter.detach().clone() for parameter in parameters]
    plain = replace(recipe, flips=False)  # a symmetry would have to turn the targets, too
    network.train()
    for step in range(schedule.epochs):
        tiles, targets = batches.draw(recipe.batch_size)
        logits = network(augment(tiles, plain, batches.generator, dark))
        loss = F.cross_entropy(
            logits.flatten(0, 2),
            targets.flatten(),
            ignore_index=UNLABELLED,
            label_smoothing=recipe.label_smoothing,
        )
        for group in optimiser.param_groups:
            group["lr"] = rate * schedule.share(step, schedule.epochs)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, recipe.clip_norm)
        optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, parameters, 1.0 - ema_decay(recipe, step))
        progress(step + 1, float(loss.detach()))
    with torch.no_grad():
        for parameter, mean in zip(parameters, average, strict=True):
            parameter.copy_(mean)
