"""A training as a value: all that decides its result, and what it gives."""

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hytas.errors import InputError, is_out_of_memory, one_line
from hytas.files import atomic_write
from hytas.machine import one_thread_on_cpu
from hytas.models import Network
from hytas.tensors import read_tensors
from hytas.train.evaluation import accuracy_and_probability, logits_of
from hytas.train.learner import Learner, OneNetwork
from hytas.train.loop import DivergedError, TrainingResult, Watch, train
from hytas.train.pixels import LabelledPixels
from hytas.train.recipe import Recipe
from hytas.train.schedule import Schedule
from hytas.train.state import Epoch
from hytas.types import Array, Logits, Pixels

FORMAT = 4
"""Of the results in a store; another number makes all of them anew."""
BEST = "best."
"""What the names of the weights of the best epoch begin with in a file of weights."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A training of a network, by all that decides its result.

    Attributes:
        architecture: of the network.
        recipe: how it trains.
        seed: of its randomness.
        trained: flat indices of the pixels that it trains on.
        watched: of the pixels that choose its best epoch; may be empty.
        schedule: length and learning rates; None is the recipe's.
        start: the fit whose weights it begins with; None begins with those of the source.
        self_trains: whether it trains on unlabelled pixels, too, whose soft labels `start` gives.
        taught: whether the teacher of the source takes part.
        logits: name -> flat indices of pixels whose logits the result holds.
        classes: name -> flat indices of pixels whose predicted class it holds.
        target: export format that makes the predictions of the result, after the training; "" if
            the network itself does.
        shorter: the same fit with a shorter schedule, where this one may go on. It saves time and
            changes no result, so it is no part of the key.
    """

    architecture: Mapping[str, Any]
    recipe: Recipe
    seed: int
    trained: Pixels
    watched: Pixels
    schedule: Schedule | None = None
    start: "Fit | None" = None
    self_trains: bool = False
    taught: bool = False
    logits: Mapping[str, Pixels] = field(default_factory=dict)
    classes: Mapping[str, Pixels] = field(default_factory=dict)
    target: str = ""
    shorter: "Fit | None" = None

    def key(self, source: str) -> str:
        """Return the SHA-256, in hex, of all that decides the result.

        Args:
            source: digest of what it reads (`FitSource.digest`).
        """
        facts = {
            "format": FORMAT,
            "source": source,
            "architecture": dict(self.architecture),
            "recipe": self.recipe.to_dict(),
            "seed": self.seed,
            "schedule": self.schedule,
            "start": None if self.start is None else self.start.key(source),
            "self_trains": self.self_trains,
            "taught": self.taught,
        }
        facts |= {"target": self.target} if self.target else {}
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        groups = {"trained": self.trained, "watched": self.watched}
        groups |= {f"logits {name}": pixels for name, pixels in self.logits.items()}
        groups |= {f"classes {name}": pixels for name, pixels in self.classes.items()}
        for name, pixels in groups.items():
            digest.update(f"{name} {len(pixels)} ".encode())
            digest.update(np.ascontiguousarray(pixels, "<i8").tobytes())
        return digest.hexdigest()

    @property
    def chain(self) -> list["Fit"]:
        """The fits that it begins with, the first one first, and itself."""
        return [*([] if self.start is None else self.start.chain), self]

    def can_read(self, source: "FitSource") -> bool:
        """Return whether a source reads all pixels of the fit, and of those it starts with."""
        groups = [*self.logits.values(), *self.classes.values()]
        return source.reads_all or not (
            self.start or any(source.unlabelled(pixels) is None for pixels in groups)
        )

    @property
    def epochs(self) -> int:
        """The epochs of the training, if it does not end early."""
        schedule = self.schedule or self.recipe.schedule(len(self.trained))
        return schedule.epochs


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit gives, besides its weights.

    Attributes:
        training: its history; None where it failed.
        logits: name -> (n, C) of the pixels that the fit names.
        classes: name -> (n,) predicted class indices, likewise.
        converted: accuracy and mean probability of the true class of the converted network on
            watched pixels; None if the fit names no target.
        seconds: that it took.
        reason: why it failed; "" if it did not.
    """

    training: TrainingResult | None
    logits: Mapping[str, Logits] = field(default_factory=dict)
    classes: Mapping[str, Array] = field(default_factory=dict)
    converted: tuple[float, float] | None = None
    seconds: float = 0.0
    reason: str = ""

    @property
    def lacks_memory(self) -> bool:
        """Whether it failed for want of memory, which may be there another time."""
        return is_out_of_memory(self.reason)

    @property
    def done(self) -> TrainingResult:
        """The history.

        Raises:
            DivergedError: the fit failed.
        """
        if self.training is None:
            raise DivergedError(self.reason)
        return self.training

    @property
    def best(self) -> Epoch:
        """The epoch whose weights are those of the fit."""
        return self.done.history[self.done.best_epoch - 1]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a .npz file."""
        training = self.training
        facts = {
            "history": None if training is None else [asdict(one) for one in training.history],
            "best_epoch": None if training is None else training.best_epoch,
            "stopped_early": None if training is None else training.stopped_early,
            "converted": self.converted,
            "seconds": self.seconds,
            "reason": self.reason,
        }
        arrays: dict[str, NDArray[Any]] = {
            "facts": np.frombuffer(json.dumps(facts).encode(), np.uint8)
        }
        arrays |= {f"logits {name}": values for name, values in self.logits.items()}
        arrays |= {f"classes {name}": values for name, values in self.classes.items()}
        return arrays

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> "Fitted":
        """Return the result whose `arrays` these are.

        Raises:
            KeyError, TypeError, ValueError: they are not those of a result.
        """
        facts = json.loads(arrays["facts"].tobytes())
        training = None
        if facts["history"] is not None:
            epochs = tuple(Epoch(**one) for one in facts["history"])
            training = TrainingResult(epochs, facts["best_epoch"], facts["stopped_early"])
        groups: dict[str, dict[str, NDArray[Any]]] = {"logits": {}, "classes": {}}
        for name in arrays.keys() - {"facts"}:
            kind, _, group = name.partition(" ")
            groups[kind][group] = arrays[name]
        return cls(
            training,
            groups["logits"],
            groups["classes"],
            facts["converted"] and tuple(facts["converted"]),
            facts["seconds"],
            facts["reason"],
        )


class FitSource(Protocol):
    """What fits read: networks as they begin, and pixels. It travels to workers."""

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of all that decides what it gives."""

    @property
    def device(self) -> torch.device:
        """Where networks train."""

    @property
    def one_thread(self) -> bool:
        """Whether a training takes one CPU thread, so that any worker gives the same result."""

    def network(self, fit: Fit) -> nn.Module | Learner:
        """Return the network of a fit, or a learner of weights that many share, before training."""

    def labelled(self, pixels: Pixels) -> LabelledPixels:
        """Return labelled pixels, by their flat indices."""

    def training(self, fit: Fit, network: nn.Module | Learner) -> LabelledPixels:
        """Return what a fit trains on; `network` has the weights that it begins with."""

    def unlabelled(self, pixels: Pixels) -> LabelledPixels | None:
        """Return pixels, without a look at a label; None where it cannot read them."""

    def converted(self, fit: Fit, network: nn.Module) -> AbstractContextManager[nn.Module]:
        """Yield the network of a fit as its target computes it.

        Raises:
            InputError: it cannot be converted.
        """

    @property
    def reads_all(self) -> bool:
        """Whether it can read all pixels, and not only those that fits are trained on."""

    @property
    def patch_bytes(self) -> int:
        """Bytes of the patches that each worker needs."""

    def packed(self) -> "FitSource":
        """Return the source for workers: what fits are trained on, in memory."""


class FitFiles(NamedTuple):
    """The files of a fit in a folder.

    Attributes:
        part: the state of the training while it runs.
        weights: the same after its end.
        result: what it gives.
    """

    part: Path
    weights: Path
    result: Path

    @classmethod
    def of(cls, folder: Path, key: str) -> "FitFiles":
        """Return the files of a key."""
        return cls(*(folder / f"{key}{end}" for end in (".part", ".safetensors", ".npz")))


def run_fit(fit: Fit, source: FitSource, folder: Path, watch: Watch = Watch()) -> Fitted:
    """Train a network, and return what the fit gives; its weights stay in `FitFiles.part`.

    A training whose state is in the folder goes on there. One that diverges, runs out of memory or
    whose recipe does not suit the network has a reason in place of a history.
    """
    started = time.monotonic()
    try:
        threads = one_thread_on_cpu(source.device) if source.one_thread else nullcontext()
        with threads:
            fitted = _fitted(fit, source, folder, watch)
    except (InputError, MemoryError, RuntimeError) as error:
        reason = one_line(error)
        if not isinstance(error, InputError) and not is_out_of_memory(reason):
            raise
        fitted = Fitted(None, reason=reason)
    if source.device.type == "cuda":
        torch.cuda.empty_cache()  # for other processes on this GPU
    return Fitted(**{**vars(fitted), "seconds": time.monotonic() - started})


def _fitted(fit: Fit, source: FitSource, folder: Path, watch: Watch) -> Fitted:
    device = source.device
    network = source.network(fit)
    if fit.start is not None:
        begin_with(network, FitFiles.of(folder, fit.start.key(source.digest)).weights)
    watched = source.labelled(fit.watched)
    part = _prepare_part(fit, source, folder)
    result = train(
        network,
        source.training(fit, network),
        watched,
        fit.recipe,
        seed=fit.seed,
        device=device,
        schedule=fit.schedule,
        watch=watch._replace(checkpoint=part),
    )
    if not fit.target:
        return _predicted(fit, source, network, watched, result)
    assert isinstance(network, nn.Module)
    with source.converted(fit, network) as converted:
        figures = accuracy_and_probability(converted, watched, device)
        return replace(_predicted(fit, source, converted, watched, result), converted=figures)


def _predicted(
    fit: Fit,
    source: FitSource,
    network: nn.Module | Learner,
    watched: LabelledPixels,
    result: TrainingResult,
) -> Fitted:
    """Return the result of a training with the predictions of a network that the fit names."""
    device = source.device
    logits: dict[str, Logits] = {}
    for name, pixels in (dict(fit.logits) | dict(fit.classes)).items():
        assert isinstance(network, nn.Module)
        if (read := source.unlabelled(pixels)) is None:
            continue
        logits[name] = logits_of(network, read, device)
        if not np.isfinite(logits[name]).all():
            raise InputError("the network's logits are not finite")
    classes = {
        name: watched.task.predicted(logits[name]) for name in fit.classes.keys() & logits.keys()
    }
    kept = {name: values for name, values in logits.items() if name in fit.logits}
    return Fitted(result, kept, classes)


def begin_with(network: nn.Module | Learner, weights: Path) -> None:
    """Give a network the weights of the best epoch of another fit of its architecture."""
    learner = OneNetwork(network) if isinstance(network, nn.Module) else network
    learner.take(weights_in(weights))
    if isinstance(network, nn.Module):
        if isinstance(network, Network):
            network.fresh = False
        network.eval()


def weights_in(path: Path) -> dict[str, torch.Tensor]:
    """Return the weights of the best epoch in a file of weights.

    Raises:
        InputError: it is damaged.
        OSError: it is not there.
    """
    _, tensors = read_tensors(path)
    return {n.removeprefix(BEST): one for n, one in tensors.items() if n.startswith(BEST)}


def _prepare_part(fit: Fit, source: FitSource, folder: Path) -> Path:
    """Return the file of the state of a training, which may be that of a shorter fit, or none."""
    files = FitFiles.of(folder, fit.key(source.digest))
    if is_sound(files.part):
        return files.part
    files.part.unlink(missing_ok=True)
    if is_sound(files.weights):  # whose result is not whole
        files.weights.replace(files.part)
    elif fit.shorter is not None:
        before = FitFiles.of(folder, fit.shorter.key(source.digest)).weights
        with suppress(FileNotFoundError), atomic_write(files.part) as path:
            path.write_bytes(before.read_bytes())
        if not is_sound(files.part):
            files.part.unlink(missing_ok=True)
    return files.part


def is_sound(path: Path) -> bool:
    """Return whether a file of weights is there and undamaged."""
    try:
        read_tensors(path)
    except (OSError, InputError):
        return False
    return True
