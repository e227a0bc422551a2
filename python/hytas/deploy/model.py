"""An exported model, opened with onnxruntime alone."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime

from hytas.data.interpret.wavelengths import farthest_band
from hytas.data.scene import unmasked
from hytas.deploy.card import check_signature, printable_card, read_card, smoothing_of
from hytas.deploy.model_file import check_model, file_of_model, read_model
from hytas.deploy.providers import check_chosen, choose_providers
from hytas.deploy.smoothing import Smoothing
from hytas.errors import InputError
from hytas.model_card import IMAGE, ModelCard
from hytas.tasks import PredictionTask, task_of_card
from hytas.types import Array

Probabilities = npt.NDArray[np.float32]
Item = TypeVar("Item")
_Result = TypeVar("_Result")

MICRO_BATCH = {"CPUExecutionProvider": 8, "CUDAExecutionProvider": 512}
"""Patches at a time. 32 patches do not fit a CPU's cache, and a pixel takes 1.4 times as long."""


@dataclass(frozen=True)
class DeployedModel:
    """A model file, ready to run.

    Attributes:
        provider: the onnxruntime execution provider that runs it.
        checksum: SHA-256 of the file without its checksum entry.
        parallel: calls of `run` that are made at the same time, one thread each.
    """

    path: Path
    card: ModelCard
    provider: str
    _session: onnxruntime.InferenceSession
    checksum: str = ""
    parallel: int = 1

    @classmethod
    def load(
        cls, path: str | Path, providers: str = "auto", *, threads: int = 0, one_call: bool = False
    ) -> "DeployedModel":
        """Open an exported ONNX file, after a check of its checksum.

        Args:
            path: the file, or the folder of a run.
            providers: "auto", "cpu" or "cuda".
            threads: CPU threads; 0 uses every core that this process may use.
            one_call: whether all threads work on one call of `run`, which takes the least time for
                one. If not, a patch graph takes a thread a call, which classifies most pixels a
                second: two threads 1.7 times as many (a winner of 87K parameters, two cores).

        Raises:
            InputError: the file is missing, damaged, not ONNX, or not a model that hytas wrote.
            OSError: it cannot be read.
        """
        path = file_of_model(Path(path))
        content = read_model(path)
        return cls.from_bytes(content, path, providers, threads=threads, one_call=one_call)

    @classmethod
    def from_bytes(
        cls,
        content: bytes,
        name: str | Path,
        providers: str = "auto",
        *,
        threads: int = 0,
        one_call: bool = False,
    ) -> "DeployedModel":
        """Open the content of an exported ONNX file; `name` is what messages call it.

        Arguments and errors are those of `load`.
        """
        path = Path(name)
        chosen = choose_providers(providers)
        checksum = check_model(content, path)
        threads = threads or available_cores()
        session = _open(content, path, choose_providers("cpu"), 1)
        try:
            card = read_card(session.get_modelmeta().custom_metadata_map, path)
            check_signature([*session.get_inputs(), *session.get_outputs()], card, path)
        except UnicodeDecodeError:  # of onnxruntime
            rule = "has broken metadata: a text that is not UTF-8"
            raise InputError("model", path, rule) from None
        on_cpu = len(chosen) == 1
        parallel = threads if card.graph == "patch" and on_cpu and not one_call else 1
        if threads > parallel or not on_cpu:
            session = _open(content, path, chosen, threads)
        check_chosen(providers, session)
        provider = session.get_providers()[0]
        return cls(path, printable_card(card), provider, session, checksum, parallel)

    @property
    def micro_batch(self) -> int:
        """Patches to classify at a time."""
        return MICRO_BATCH.get(self.provider, 8)

    @property
    def smoothing(self) -> Smoothing | None:
        """Return the smoothing of the card; None where it has none."""
        return smoothing_of(self.card)

    def run(self, patches: Array) -> Probabilities:
        """Classify a micro-batch: (N, P, P, bands) of the card's dtype -> (N, C) probabilities.

        It uses one CPU thread when batches run in parallel.
        """
        (probabilities,) = self._outputs([self.task.output_name], {"patches": patches})
        self._check_shape(probabilities, (len(patches), len(self.card.class_ids)))
        return np.asarray(probabilities, dtype=np.float32)

    def in_parallel(
        self, work: Callable[[Item], _Result], items: Iterable[Item]
    ) -> Iterator[_Result]:
        """Yield `work(item)` for each item in their order; `parallel` of them run at a time."""
        if self.parallel == 1:
            yield from map(work, items)
            return
        pool = ThreadPoolExecutor(self.parallel)
        try:
            yield from pool.map(work, items)
        finally:
            pool.shutdown(cancel_futures=True)

    @cached_property
    def task(self) -> PredictionTask:
        """What the model predicts."""
        return task_of_card(self.card)

    def run_tile(self, tile: Array) -> tuple[Array, Array]:
        """Classify a tile with its margin, of the card's type: class ids and confidence (H, W)."""
        return self._maps({"tile": tile}, self._inner(tile))

    def run_tile_maps(self, tile: Array) -> tuple[Array, ...]:
        """Return what a scene graph gives of a tile with its margin: the maps of its task."""
        if self.task.maps == (self.task.output_name,):
            return (self.run_tile_outputs(tile),)
        return self.run_tile(tile)

    def run_tile_smoothed(self, tile: Array, valid: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
        """Do the same with a graph that smooths itself; `valid` (H, W) is the valid mask."""
        return self._maps({"tile": tile, "valid": valid}, self._inner(tile))

    def run_tile_outputs(self, tile: Array) -> Probabilities:
        """Return probabilities or values (H, W, C) of a tile with its margin."""
        (outputs,) = self._outputs([self.task.output_name], {"tile": tile})
        self._check_shape(outputs, (*self._inner(tile), len(self.card.class_ids)))
        return np.asarray(outputs, dtype=np.float32)

    def _inner(self, tile: Array) -> tuple[int, int]:
        margin = 2 * self.card.margin
        return tile.shape[0] - margin, tile.shape[1] - margin

    def _maps(self, given: dict[str, Array], shape: tuple[int, int]) -> tuple[Array, Array]:
        classes, confidence = self._outputs(["classes", "confidence"], given)
        for values in (classes, confidence):
            self._check_shape(values, shape)
        possible = (0, *self.card.class_ids) if "valid" in given else self.card.class_ids
        if not np.isin(classes, possible).all():
            raise InputError("model", self.path, "returns classes that its metadata do not name")
        return np.asarray(classes), np.asarray(confidence)

    def _outputs(self, names: list[str], given: dict[str, Array]) -> list[Any]:
        try:
            return list(self._session.run(names, given))
        except Exception as error:  # onnxruntime raises a dozen types without a common base
            reason = " ".join(str(error).split())[:160]
            raise InputError("model", self.path, f"fails while it runs ({reason})") from error

    def _check_shape(self, output: Array, shape: tuple[int, ...]) -> None:
        if output.shape != shape:
            rule = f"returned shape {output.shape}, but its metadata say {shape}"
            raise InputError("model", self.path, rule)

    def predict_patches(self, patches: Array) -> Probabilities:
        """Return class probabilities of any number of patches, in micro-batches.

        Args:
            patches: (N, P, P, bands), as the sensor gives them.

        Returns:
            (N, C) float32.

        Raises:
            InputError: the model is a scene graph, the patch size or band count differs, or the
                model's type cannot hold a value.
        """
        if self.card.graph not in ("patch", IMAGE):
            raise InputError("model", self.path, f"is a {self.card.graph} graph: it takes tiles")
        side, bands = self.card.patch_size, self.card.bands
        patches = unmasked("patches", patches)
        if patches.ndim != 4 or patches.shape[1:] != (side, side, bands):
            rule = f"shape {patches.shape}; the model takes (N, {side}, {side}, {bands})"
            raise InputError("patches", rule=rule)
        fitting = self.fit_dtype(patches)
        step = self.micro_batch
        batches = (fitting[at : at + step] for at in range(0, len(fitting), step))
        parts = list(self.in_parallel(self.run, batches))
        return (
            np.concatenate(parts) if parts else np.empty((0, len(self.card.class_ids)), np.float32)
        )

    def check_scene(
        self,
        bands: int,
        wavelengths: npt.NDArray[np.float64] | None = None,
        name: str | None = None,
        *,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Refuse a scene that is too small, or whose bands belong to another sensor.

        Args:
            wavelengths: (bands) band centres in nm, or None if the scene has none.
            name: of the scene, for the message; None for an array.
            size: height and width of the scene, which must hold a patch; None skips this check.

        Raises:
            InputError: naming the values of the scene and of the model; or the model takes images.
        """
        reason = self._why_not(bands, wavelengths, size)
        if reason is not None:
            argument, shown = ("cube", {}) if name is None else ("scene", {"value": name})
            raise InputError(argument, **shown, rule=reason)

    def _why_not(
        self, bands: int, wavelengths: npt.NDArray[np.float64] | None, size: tuple[int, int] | None
    ) -> str | None:
        side = self.card.patch_size
        if self.card.of_images:
            return (
                f"is a scene, and {self.path} takes images of {side} x {side} pixels: name a "
                "folder of images"
            )
        if size is not None and min(size) < side:
            return (
                f"{size[0]} x {size[1]} pixels, and {self.path} classifies patches of {side} x "
                f"{side}: height and width must be at least {side}"
            )
        if bands != self.card.bands:
            return (
                f"has {bands} bands, and {self.path} takes {self.card.bands}: the sensor must be "
                "the one that the model was trained for"
            )
        if wavelengths is None or self.card.wavelengths is None:
            return None
        trained = np.asarray(self.card.wavelengths)
        if (farthest := farthest_band(wavelengths, trained)) is None:
            return None
        worst, spacing = farthest
        is_turned = np.abs(np.sort(wavelengths) - np.sort(trained)).max() <= spacing / 2
        order = "; its bands are the model's in another order: sort them, as gdal_translate -b does"
        return (
            f"band {worst + 1} lies at {wavelengths[worst]:.1f} nm and that of {self.path} at "
            f"{trained[worst]:.1f} nm: at most one band spacing ({spacing:.1f} nm) is allowed"
            f"{order if is_turned else ''}"
        )

    def fit_dtype(self, values: Array, origin: tuple[int, int] = (0, 0)) -> Array:
        """Return `values` in the model's element type and the machine's byte order.

        Args:
            values: (H, W, bands) or patches (N, P, P, bands).
            origin: row and column of the first pixel in the scene; negative in a mirrored margin.

        Raises:
            InputError: a value would change; the message names the first one and its position.
        """
        wanted = self.card.numpy_dtype
        if values.dtype == wanted:
            return np.ascontiguousarray(values)
        with np.errstate(invalid="ignore", over="ignore"):
            converted = values.astype(wanted)
        if not np.can_cast(values.dtype, wanted):
            changed = _changed(values, converted)
            if changed.any():
                first = tuple(int(number) for number in np.argwhere(changed)[0])
                raise InputError(
                    "cube",
                    rule=f"its values are {values.dtype.newbyteorder('=')} and {self.path} takes "
                    f"{wanted}, which cannot hold {_reason(values[first], wanted)}, the value at "
                    f"{_place(first, origin)}",
                    hint="give the scene the unit and the type of the training's, such as with "
                    "gdal_translate -scale -ot",
                )
        return np.ascontiguousarray(converted)


def _changed(values: Array, converted: Array) -> npt.NDArray[np.bool_]:
    """Return True where the conversion changed a value by more than one rounding step."""
    if values.dtype.kind == "f" and converted.dtype.kind == "f":
        return np.asarray(np.isfinite(values) != np.isfinite(converted))
    return np.asarray(values != converted)


def _reason(value: Any, wanted: np.dtype[Any]) -> str:
    if not np.isfinite(value):
        return f"{value} (not a finite number)"
    limits = np.finfo(wanted) if wanted.kind == "f" else np.iinfo(wanted)
    if not limits.min <= value <= limits.max:
        return f"{value} (outside {limits.min} to {limits.max})"
    return f"{value} ({'more digits than it keeps' if wanted.kind == 'f' else 'a fraction'})"


def _place(index: tuple[int, ...], origin: tuple[int, int]) -> str:
    # Rows and columns count from 0, bands from 1. A pixel of the mirrored margin has its original's
    # place.
    row, column = (abs(number + first) for number, first in zip(index[-3:-1], origin, strict=True))
    patch = f"patch {index[0]}, " if len(index) == 4 else ""
    return f"{patch}row {row}, column {column}, band {index[-1] + 1}"


def _open(
    content: bytes, path: Path, providers: list[tuple[str, dict[str, Any]]], threads: int
) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # errors become exceptions; the user needs no other output
    # Waiting threads sleep: a search or another model may need the core.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Weights of 8 bits become floats when the file is opened, not in every call.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    try:
        return onnxruntime.InferenceSession(content, options, providers=providers)
    except Exception as error:  # onnxruntime raises a dozen types without a common base
        reason = " ".join(str(error).split())[:160]
        rule = f"is not an ONNX model that runs here ({reason})"
        raise InputError("model", path, rule) from error


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
