"""The sizes of networks that a scene, or a set of images, fixes."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from hytas.errors import InputError
from hytas.plugins import fill


def check_band_group(band_group: int, bands: int) -> None:
    """Refuse a token of more bands than there are.

    Raises:
        InputError: the group is wider than the bands that enter the network.
    """
    if band_group > bands:
        raise InputError(
            "band_group", band_group, f"must be odd and at most {bands}, the scene's usable bands"
        )


@dataclass(frozen=True)
class _Sizes:
    def variables(self) -> dict[str, int]:
        """Return the names and values that a search space's cost expressions may use; of an
        optional one that is 0, none."""
        return {name: int(value) for name, value in asdict(self).items() if value}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild from the JSON form, which is `variables()`."""
        names = [each.name for each in fields(cls) if each.default != 0 or each.name in values]
        return cls(**{name: int(values[name]) for name in names})


@dataclass(frozen=True)
class InputShape(_Sizes):
    """The sizes that a scene and the tokenisation fix, whatever the architecture.

    Attributes:
        bands: bands that enter the network, after band selection.
        patch_size: side of the square patch around the pixel, in pixels; odd.
        band_group: neighbouring bands stacked into one token (the width of HyTAS's group-wise
            spectral embedding); odd.
        values: 1 if outputs are continuous targets, 0 for classes.
    """

    bands: int
    classes: int
    patch_size: int = 7
    band_group: int = 3
    values: int = 0

    @property
    def side(self) -> int:
        """Side of what enters a network, in pixels."""
        return self.patch_size

    @property
    def tokens(self) -> int:
        """Tokens of one patch: one a band, and the class token."""
        return self.bands + 1


USUAL_PATCH, LEAST_PATCH = 16, 2
"""Sides of the patches of AutoFormer and PiT at 224 pixels, and of the smallest ones."""
LEAST_GRID = 8
"""Patches along an image, at least, if they are not the smallest."""


@dataclass(frozen=True)
class ImageShape(_Sizes):
    """The sizes that a set of images fixes, whatever the architecture.

    Attributes:
        channels: of an image that enters the network.
        image_size: side of an image, in pixels.
        patch_size: side of the patch that becomes a token, in pixels.
        stride: pixels from one patch to the next, in networks whose patches overlap.
    """

    channels: int
    classes: int
    image_size: int
    patch_size: int = USUAL_PATCH
    stride: int = USUAL_PATCH // 2

    def __post_init__(self) -> None:
        if self.patch_size > self.image_size:
            raise InputError(
                f"images of {self.image_size} x {self.image_size} pixels",
                rule=f"must be at least as large as a patch, {self.patch_size} x {self.patch_size}",
            )

    @classmethod
    def of(cls, space: str, channels: int, classes: int, image_size: int) -> Self:
        """Return the shape for images of this size in a space of this name.

        A patch is 16 pixels wide. In small images it is smaller, so that there are at least 8 x 8
        patches, but not under 2 pixels. PiT's stride is half of it. S3's patch is a quarter.
        """
        patch = USUAL_PATCH
        while patch > LEAST_PATCH and image_size // patch < LEAST_GRID:
            patch //= 2
        stride = max(1, patch // 2)
        if space.startswith("s3"):
            patch = stride = max(1, patch // 4)
        return cls(channels, classes, image_size, patch, stride)

    @classmethod
    def of_pixels(cls, bands: int, classes: int, side: int) -> Self:
        """Return the shape for the patch of a scene, an image whose pixels are the tokens."""
        return cls(bands, classes, side, 1, 1)

    @property
    def band_group(self) -> int:
        """1: every channel enters every patch alone."""
        return 1

    @property
    def bands(self) -> int:
        """Channels, by the name that they have in a scene."""
        return self.channels

    @property
    def side(self) -> int:
        """Side of what enters a network, in pixels."""
        return self.image_size

    @property
    def grid(self) -> int:
        """Patches along the image, side by side."""
        return self.image_size // self.patch_size

    @property
    def overlapping_grid(self) -> int:
        """Patches along the image, `stride` apart."""
        return (self.image_size - self.patch_size) // self.stride + 1


Shape = InputShape | ImageShape
"""What scenes or images fix."""
SCENES, IMAGES = "scenes", "images"
# Space that has a network -> the data that it is for; of a plug-in that leaves it open, none.
DATA_OF: dict[str, str] = {
    "hytas": SCENES,
    "hytas-wide": SCENES,
    "hytas-tiny": SCENES,
    "linear": SCENES,
    "autoformer": IMAGES,
    "autoformer-mini": IMAGES,
    "autoformer-tiny": IMAGES,
    "autoformer-small": IMAGES,
    "autoformer-base": IMAGES,
    "pit-tiny": IMAGES,
    "pit-xs": IMAGES,
    "pit-small": IMAGES,
    "s3": IMAGES,
}
fill("data", DATA_OF)


def shape_from_dict(values: dict[str, Any]) -> Shape:
    """Rebuild a shape of either kind from `variables()`."""
    kind = ImageShape if "image_size" in values else InputShape
    return kind.from_dict(values)
