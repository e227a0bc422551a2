"""The store of fits: one folder, where each result lies under the digest of what decides it.

`KEY.part` is a training under way, and is written at least every five seconds. When it ends,
`KEY.npz` gets its result, and the part becomes `KEY.safetensors`. A result that is absent, damaged
or of other inputs is one case: the fit is done.
"""

import threading
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch

from hytas.errors import InputError
from hytas.files import atomic_write
from hytas.tensors import read_facts
from hytas.train.fit import Fit, FitFiles, FitSource, Fitted, is_sound, run_fit, weights_in
from hytas.train.loop import CHECKPOINT_SECONDS, Watch
from hytas.types import Progress
from hytas.workers import Shared, Workers


class Store:
    """The results of fits in a folder.

    Args:
        folder: of the results; it is made when the first one begins.
        source: what the fits read.
    """

    def __init__(self, folder: Path, source: FitSource) -> None:
        self.folder, self.source = folder, source
        self._sent: tuple[Workers, FitSource, Shared[FitSource]] | None = None

    def files(self, fit: Fit) -> FitFiles:
        """Return the files of a fit."""
        return FitFiles.of(self.folder, fit.key(self.source.digest))

    def get(self, fit: Fit, *, weights: bool = False) -> Fitted | None:
        """Return the result of a fit, or None if it is to be done.

        Args:
            weights: whether those are needed, too.
        """
        files = self.files(fit)
        try:
            content = BytesIO(files.result.read_bytes())  # numpy leaves a damaged file open
            with np.load(content, allow_pickle=False) as file:
                fitted = Fitted.of({name: file[name] for name in file.files})
        except (OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
            return None
        groups = fitted.logits.keys() | fitted.classes.keys()
        whole = groups == fit.logits.keys() | fit.classes.keys()
        if weights:
            whole = whole and is_sound(files.weights)
        return fitted if whole or fitted.reason else None

    def weights(self, fit: Fit) -> dict[str, torch.Tensor]:
        """Return the weights of a fit that has been done, by their names.

        Raises:
            InputError: they are damaged.
            OSError: they are not there.
        """
        return weights_in(self.files(fit).weights)

    def one(self, fit: Fit, watch: Watch = Watch()) -> Fitted:
        """Return the result of a fit, and let its weights be there; it is done in this process."""
        fitted = self.get(fit, weights=True)
        return complete(fit, self.source, self.folder, watch) if fitted is None else fitted

    def run(
        self,
        fits: Sequence[Fit],
        workers: Workers | None = None,
        *,
        sent: FitSource | None = None,
        weights: bool = False,
        watch: Watch = Watch(),
        progress: Progress | None = None,
    ) -> Iterator[tuple[int, Fitted]]:
        """Do the fits that are to be done; yield the place and the result of each as they end.

        A fit that lacks memory beside others on this machine is repeated alone, after all others.
        Such a failure is not kept: there may be memory another time.

        Args:
            fits: independent of each other; those that they start with are done, too.
            workers: that do them; None is this process.
            sent: what workers get in place of the source. Where it cannot read the pixels that a
                result is about, this process completes the result.
            weights: whether the weights of each fit are needed, too.
            watch: follows a fit in this process.
            progress: is called every few seconds with the progress of all fits together.

        Raises:
            OSError: a worker was lost.
        """
        left = []
        for place, fit in enumerate(fits):
            if (fitted := self.get(fit, weights=weights)) is None:
                left.append(place)
            else:
                yield place, fitted
        if not left:
            return
        missing, again = [fits[place] for place in left], []
        with self._reported(missing, progress):
            if workers is None or not workers.elsewhere:
                for place in left:
                    yield place, self.one(fits[place], watch)
                return
            source = sent or self.source
            done = self._worked(missing, workers, source)
            for place, fitted in zip(left, done, strict=True):
                if fitted.lacks_memory and workers.shares_memory:
                    again.append(place)
                else:
                    whole = fits[place].can_read(source) or fitted.reason
                    yield place, fitted if whole else self.one(fits[place], watch)
            for place in again:
                yield place, self.one(fits[place], watch)

    def _worked(self, fits: Sequence[Fit], pool: Workers, source: FitSource) -> Iterator[Fitted]:
        """Do fits on workers, as far as their source can read what the fits need."""
        fits = [fit if fit.can_read(source) else fit.chain[0] for fit in fits]
        if self._sent is None or self._sent[:2] != (pool, source):
            self._sent = pool, source, pool.share(source)
        shared = self._sent[-1]
        if pool.sees_files:
            jobs = ((shared, fit, self.folder.absolute()) for fit in fits)
            yield from pool.run(_complete_here, jobs, len(fits))
            return
        given = ((shared, fit, self._parcel(fit)) for fit in fits)
        self.folder.mkdir(exist_ok=True)
        for parcel in pool.run(_complete_away, given, len(fits)):
            for name, content in parcel.files.items():
                with atomic_write(self.folder / name) as path:
                    path.write_bytes(content)
            yield parcel.fitted

    def _parcel(self, fit: Fit) -> dict[str, bytes]:
        """Return the files that a fit may go on from, for a worker that does not see them."""
        related = [*fit.chain, *([fit.shorter] if fit.shorter else [])]
        paths = [path for one in related for path in self.files(one)]
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def keep_weights(self, fits: Iterable[Fit] = ()) -> None:
        """Remove the weights of all fits but these, the states of those under way, half files."""
        kept = {path for fit in fits for one in fit.chain for path in self.files(one)}
        for path in self.folder.glob("*"):  # none without the folder
            of_weights = path.suffix in (".part", ".safetensors")
            if path.name.startswith(".") or (of_weights and path not in kept):
                path.unlink(missing_ok=True)

    def under_way(self, fit: Fit) -> tuple[int, int]:
        """Return the pixels that a fit has trained on, once for each epoch, and those of all."""
        done = total = 0
        for one in fit.chain:
            files, epochs = self.files(one), one.epochs
            total += epochs * len(one.trained)
            try:
                done += len(read_facts(files.part)["history"]) * len(one.trained)
            except (OSError, InputError, KeyError, TypeError, ValueError):
                done += epochs * len(one.trained) * files.result.exists()
        return done, total

    @contextmanager
    def _reported(self, fits: Sequence[Fit], progress: Progress | None) -> Iterator[None]:
        if progress is None:
            yield
            return
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(CHECKPOINT_SECONDS):
                progress(*map(sum, zip(*map(self.under_way, fits), strict=True)))

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


@contextmanager
def open_store(folder: Path | None, source: FitSource) -> Iterator[Store]:
    """Yield a store in a folder, or, without one, in a temporary folder."""
    with TemporaryDirectory() if folder is None else nullcontext(folder) as path:
        yield Store(Path(path), source)


def complete(fit: Fit, source: FitSource, folder: Path, watch: Watch = Watch()) -> Fitted:
    """Do a fit after those that it starts with, and keep what it gives in the folder.

    A failure of one of those is its own.
    """
    store = Store(folder, source)
    folder.mkdir(exist_ok=True)
    if fit.start is not None and (before := store.one(fit.start, watch)).reason:
        return before
    files, fitted = store.files(fit), run_fit(fit, source, folder, watch)
    if fitted.lacks_memory or not watch.processes.leads:
        return fitted
    with atomic_write(files.result) as path, path.open("wb") as file:
        np.savez(file, **fitted.arrays())  # type: ignore[arg-type] # of numpy's stubs
    if fitted.reason:
        files.part.unlink(missing_ok=True)
    else:
        try:
            files.part.replace(files.weights)  # a crash may undo it: then it is done again
        except FileNotFoundError:  # another process did the same fit, and was first
            if not is_sound(files.weights):
                raise
    return fitted


class _Parcel(NamedTuple):
    fitted: Fitted
    files: dict[str, bytes]


def _complete_here(shared: Shared[FitSource], fit: Fit, folder: Path) -> Fitted:
    return complete(fit, shared.get(), folder)


def _complete_away(shared: Shared[FitSource], fit: Fit, files: dict[str, bytes]) -> _Parcel:
    """Do a fit in a folder of its own, and return the files that are new."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for each, content in files.items():
            (folder / each).write_bytes(content)
        fitted = complete(fit, shared.get(), folder)
        new = (path for path in folder.iterdir() if path.is_file())
        return _Parcel(fitted, {one.name: one.read_bytes() for one in new})
