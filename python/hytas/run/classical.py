"""Fits of an SVM and a random forest on the pixels of a run, in seconds.

They see single spectra. A run compares its winner with them, and its race asks them for their vote.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from hytas.data import LabelledData, Scene, Split
from hytas.errors import InputError
from hytas.references import Fit, ReferenceSettings, bounded_split
from hytas.run.context import Run
from hytas.run.prepared import Pixels
from hytas.workers import Shared, open_workers

CLASSICAL = ("svm", "rf")
MOST_TRAIN = 1500  # an SVM takes at most about half a minute, by the square of the pixels
USUAL_BANDS = 200  # of a pixel; of images with more values, fewer are taken
MOST_VALUES = 32 * 32 * 3
"""Values of an image, at most, that an SVM and a forest are fitted on."""

How = Callable[[LabelledData, Split, ReferenceSettings, str], Fit]
"""`hytas.references.fit_method`, or the same with smoothing."""
Fits = Callable[[How, Sequence[tuple[str, Split]]], Iterator[Fit]]
"""How to fit, names of methods and splits -> what each predicts, in their order."""


@contextmanager
def open_fits(run: Run) -> Iterator[Fits]:
    """Open the workers of the run, if it names some, else this process; yield what fits there."""
    scene, settings = run.context.data.scene, ReferenceSettings.of(run.context.config)
    named = 1 if run.workers is None else run.workers
    sent = scene.cube.nbytes if isinstance(scene, Scene) else 0
    with open_workers(named, sent_bytes=sent) as pool:
        shared = pool.share(scene)

        def fits(how: How, wanted: Sequence[tuple[str, Split]]) -> Iterator[Fit]:
            jobs = ((how, shared, split, settings, name) for name, split in wanted)
            return pool.run(_fit, jobs, len(wanted))

        yield fits


def _fit(
    how: How, shared: Shared[LabelledData], split: Split, settings: ReferenceSettings, name: str
) -> Fit:
    return how(shared.get(), split, settings, name)


def words(run: Run) -> str:
    """Return what the run classifies."""
    return "pixels" if run.context.data.scene.has_map else "images"


def check_size(run: Run) -> None:
    """Refuse images that the methods take too long for.

    Raises:
        InputError: the images have too many values.
    """
    if (values := _values(run)) > MOST_VALUES:
        side = run.context.data.shape.side
        raise InputError(
            f"images of {side} x {side} pixels have {values} values; SVM and random forest are "
            f"fitted on {MOST_VALUES} at most"
        )


def _values(run: Run) -> int:
    """Return the values of an image; 0 for a scene, whose pixels have few."""
    data = run.context.data
    return 0 if data.scene.has_map else data.shape.side**2 * data.shape.bands


def bounded(run: Run, split: Split, most_test: int) -> Split:
    """Return the split with so few samples that a fit takes about half a minute."""
    longer = max(1.0, _values(run) / USUAL_BANDS)
    return bounded_split(run.context.data.scene, split, int(MOST_TRAIN / longer**0.5), most_test)


def fold_of(run: Run, learnt: Pixels, asked: Pixels) -> Split:
    """Return the split that fits a method to some labelled pixels, and predicts others."""
    split = run.context.data.split
    fold = replace(split, train=learnt, validation=split.validation[:0], test=asked)
    return bounded(run, fold, len(asked))
