"""The embedded scene: mixed spectra over smooth regions, noise and water-vapour bands."""

import numpy as np
import numpy.typing as npt

from hytas.data.scene import Scene, scene_from_arrays
from hytas.types import Floats

CLASS_NAMES = ("water", "forest", "meadow", "bare soil", "vineyard", "orchard")
ENDMEMBERS = ("water", "conifer", "broadleaf", "grass", "soil")

# Around 1400 and 1900 nm the atmosphere absorbs all light, so these bands hold zeros.
WATER_VAPOUR_NM = ((1340.0, 1460.0), (1790.0, 1950.0))


def synthetic_scene(
    seed: int = 0,
    height: int = 56,
    width: int = 64,
    bands: int = 72,
    train_per_class: int = 30,
    *,
    noise: float = 1.0,
    region: float = 4.0,
) -> Scene:
    """Make a small scene with a fixed training and test map.

    Land covers take the place of each other by smooth abundance fields. The class of a pixel is
    its most abundant cover; nearly even mixtures are unlabelled. A vineyard has rows of vines on
    bare soil, and an orchard has trees on grass: their pixels have the spectra of other classes,
    and the pattern of neighbours distinguishes them. Illumination varies smoothly, and every value
    has its own noise.

    Args:
        bands: evenly spaced over 400 to 2450 nm; bands in WATER_VAPOUR_NM are dead.
        noise: factor of the noise of every value.
        region: scale of the regions of one class, in pixels.

    Returns:
        A scene of uint16 counts with six classes.
    """
    generator = np.random.default_rng(seed)
    wavelengths = np.linspace(400.0, 2450.0, bands)
    abundance = _abundances(generator, (height, width), len(CLASS_NAMES), region)
    reflectance = _materials(abundance) @ _endmembers(wavelengths)
    light = 1.0 + 0.25 * _smooth(generator, height, width, 6.0)[:, :, None]
    # Sunlight is weaker in the infrared: there are fewer counts and so more relative noise.
    sun = 9000.0 * np.exp(-((wavelengths - 400.0) / 1100.0))
    counts = reflectance * light * (sun + 400.0)
    deviation = noise * (0.025 * counts + 25.0)
    counts = counts + generator.normal(size=counts.shape) * deviation
    counts = np.clip(np.rint(counts), 1, 65535)
    for low, high in WATER_VAPOUR_NM:
        counts[:, :, (wavelengths >= low) & (wavelengths <= high)] = 0
    labels = _labels(abundance)
    train = _training_map(generator, labels, train_per_class)
    return scene_from_arrays(
        counts.astype(np.uint16),
        train=train,
        test=np.where(train > 0, 0, labels),
        name="synthetic",
        wavelengths=wavelengths,
        class_names=CLASS_NAMES,
        sources=("synthetic",),
    )


def _materials(abundance: Floats) -> Floats:
    """Return the share of each endmember (H, W, E) from that of each land cover (H, W, C).

    Every third row of a vineyard is vines. The trees and the grass of an orchard alternate.
    """
    height, width, _ = abundance.shape
    row, column = np.mgrid[:height, :width]
    water, conifer, broadleaf, grass, soil = np.eye(len(ENDMEMBERS))
    vines = np.where((row % 3 == 0)[:, :, None], 0.8 * broadleaf + 0.2 * soil, soil)
    tree = ((row + column) % 2 == 0)[:, :, None]
    trees = np.where(tree, 0.8 * broadleaf + 0.2 * grass, grass)
    plain = [np.broadcast_to(one, trees.shape) for one in (water, conifer, grass, soil)]
    covers = np.stack([*plain, vines, trees], axis=2)  # (H, W, C, E)
    mixed: Floats = np.einsum("hwc,hwce->hwe", abundance, covers)
    return mixed


def _endmembers(wavelengths: Floats) -> Floats:
    """Return reflectances (5, B) with the features that separate the materials."""

    def bump(centre: float, breadth: float) -> Floats:
        shape: Floats = np.exp(-(((wavelengths - centre) / breadth) ** 2))
        return shape

    def step(at: float, breadth: float) -> Floats:
        shape: Floats = 1.0 / (1.0 + np.exp(-(wavelengths - at) / breadth))
        return shape

    moisture = 1.0 - 0.55 * bump(1450, 130) - 0.7 * bump(1940, 170) - 0.25 * bump(2400, 250)
    decay = 1.0 - 0.45 * step(1900, 350)

    def plant(green: float, edge: float, plateau: float) -> Floats:
        return 0.04 + green * bump(555, 40) + plateau * step(edge, 14) * moisture * decay

    water = 0.02 + 0.07 * bump(480, 140)
    soil = 0.08 + 0.28 * step(900, 420) - 0.05 * bump(2200, 60) - 0.03 * bump(900, 90)
    rows = (water, plant(0.030, 720, 0.24), plant(0.050, 713, 0.36), plant(0.075, 706, 0.48), soil)
    return np.stack(rows)


def _smooth(generator: np.random.Generator, height: int, width: int, sigma: float) -> Floats:
    """Return a smooth random field (H, W) of zero mean and unit deviation."""
    from scipy.ndimage import gaussian_filter

    field: Floats = gaussian_filter(generator.normal(size=(height, width)), sigma, mode="reflect")
    field -= field.mean()
    field /= field.std()
    return field


def _abundances(
    generator: np.random.Generator, shape: tuple[int, int], covers: int, region: float
) -> Floats:
    """Return fractions (H, W, C) that sum to one, dominated by one cover in smooth regions."""
    fields = np.stack([_smooth(generator, *shape, region) for _ in range(covers)], axis=-1)
    fields = fields + 0.08 * generator.normal(size=fields.shape)
    raised: Floats = np.exp(3.0 * (fields - fields.max(axis=-1, keepdims=True)))
    raised /= raised.sum(axis=-1, keepdims=True)
    return raised


def _labels(abundance: Floats) -> npt.NDArray[np.int64]:
    ordered = np.sort(abundance, axis=-1)
    clear = ordered[:, :, -1] - ordered[:, :, -2] > 0.1
    return np.where(clear, abundance.argmax(axis=-1) + 1, 0)


def _training_map(
    generator: np.random.Generator, labels: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    train = np.zeros_like(labels)
    for label in range(1, int(labels.max()) + 1):
        pixels = np.flatnonzero(labels == label)
        chosen = generator.permutation(pixels)[: min(count, pixels.size // 2)]
        train.ravel()[chosen] = label
    return train
