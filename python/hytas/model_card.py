"""The metadata of an exported model: written by `export`, read by `deploy`, without torch."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hytas.errors import InputError
from hytas.files import legible
from hytas.settings import SCALE_BY

FORMAT = "2"
CHECKSUM = "hytas.sha256"
"""Name of the entry with the SHA-256 of the file without that entry."""
MOST_PATCH_VALUES = 2**24
"""Values in one patch, at most; it is checked before memory is reserved."""
MOST_CLASSES = 2**16
CLASS_SHARES = ("labels", "assumed")
IMAGE = "image"
GRAPHS = ("patch", "scene", "smooth-scene", IMAGE)
# Element types of a cube that an exported model may take.
DTYPES = tuple(f"{kind}int{bits}" for bits in (8, 16, 32, 64) for kind in ("", "u"))
DTYPES += ("float16", "float32", "float64")


@dataclass(frozen=True)
class ModelCard:
    """The metadata of an exported model, stored as text under `hytas.<name>` keys.

    Attributes:
        class_names: in the order of the output's columns.
        class_ids: numbers of the classes in the label file.
        patch_size: side of the patch around the pixel, in pixels; odd. Of a model for images,
            their side.
        bands: bands of the sensor, dead ones included.
        dtype: numpy name of the cube's element type.
        preprocessing: band selection and scaling, as `Preprocessing.to_dict` gives it.
        band_group: neighbouring bands stacked into one token.
        palette: (C) colours, each (red, green, blue) 0..255.
        wavelengths: (bands) band centres in nm, or None.
        fwhm: (bands) full widths of the bands at half maximum in nm, or None.
        pixel_metres: side of a pixel on the ground, or None.
        version: of the hytas that wrote the file.
        graph: "patch" ((N, P, P, bands) -> probabilities), "scene" (tile -> class map),
            "smooth-scene" (tile -> class map, smoothed in the graph) or "image" ((N, side, side,
            channels) -> probabilities).
        precision: of the weights and products: "float32", "float16", "int8" ...
        forced: whether the file was written although it failed its accuracy check.
        temperature: divisor of the logits; 1 if the model was not calibrated.
        scale_by: "training"; or "scene", if a scene must be scaled by its own pixels before the
            model reads it (`hytas.data.mapped.OwnScaling`).
        learnt_from: the scenes that it was trained on: "name", "fingerprint" and "pixels" of each.
        smoothing: whether its maps are smoothed and by which guide, as
            `hytas.deploy.smoothing.Smoothing.to_dict` gives it; None for images.
        unknown: the score for ground of no class of the model, as
            `hytas.deploy.unknown.UnknownGround.to_dict` gives it; None without one.
        class_shares: "labels": class shares (C) of the training pixels, and "assumed": those that
            the model assumes; None if these are the same.
        targets: of a model of values "units", "centre", "scale", "low" and "high" of each target,
            whose names are `class_names`, "fractions", and "interval"; None for classes.
    """

    class_names: tuple[str, ...]
    class_ids: tuple[int, ...]
    patch_size: int
    bands: int
    dtype: str
    preprocessing: Mapping[str, Any]
    architecture: Mapping[str, Any]
    band_group: int
    palette: tuple[tuple[int, int, int], ...]
    wavelengths: tuple[float, ...] | None = None
    version: str = ""
    graph: str = "patch"
    precision: str = "float32"
    forced: bool = False
    temperature: float = 1.0
    smoothing: Mapping[str, Any] | None = None
    scale_by: str = "training"
    learnt_from: tuple[Mapping[str, Any], ...] = ()
    fwhm: tuple[float, ...] | None = None
    pixel_metres: float | None = None
    unknown: Mapping[str, Any] | None = None
    class_shares: Mapping[str, Sequence[float]] | None = None
    targets: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        classes = len(self.class_names)
        if len(self.class_ids) != classes or len(self.palette) != classes:
            raise InputError(
                "class_ids, palette",
                rule=f"{len(self.class_ids)} ids and {len(self.palette)} colours for {classes} "
                "class names",
                hint="one for each is needed",
            )
        if self.patch_size < 1 or (self.patch_size % 2 == 0 and self.graph != IMAGE):
            raise InputError("patch_size", rule=f"{self.patch_size} is not a positive odd number")
        if self.bands < 1 or self.patch_size**2 * self.bands > MOST_PATCH_VALUES:
            raise InputError(
                "bands",
                self.bands,
                f"in patches of {self.patch_size} x {self.patch_size}: must be 1 or more, and a "
                f"patch at most {MOST_PATCH_VALUES} values",
            )
        if not 1 <= classes <= MOST_CLASSES:
            raise InputError(
                "class_names", rule=f"{classes} classes", hint=f"must be 1 to {MOST_CLASSES}"
            )
        if self.dtype not in DTYPES:
            raise InputError("dtype", self.dtype, f"is not one of {', '.join(DTYPES)}")
        if self.graph not in GRAPHS:
            raise InputError("graph", self.graph, f"is not one of {', '.join(GRAPHS)}")
        if not 0 < self.temperature < math.inf:
            raise InputError("temperature", self.temperature, "must be finite and more than 0")
        if self.scale_by not in SCALE_BY:
            raise InputError("scale_by", self.scale_by, f"is not one of {', '.join(SCALE_BY)}")
        _check_values(self)
        for name, values in (("wavelengths", self.wavelengths), ("fwhm", self.fwhm)):
            if values is not None and len(values) != self.bands:
                rule = f"{len(values)} for {self.bands} bands"
                hint = "one for each is needed"
                raise InputError(name, rule=rule, hint=hint)

    @property
    def has_values(self) -> bool:
        """Whether outputs are continuous targets."""
        return self.targets is not None

    @property
    def of_images(self) -> bool:
        """Return whether the model takes images, not the pixels of a scene."""
        return self.graph == IMAGE

    @property
    def margin(self) -> int:
        """Return the number of pixels on each side that the class of a pixel depends on."""
        return self.patch_size // 2

    @property
    def nodata(self) -> float | None:
        """Return the no-data value of the model, or None."""
        mark = self.preprocessing.get("nodata")
        return None if mark is None else float(mark)

    @property
    def kept_bands(self) -> tuple[int, ...]:
        """Return the indices of the bands that the model reads, ascending."""
        return tuple(int(band) for band in self.preprocessing["bands"])

    @property
    def empty_values(self) -> tuple[float, ...]:
        """Return for each band a value that scales to about 0, for a model without no-data value.

        It is NaN for a floating-point type, else the whole number nearest to the band's offset.
        """
        if self.numpy_dtype.kind == "f":
            return (math.nan,) * self.bands
        offsets = dict(zip(self.kept_bands, self.preprocessing["offset"], strict=True))
        limits = np.iinfo(self.numpy_dtype)
        least, most = float(limits.min), float(limits.max)
        return tuple(
            min(max(float(round(offsets.get(band, 0))), least), most) for band in range(self.bands)
        )

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """Return the cube's element type, in native byte order."""
        return np.dtype(self.dtype)

    def to_properties(self) -> dict[str, str]:
        """Return a text for each key; the same card always gives the same texts."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        # The onboard program reads numbers and lists, not the preprocessing with the no-data value.
        whole = self.numpy_dtype.kind != "f"
        properties = {
            "hytas.format": FORMAT,
            "hytas.nodata": json.dumps(self.nodata),
            "hytas.kept_bands": json.dumps(self.kept_bands),
            "hytas.empty_values": json.dumps(self.empty_values if whole else None),
        }
        if self.targets is None:
            del values["targets"]  # so that a model of classes has the bytes that it always had
        for name, value in values.items():
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            properties[f"hytas.{name}"] = text
        return properties

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], source: str = "model") -> "ModelCard":
        """Read the texts that `to_properties` wrote."""
        if "hytas.format" not in properties:
            raise InputError(
                "model", source, "has no hytas metadata: it was not written by `hytas export`"
            )
        if properties["hytas.format"] != FORMAT:
            raise InputError(
                "model",
                source,
                f"has hytas format {legible(str(properties['hytas.format']))}; "
                f"this version reads format {FORMAT}",
            )
        try:
            return cls(**_parse(properties))
        except InputError as error:
            raise InputError("model", source, f"has broken metadata: {error}") from error
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError("model", source, f"has broken metadata ({reason})") from error


def _check_values(card: ModelCard) -> None:
    """Refuse colours, class ids and no-data values that a map cannot hold."""
    for name, colour in zip(card.class_names, card.palette, strict=True):
        if len(colour) != 3 or not all(0 <= level <= 255 for level in colour):
            raise InputError(
                "palette",
                rule=f"{list(colour)} of class {name!r} is not three numbers from 0 to 255",
            )
    for number in card.class_ids:
        if not -(2**31) <= number < 2**31:
            raise InputError("class_ids", rule=f"{number} is not a whole number of 32 bits")
    mark = card.preprocessing.get("nodata")
    if mark is not None and (isinstance(mark, bool) or not isinstance(mark, int | float)):
        raise InputError(
            "preprocessing", rule=f"nodata is {mark!r}", hint="a number or null is needed"
        )
    for name, shares in (card.class_shares or {}).items():
        if len(shares) != len(card.class_names) or not all(
            0 < share < math.inf for share in shares
        ):
            rule = f"{name}: {list(shares)[:8]} are not positive numbers"
            raise InputError("class_shares", rule=rule, hint="one for each class is needed")


def _parse(properties: Mapping[str, str]) -> dict[str, Any]:
    def value(name: str) -> Any:
        return json.loads(properties[f"hytas.{name}"])

    def known(name: str, kind: Callable[[Any], Any]) -> Any:
        return None if (one := value(name)) is None else kind(one)

    return {
        "class_names": tuple(str(name) for name in value("class_names")),
        "class_ids": tuple(int(number) for number in value("class_ids")),
        "patch_size": int(value("patch_size")),
        "bands": int(value("bands")),
        "dtype": properties["hytas.dtype"],
        "preprocessing": dict(value("preprocessing")),
        "architecture": dict(value("architecture")),
        "band_group": int(value("band_group")),
        "palette": tuple((int(r), int(g), int(b)) for r, g, b in value("palette")),
        "wavelengths": known("wavelengths", _floats),
        "version": properties["hytas.version"],
        "graph": properties["hytas.graph"],
        "precision": properties["hytas.precision"],
        "forced": bool(value("forced")),
        "temperature": _number(value("temperature")),
        "smoothing": known("smoothing", dict),
        "unknown": known("unknown", dict),
        "fwhm": known("fwhm", _floats),
        "pixel_metres": known("pixel_metres", _number),
        "scale_by": properties["hytas.scale_by"],
        "learnt_from": tuple(map(_learnt, value("learnt_from"))),
        "class_shares": _class_shares(properties),
        "targets": json.loads(properties.get("hytas.targets", "null")),
    }


def _learnt(scene: Any) -> dict[str, Any]:
    return {
        "name": legible(str(scene["name"])),
        "fingerprint": legible(str(scene["fingerprint"])),
        "pixels": int(scene["pixels"]),
    }


def _class_shares(properties: Mapping[str, str]) -> dict[str, tuple[float, ...]] | None:
    shares = json.loads(properties.get("hytas.class_shares", "null"))  # none in files of hytas 0.2
    return None if shares is None else {key: _floats(shares[key]) for key in CLASS_SHARES}


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)
