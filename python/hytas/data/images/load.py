"""Tell images from scenes by the name of the data, and read them."""

from collections.abc import Callable
from pathlib import Path

from hytas.data.datasets import SCENES
from hytas.data.images.arrays import digits, load_arrays, pairs_of, textures
from hytas.data.images.decode import check_side
from hytas.data.images.folder import load_folder
from hytas.data.images.image_set import ImageSet
from hytas.data.read.table import is_scene_folder, open_file
from hytas.errors import InputError

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
