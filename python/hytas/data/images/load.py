"""Tell images from scenes and read them: folders, .npz files, and sets known by name."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hytas.data.datasets import SCENES
from hytas.data.findings import refusal
from hytas.data.images.decode import check_side, resized
from hytas.data.images.folder import load_folder
from hytas.data.images.image_set import ImageSet, InMemory, image_set
from hytas.data.read.table import is_scene_folder, open_file
from hytas.data.record import Contents, Variable, load
from hytas.errors import InputError
from hytas.types import Array, Mask

PARTS = ("train", "val", "test")
TEXTURES = ("rows", "columns", "diagonals", "checks", "rings", "grains")


def pairs_of(contents: Contents) -> dict[str, tuple[Variable, Variable]]:
    """Return part of the split -> its images and labels; the part is "" if no name gives one.

    Images are an array (N, H, W) or (N, H, W, channels), labels one of N whole numbers. Names with
    "train", "val" or "test" in them belong together.
    """
    pairs: dict[str, tuple[Variable, Variable]] = {}
    for images in (each for each in contents.variables if len(each.shape) in (3, 4)):
        part = _part(images.name)
        labels = [
            each
            for each in contents.variables
            if each.shape in ((images.shape[0],), (images.shape[0], 1))
            and _part(each.name) == part
            and each.dtype.lstrip("<>|=").startswith(("int", "uint", "i", "u"))
        ]
        if len(labels) == 1 and part not in pairs:
            pairs[part] = images, labels[0]
    return pairs


def load_arrays(path: Path, resize: int | None) -> ImageSet:
    """Read a .npz file with images and labels; or with those of "train" and of "test"."""
    contents = open_file(path, "data")
    pairs = pairs_of(contents)
    if not pairs:
        arrays = [*map(str, contents.variables)]
        raise refusal("array-missing", "data", path, "images", arrays=arrays)
    kept = [part for part in (*PARTS, "") if part in pairs]
    if "" in kept and len(kept) > 1:
        kept = [""]
    images = [_images(contents, pairs[part][0], resize) for part in kept]
    if len({(each.shape[1:], each.dtype) for each in images}) > 1:
        counts = [f"{each.shape[1:]} {each.dtype}" for each in images]
        raise refusal("images-unlike", "data", path, "parts", counts=counts)
    labels = [load(pairs[part][1], contents, "data").astype(np.int64).ravel() for part in kept]
    tested = np.concatenate(
        [np.full(len(each), part == kept[-1]) for part, each in zip(kept, labels, strict=True)]
    )
    ids, numbers = np.unique(np.concatenate(labels), return_inverse=True)
    return of_arrays(
        np.concatenate(images),
        (numbers + 1).astype(np.int32),
        [f"class {number}" for number in ids],
        str(path),
        tested if len(kept) > 1 else None,
    )


def _images(contents: Contents, variable: Variable, resize: int | None) -> Array:
    values, path = load(variable, contents, "data"), contents.path
    if values.dtype.kind not in "iufb" or 0 in values.shape or not np.isfinite(values).all():
        raise refusal("array-unfit", "data", path, "images", array=str(variable))
    values = values.astype(np.uint8) if values.dtype.kind == "b" else values
    values = values[..., None] if values.ndim == 3 else values
    return values if resize is None else np.stack([resized(image, resize) for image in values])


def _part(name: str) -> str:
    return next((part for part in PARTS if part in name.lower()), "")


def of_arrays(
    images: Array,
    labels: npt.NDArray[np.int32],
    class_names: Sequence[str],
    source: str,
    tested: Mask | None = None,
) -> ImageSet:
    """Return a set of images (N, side, side, channels) with labels (N,), classes 1..C.

    Args:
        tested: (N,) whether an image is of the fixed test set; None where there is no fixed split.
    """
    digest = hashlib.sha256(f"{images.shape} {images.dtype}".encode())
    digest.update(np.ascontiguousarray(images).data)
    return image_set(
        InMemory(images),
        labels,
        tested,
        class_names,
        images[0],
        digest.hexdigest(),
        source=source,
        files=[str(number) for number in range(len(images))],
    )


def digits() -> ImageSet:
    """Return the handwritten digits of scikit-learn: 1797 images of 8 x 8, ten classes.

    Source: Alpaydin and Kaynak, UCI Machine Learning Repository, 1998.
    """
    from sklearn.datasets import load_digits

    dataset = load_digits()
    labels = (dataset.target + 1).astype(np.int32)
    images = dataset.images.astype(np.uint8)[..., None]
    return of_arrays(images, labels, [str(i) for i in range(10)], "digits")


def textures(seed: int = 0, each: int = 60, side: int = 32) -> ImageSet:
    """Make images of six textures in random colours, periods and places, with noise.

    Returns:
        A set of uint8 images with three channels.
    """
    generator = np.random.default_rng(seed)
    images = [_texture(generator, kind, side) for kind in range(len(TEXTURES)) for _ in range(each)]
    labels = np.repeat(np.arange(1, len(TEXTURES) + 1), each).astype(np.int32)
    return of_arrays(np.stack(images), labels, TEXTURES, "textures")


def _texture(generator: np.random.Generator, kind: int, side: int) -> npt.NDArray[np.uint8]:
    row, column = np.mgrid[:side, :side] + generator.uniform(0, side, (2, 1, 1))
    turn = 2 * np.pi / generator.uniform(4.0, 10.0)
    waves = (
        np.sin(turn * row),
        np.sin(turn * column),
        np.sin(turn * (row + column) * 0.7),
        np.sin(turn * row) * np.sin(turn * column),
        np.sin(turn * np.hypot(row - side, column - side)),
        generator.normal(size=(side, side)),
    )
    low, high = generator.uniform(0, 255, (2, 3))
    share = (waves[kind][..., None] + 1) / 2
    noisy = low + (high - low) * share + generator.normal(size=(side, side, 3)) * 25
    texture: npt.NDArray[np.uint8] = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    return texture


# Name -> what makes the set.
IMAGE_SETS: dict[str, Callable[[], ImageSet]] = {"digits": digits, "textures": textures}


def holds_images(data: str | Path) -> bool:
    """Tell whether the data are images: a set known by name, a folder, or arrays of images.

    An array with four axes holds images, even if no labels fit it, unless the file also has a cube.

    Raises:
        InputError: the file cannot be read.
    """
    if str(data) in IMAGE_SETS:
        return True
    if str(data) in {*SCENES, "synthetic"}:  # even if a folder is called the same
        return False
    if Path(data).is_dir():
        return not is_scene_folder(Path(data))
    if not str(data).lower().endswith(".npz") or not Path(data).is_file():
        return False
    contents = open_file(data, "data")
    axes = {len(each.shape) for each in contents.variables}
    return bool(pairs_of(contents)) or (4 in axes and 3 not in axes)


def load_images(
    data: str | Path, *, resize: int | None = None, skip_unreadable: bool = False
) -> ImageSet:
    """Read labelled images.

    Args:
        data: "digits" (scikit-learn's) or "textures" (generated); a folder with one folder a class,
            or with train/ and val/ or test/ of such folders; or a .npz file with images and labels.
        resize: side to bring images to, in pixels; None leaves them as they are.
        skip_unreadable: leave out image files that cannot be read.

    Raises:
        InputError: the images are not a set of labelled images of one kind; in one line.
    """
    check_side(resize)
    if str(data) in IMAGE_SETS:
        if resize is not None:
            raise InputError("resize", resize, f"{data} has images of one size")
        return IMAGE_SETS[str(data)]()
    path = Path(data)
    return (
        load_folder(path, resize, skip_unreadable) if path.is_dir() else load_arrays(path, resize)
    )
