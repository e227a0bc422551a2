"""Images in folders, one folder a class, as torchvision's ImageFolder has them."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hytas.data.findings import refusal
from hytas.data.images.decode import IMAGE_SUFFIXES, as_colours, read_image, resized
from hytas.data.images.image_set import ImageSet, InMemory, image_set
from hytas.data.limits import by, listed
from hytas.errors import InputError
from hytas.types import Array, Mask

TRAIN, VALIDATION, TEST = "train", "val", "test"
_LIKE_PARTS = ("train", "training", "val", "valid", "validation", "test", "testing")
"""Names, in lower case, of folders that are probably parts of a split and no classes."""
IN_MEMORY_BYTES = 2**29
"""Images that take at most this much are all kept in memory; others are read for each batch."""


class ImageHeader(NamedTuple):
    """Facts of the header of an image."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    digest: str


@dataclass(frozen=True, eq=False)
class FromFiles:
    """Images that are decoded on demand, several at a time.

    Attributes:
        side: that they are brought to; None leaves them as they are.
        colours: whether images of one channel become images of three.
    """

    paths: Sequence[Path]
    side: int | None
    colours: bool

    def one(self, path: Path) -> Array:
        """Return the image of a file."""
        image = read_image(path)
        image = as_colours(image) if self.colours else image
        return image if self.side is None else resized(image, self.side)

    def __call__(self, numbers: npt.NDArray[np.int64]) -> Array:
        """Return the images of these numbers (n,), (n, H, W, channels)."""
        return np.stack(_each(self.one, [self.paths[number] for number in numbers]))


def load_folder(folder: Path, resize: int | None, skip_unreadable: bool) -> ImageSet:
    """Read images from folders: CLASS/IMAGE, or train/CLASS/IMAGE next to val/ or test/.

    Every file is decoded once, so that a damaged one is refused before any work.
    """
    listed_files, names, tested, notes = _listed(folder)
    paths = [path for path, _ in listed_files]
    results = _each(facts_of, paths)
    kept, more = readable(folder, paths, results, skip_unreadable)
    notes = [*notes, *more]
    facts = [result for result in results if isinstance(result, ImageHeader)]
    paths = [paths[number] for number in kept]
    colours = _check_same_shape(folder, paths, facts, resize)
    if colours:
        notes.append("images of one channel were given three, as the others have")
    read: Any = FromFiles(paths, resize, colours)
    example = read.one(paths[0])
    if example.nbytes * len(paths) <= IN_MEMORY_BYTES:
        read = InMemory(read(np.arange(len(paths))))
    labels = np.array([listed_files[number][1] for number in kept], np.int32)
    empty = [name for number, name in enumerate(names, 1) if not (labels == number).any()]
    if empty:
        raise refusal("empty", "data", folder, "class", name=empty[0])
    digest = hashlib.sha256("".join(result.digest for result in facts).encode()).hexdigest()
    images = image_set(
        read,
        labels,
        None if tested is None else tested[kept],
        names,
        example,
        f"{digest} {resize} {colours}",
        source=str(folder),
        files=[path.relative_to(folder).as_posix() for path in paths],
    )
    return replace(images, notes=tuple(notes))


def images_of(folder: Path) -> list[Path]:
    """Return the image files below a folder, in order."""
    image_files = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        image_files += [
            Path(place, file) for file in files if file.lower().endswith(IMAGE_SUFFIXES)
        ]
    return sorted(path for path in image_files if not path.name.startswith("."))


def _listed(folder: Path) -> tuple[list[tuple[Path, int]], list[str], Mask | None, list[str]]:
    """Return images with their class numbers, class names, which are tested, and notes."""
    parted = _holds_folders(folder / TRAIN)
    parts = [name for name in (TRAIN, VALIDATION, TEST) if (folder / name).is_dir()]
    roots = [folder / name for name in parts] if parted else [folder]
    names = sorted(each.name for each in roots[0].iterdir() if _is_class(each))
    folders = sorted(each.name for each in folder.iterdir() if _is_class(each))
    others = [name for name in folders if not parted or name not in parts]
    like_parts = [name for name in others if name.lower() in _LIKE_PARTS]
    # A train may be a class, but hardly next to one of tests.
    if like_parts and (parted or len(like_parts) > 1 or _holds_folders(folder / like_parts[0])):
        raise refusal("folder-no-class", "data", folder=str(folder), name=like_parts[0])
    listed_images: list[tuple[Path, int]] = []
    tested: list[bool] = []
    for root in roots:
        last = parted and root is roots[-1] and len(roots) > 1
        for each in sorted(path for path in root.iterdir() if _is_class(path)):
            if each.name not in names:
                raise refusal("class-of-one-part", "data", folder=each, other=roots[0])
            images = images_of(each)
            listed_images += [(path, names.index(each.name) + 1) for path in images]
            tested += [last] * len(images)
    if not listed_images:
        raise refusal("empty", "data", folder, "images", suffixes=IMAGE_SUFFIXES)
    notes = [f"{VALIDATION}/ joins {TRAIN}/, and {TEST}/ tests"] if len(parts) == 3 else []
    return listed_images, names, np.array(tested) if any(tested) else None, notes if parted else []


def _is_class(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _holds_folders(path: Path) -> bool:
    """Return whether a folder holds others, as a part of a split does and a class does not."""
    return path.is_dir() and any(map(_is_class, path.iterdir()))


def _each(work: Callable[[Path], Any], paths: Sequence[Path]) -> list[Any]:
    if len(paths) < 2:
        return [work(path) for path in paths]
    with ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0)))) as pool:
        return list(pool.map(work, paths, chunksize=16))


def facts_of(path: Path, read: Callable[[Path], Array] = read_image) -> ImageHeader | str:
    """Decode an image; return the reason if it cannot be."""
    try:
        image = read(path)
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    except InputError as error:
        return f"{error.value} {error.rule}" if error.value is not None else str(error)
    except OSError as error:
        return str(error)
    return ImageHeader(image.shape, image.dtype, content)


def readable(
    folder: Path,
    paths: Sequence[Path],
    results: Sequence[ImageHeader | str],
    skip: bool,
    argument: str = "data",
) -> tuple[list[int], list[str]]:
    """Return the numbers of the images that can be decoded, and a note on the others.

    Args:
        skip: whether images that cannot be decoded are left out, and not refused.
    """
    bad = [number for number, result in enumerate(results) if isinstance(result, str)]
    good = [number for number, result in enumerate(results) if not isinstance(result, str)]
    if not bad:
        return good, []
    reason = str(results[bad[0]]).removeprefix("data: ")
    if not skip or not good:
        others = [paths[number].relative_to(folder).as_posix() for number in bad[1:]]
        more = f"; also {listed(others)}" if others else ""
        rule = f"{len(bad)} of {len(paths)} images cannot be read: {reason}{more}"
        raise InputError(argument, folder, rule, "`skip_unreadable` leaves such files out")
    names = listed([paths[number].relative_to(folder).as_posix() for number in bad])
    return good, [f"{len(bad)} of {len(paths)} images cannot be read and are left out: {names}"]


def _check_same_shape(
    folder: Path, paths: Sequence[Path], facts: Sequence[ImageHeader], resize: int | None
) -> bool:
    plain = {each.shape[2] for each in facts} == {1, 3} and facts[0].dtype == np.uint8
    side = {"side": min(min(each.shape[:2]) for each in facts)}
    for case, values, may_resize in (
        ("sizes", [by(each.shape[:2]) for each in facts], True),
        ("types", [str(each.dtype) for each in facts], False),
        ("channels", [str(each.shape[2]) for each in facts], plain),
    ):
        if len({*values}) > 1 and not (may_resize and resize is not None):
            how = {"counts": "; ".join(_kinds(paths, values))} | (side if may_resize else {})
            raise refusal("images-unlike", "data", folder, case, **how)
    return len({each.shape[2] for each in facts}) > 1


def _kinds(paths: Sequence[Path], values: Sequence[str]) -> list[str]:
    """Return a text for each value that occurs, with the first image of the rarer ones."""
    counts = Counter(values).most_common()
    usual, *others = [f"{value}: {count}" for value, count in counts]
    return [
        usual,
        *(
            f"{text}, {paths[values.index(value)]}"
            for text, (value, _) in zip(others[:3], counts[1:], strict=False)
        ),
    ]
