"""A scene: a hyperspectral cube with its ground truth."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from hytas.data.bands import Bands, measured_bands, select_bands
from hytas.data.checks import NAME_CHECKS, SCENE_CHECKS, CheckedScene
from hytas.data.datasets import PUBLISHED_SCENES
from hytas.data.findings import Finding, Noted, found, refusal
from hytas.data.interpret.nodata import as_stored, undeclared, valid_mask, valid_pixels
from hytas.data.labels.maps import LabelMap, Labels, join
from hytas.data.limits import by
from hytas.data.palette import UNLABELLED_COLOUR
from hytas.data.patches import Part, PatchReader, mask_of
from hytas.data.samples import Samples
from hytas.data.targets import Targets
from hytas.errors import InputError
from hytas.types import Array, Floats, Mask


@dataclass(frozen=True, eq=False)
class Scene(Noted, Samples):
    """A cube and its ground truth.

    Attributes:
        name: of the file, without its suffix, or "synthetic".
        cube: (H, W, B) in the sensor's own type, native byte order; may be a memory map.
        labels: (H, W) int32, 0 unlabelled, classes 1..C; the union of `train` and `test`.
        train, test: (H, W) int32, the fixed split of the file, or None.
        class_ids: numbers of the classes in the file.
        wavelengths: (B,) band centres in nm, or None.
        valid: (H, W), False where a band in use is NaN or infinite, or all are `nodata`; these
            pixels are unlabelled.
        cube_digest: sha256 of the values that the file holds, in hex: scenes with the same one are
            the same ground, whatever their labels and their no-data value.
        fingerprint: sha256 of cube, its type, labels, split, class ids, bad bands and no-data
            value, in hex.
        findings: on masked pixels, guesses and corrections; `notes` are their messages.
        train_counts: published numbers of training pixels of each class, or None.
        bad_bands: indices of the bands that the file marks as bad.
        nodata: the no-data value, or None. A pixel with this value in all bands is not valid, and
            is unlabelled.
        class_colours: RGB of the classes 1..C from the label file, or None.
        polygons: (H, W) number of the polygon or point that labels a pixel, from 1; None if the
            labels are a map.
        fwhm: (B,) full widths of the bands at half maximum in nm, or None.
        continuous: values of the labelled pixels, which are then of one class; or None.
        joined: the scenes that a joined scene was made from; empty for a scene of its own.
    """

    name: str
    cube: Array
    labels: LabelMap
    train: LabelMap | None
    test: LabelMap | None
    class_names: tuple[str, ...]
    class_ids: tuple[int, ...]
    wavelengths: Floats | None
    valid: Mask
    sources: tuple[str, ...]
    cube_digest: str
    fingerprint: str
    findings: tuple[Finding, ...] = ()
    train_counts: tuple[int, ...] | None = None
    bad_bands: tuple[int, ...] = ()
    nodata: float | None = None
    class_colours: tuple[tuple[int, int, int], ...] | None = None
    polygons: LabelMap | None = None
    fwhm: Floats | None = None
    joined: tuple[Part, ...] = ()
    pixel_metres: float | None = None
    continuous: Targets | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the scenes in this one; a scene of its own is its only part."""
        own = Part(self.name, 0, self.height, self.width, True, self.cube_digest)
        return self.joined or (own,)

    has_map: ClassVar[bool] = True

    @property
    def height(self) -> int:
        """Return the number of rows of the cube."""
        return int(self.cube.shape[0])

    @property
    def width(self) -> int:
        return int(self.cube.shape[1])

    @property
    def bands(self) -> int:
        """Return the number of bands of the sensor, dead bands included."""
        return int(self.cube.shape[2])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the element type of the cube."""
        return self.cube.dtype

    def reader(self, side: int) -> PatchReader:
        """Return what reads raw patches (n, side, side, B) by flat index.

        Patches end at the border of their part.

        Raises:
            InputError: a patch size that does not fit the scene.
        """
        return PatchReader(self.cube, side, self.joined)

    def side_of(self, patch_size: int) -> int:
        return patch_size

    def values(self, numbers: npt.ArrayLike, seed: int = 0) -> Array:
        rows, columns = np.unravel_index(np.asarray(numbers), self.labels.shape)
        return np.asarray(self.cube[rows, columns])

    def describe(self, used: int) -> str:
        """Return one line about the scene; `used` bands enter the network."""
        return (
            f"scene {self.name}: {self.height} x {self.width} pixels, {self.bands} bands "
            f"({used} used), {self.told}, {self.dtype}"
        )

    def valid_mask(self, bands: Bands) -> Mask:
        """Return (H, W), True in the pixels of a part that hold data in one of `bands`."""
        valid = valid_mask(self.cube, self.nodata, bands)
        return valid & mask_of(self.joined, valid.shape) if self.joined else valid

    @property
    def training_area(self) -> npt.NDArray[np.int64]:
        """Return flat indices of all pixels, labelled or not, of the parts that may train."""
        training = [part for part in self.parts if part.trains]
        return np.flatnonzero(mask_of(training, self.labels.shape))

    @property
    def test_only(self) -> npt.NDArray[np.int64]:
        """Return flat indices of the labelled pixels of parts that may not train."""
        tested = [part for part in self.parts if not part.trains]
        return np.flatnonzero((self.labels > 0) & mask_of(tested, self.labels.shape))

    def without_test_only(self) -> Self:
        """Return the scene with the labels of the parts that may train only."""
        if not len(test_only := self.test_only):
            return self
        labels = self.labels.copy()
        labels.ravel()[test_only] = 0
        return replace(self, labels=labels)

    def with_polygons(self, polygons: LabelMap) -> Self:
        """Return the scene with the numbers (H, W) of the shapes that label its pixels."""
        parts = f"{self.fingerprint} {_digest(polygons, np.int32)}"
        changed = hashlib.sha256(parts.encode()).hexdigest()
        return replace(self, polygons=polygons, fingerprint=changed)

    def with_targets(self, targets: Targets) -> Self:
        """Return the scene with continuous targets of its labelled pixels."""
        changed = hashlib.sha256(f"{self.fingerprint} {targets.digest}".encode()).hexdigest()
        return replace(self, continuous=targets, fingerprint=changed)


@dataclass(frozen=True, eq=False)
class SceneFacts:
    """The facts of a scene besides its arrays; others than these are as in `Scene`.

    Attributes:
        class_names: by id, or in the order of the ids in the maps; equal names get numbers.
        class_colours: RGB by id; used if every class has a colour of its own that is not black.
        bands: the selection to check for NaN, as `parse_bands` reads it; None: all but the bad.
        least_classes: that must have pixels; 0 or 1 for a scene that is joined with others.
        targets: continuous targets of the labelled pixels, which are then of one class.
    """

    name: str = "scene"
    wavelengths: Array | Sequence[float] | None = None
    class_names: Mapping[int, str] | Sequence[str] | None = None
    sources: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    map_names: Sequence[str] = ()
    nodata: float | None = None
    class_colours: Mapping[int, tuple[int, int, int]] | None = None
    bad_bands: Sequence[int] = ()
    bands: str | None = None
    fwhm: Array | Sequence[float] | None = None
    least_classes: int = 2
    targets: Targets | None = None


def scene_from_arrays(
    cube: Array,
    labels: Array | None = None,
    *,
    train: Array | None = None,
    test: Array | None = None,
    **facts: Any,
) -> Scene:
    """Check arrays and return a scene with them.

    A band is dead if it has no value in any labelled pixel. A labelled pixel must be finite in all
    selected bands that are not dead. If it is finite in none of them, it becomes unlabelled.

    Args:
        cube: (H, W, B), whole numbers or floats of at most 64 bits.
        labels: (H, W), 0 unlabelled; or give a fixed split as `train` and `test` instead.
        facts: attributes of `SceneFacts`.

    Raises:
        InputError: the arrays are not a scene; in one line.
    """
    given = SceneFacts(**facts)
    cube = unmasked("data", cube)
    check_cube(cube, "data")
    maps = _checked_maps(cube, labels, train, test, given.map_names)
    nodata = as_stored(given.nodata, cube.dtype)
    waves = _of_bands("wavelengths", given.wavelengths, cube.shape[2])
    joined, valid, remarks = _checked(cube, maps, nodata, waves, given)
    digest = _digest(cube, np.float32)
    own_names = _names(given.class_names, joined)
    by_id: Mapping[int, str] = dict(zip(joined.ids, own_names, strict=True))
    remarks += found(NAME_CHECKS, by_id)
    scene = Scene(
        name=given.name,
        cube=cube,
        labels=joined.labels,
        train=joined.train,
        test=joined.test,
        class_names=numbered(own_names),
        class_ids=joined.ids,
        wavelengths=waves,
        valid=valid,
        sources=tuple(given.sources),
        cube_digest=digest,
        fingerprint=fingerprint(digest, cube.dtype, joined, nodata, given.bad_bands),
        findings=(*given.findings, *remarks),
        nodata=nodata,
        class_colours=distinct_colours(given.class_colours or {}, joined.ids),
        bad_bands=tuple(given.bad_bands),
        fwhm=_of_bands("fwhm", given.fwhm, cube.shape[2]),
    )
    return scene if given.targets is None else scene.with_targets(given.targets)


def _checked(
    cube: Array,
    maps: list[tuple[str, Array]],
    nodata: float | None,
    wavelengths: Floats | None,
    given: SceneFacts,
) -> tuple[Labels, Mask, list[Finding]]:
    """Return the joined maps without empty pixels, which pixels (H, W) hold data, and findings."""
    labelled = np.logical_or.reduce([values != 0 for _, values in maps])
    alive = measured_bands(cube, labelled if labelled.any() else ~labelled, nodata)
    used = np.intersect1d(
        select_bands(given.bands, given.bad_bands, cube.shape[2], wavelengths), alive
    )
    empty, finite = ~valid_mask(cube, nodata, used), valid_pixels(cube, bands=used)
    labels = join([(name, np.where(empty, 0, values)) for name, values in maps])
    least = given.least_classes if given.targets is None else 1
    checked = CheckedScene(cube, maps, labels, empty, finite, alive, used, least)
    findings, valid = found(SCENE_CHECKS, checked), finite & ~empty
    fills = undeclared(cube, valid, labels.labels > 0, used, nodata)
    return labels, valid, [*labels.findings, *findings, *fills]


def check_cube(cube: Array, argument: str) -> None:
    """Refuse an array that cannot be a cube."""
    wrong, what = "", by(cube.shape)
    if cube.dtype.kind not in "iuf":
        what, wrong = f"of type {cube.dtype}", "real numbers are needed"
    elif cube.dtype.itemsize > 8:
        what, wrong = f"of type {cube.dtype}", "must be at most 64 bits"
    elif cube.ndim != 3:
        wrong = "three axes (height, width, bands) are needed"
    elif 0 in cube.shape:
        wrong = "it holds no pixel"
    elif cube.shape[2] < 2:
        wrong = "it has one band; at least 2 are needed"
    if wrong:
        raise InputError(argument, rule=f"the cube is {what}: {wrong}")


def fingerprint(
    cube: str, kind: np.dtype[Any], labels: Labels, nodata: float | None, bad_bands: Sequence[int]
) -> str:
    """Return the sha256 of a cube's digest and type, its maps, no-data value and bad bands."""
    facts = {
        "type": kind.newbyteorder("=").name,
        "bad bands": [*map(int, bad_bands)],
        "ids": labels.ids,
        "no data": nodata,
        "cube": cube,
        "maps": [_digest(each, np.int32) for each in (labels.labels, labels.train, labels.test)],
    }
    return hashlib.sha256(repr(list(facts.items())).encode()).hexdigest()


def _digest(array: Array | None, kind: type) -> str:
    """Return the sha256 of shape and values of an array, in any memory order; "" for None.

    Args:
        kind: type in which values are compared; float32 for a cube, as networks read it.
    """
    if array is None:
        return ""
    digest = hashlib.sha256(f"{array.shape}".encode())
    for row in array:
        with np.errstate(over="ignore"):
            little = np.ascontiguousarray(row, dtype=np.dtype(kind).newbyteorder("<"))
        digest.update(little.data)
    return digest.hexdigest()


def _checked_maps(
    cube: Array, labels: Array | None, train: Array | None, test: Array | None, names: Sequence[str]
) -> list[tuple[str, Array]]:
    """Return the maps with their names; they must have the height and width of the cube."""
    if labels is not None:
        maps = [(names[0] if names else "labels", unmasked("labels", labels))]
    elif train is None or test is None:
        rule = "missing; a scene needs a label map, or a train and a test map"
        raise InputError("labels", rule=rule)
    else:
        first, second = names if len(names) == 2 else ("train", "test")
        maps = [(first, unmasked("train", train)), (second, unmasked("test", test))]
    for name, values in maps:
        if values.shape != cube.shape[:2]:
            sizes = {"own": by(values.shape), "size": by(cube.shape[:2])}
            raise refusal("sizes-differ", "labels", name, "cube", **sizes)
    return maps


def _names(names: Mapping[int, str] | Sequence[str] | None, labels: Labels) -> tuple[str, ...]:
    ids = labels.ids
    if names is None:
        counts = np.bincount(labels.labels.ravel(), minlength=len(ids) + 1)[1:]
        return PUBLISHED_SCENES.get(tuple(counts.tolist())) or tuple(f"class {i}" for i in ids)
    if isinstance(names, Mapping):
        return tuple(names.get(i) or f"class {i}" for i in ids)
    if len(names) != len(ids):
        facts = {"count": len(names), "classes": len(ids), "ids": list(ids)}
        raise refusal("sizes-differ", "class_names", case="class-names", **facts)
    return tuple(names)


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names; equal names get numbers, from the second one on."""
    taken = set(names)
    unique: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for name in names:
        number, own = numbers.get(name, 1), name
        while own in unique or (number > 1 and own in taken):
            number += 1
            own = f"{name} ({number})"
        numbers[name] = number
        unique[own] = None
    return tuple(unique)


def distinct_colours(
    colours: Mapping[int, tuple[int, int, int]], ids: Sequence[int]
) -> tuple[tuple[int, int, int], ...] | None:
    """Return the colour of each class, if each has one of its own that is not black."""
    class_colours = [colours[number] for number in ids if number in colours]
    distinct = len({UNLABELLED_COLOUR, *class_colours}) == len(ids) + 1
    return tuple(class_colours) if distinct else None


def unmasked(argument: str, values: Any) -> Array:
    """Return values as an array; a mask, which arrays lose, is refused."""
    refuse_mask(argument, values)
    return values if isinstance(values, np.memmap) else np.asarray(values)


def refuse_mask(argument: str, values: Any) -> None:
    """Refuse a masked array with masked values."""
    if np.ma.is_masked(values):
        hint = "fill it: with 0 in labels, and with the `nodata` value in a cube"
        raise InputError(argument, rule="is a masked array", hint=hint)


def _of_bands(argument: str, values: Array | Sequence[float] | None, bands: int) -> Floats | None:
    """Return a number for each band (B,), or None."""
    if values is None:
        return None
    try:
        array = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise InputError(argument, rule="must be a number for each band") from None
    if array.size != bands:
        raise InputError(argument, rule=f"{array.size} given for {bands} bands")
    return array
