"""The facts of a report: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.report.pixels import ReportPixels
from hytas.report.samples import ReportImages
from hytas.results import RunResults
from hytas.spaces.costs import LayerCost


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of a search, in asking order.

    Attributes:
        ids: of each; the numbers of the store.
        genes: gene -> text of each.
        costs: cost -> (n,) numbers.
        scores: score -> (n,) numbers, NaN where it failed; the one that led the search is first.
        winner: place of the winner among them, or None.
    """

    ids: Sequence[int]
    generations: Sequence[int]
    genes: Mapping[str, Sequence[str]]
    costs: Mapping[str, NDArray[np.float64]]
    scores: Mapping[str, NDArray[np.float64]]
    winner: int | None


@dataclass(frozen=True, eq=False)
class Finalist:
    """A candidate that raced, with one of the recipes.

    Attributes:
        place: among the candidates.
        rungs: steps -> figures on validation pixels, and "score", their summary; none in
            a rung whose training failed.
        reason: why it failed; empty if it did not.
        folds: that validated its longest training.
    """

    place: int
    recipe: str
    won: bool
    rungs: Mapping[int, Mapping[str, float]]
    seconds: float
    reason: str
    folds: int = 1


@dataclass(frozen=True, eq=False)
class RunFacts:
    """The facts of a run; those that are not there yet are empty or None.

    Attributes:
        path: of its folder, as the user gave it, for commands; empty means `name`.
        class_ids: of the classes, as in the label file; empty means 1, 2, ...
        config: settings by name, plain values of JSON.
        bounds: (cost, lower, upper) of the budget.
        finalists: of the race, the best first.
        sizes: the best finalist of each size, the largest first: the fields of
            `hytas.race.SizeRow` by name; empty where there was no race.
        smaller: line on the smallest network that is not below the winner, or "".
        preset: name of the recipe of the final training, or "".
        ranking: name in `hytas.race.RANKINGS`.
        samples: of the test images, in a run on images.
        curves: seed -> history of its final training, of further seeds.
        times: stage -> "seconds", "cpu_seconds", "gpu_seconds", "ended" and "command".
        cost: seconds in all (`hytas.run.times.run_cost`).
        model: "name", "bytes" and "sha256" of the exported file.
        split: digest of the training, validation and test pixels, or "".
        differences: to the first run of the report, in settings.
        explanation: what the network looks at, if it was measured.
        pairs: name of a continuous target -> observed and predicted values of test samples, and
            their columns and rows (2, n) in a scene.
    """

    name: str
    config: Mapping[str, Any]
    versions: Mapping[str, str]
    fingerprint: str
    metrics: Mapping[str, Any] | None = None
    architecture: Mapping[str, Any] | None = None
    costs: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    bounds: Sequence[tuple[str, int, int]] = ()
    candidates: Candidates | None = None
    finalists: Sequence[Finalist] = ()
    sizes: Sequence[Mapping[str, Any]] = ()
    smaller: str = ""
    preset: str = ""
    ranking: str = "accuracy"
    layers: Sequence[LayerCost] = ()
    pixels: ReportPixels | None = None
    samples: ReportImages | None = None
    curves: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    times: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cost: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] | None = None
    split: str = ""
    differences: Sequence[str] = ()
    explanation: "Section | None" = None
    pairs: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    path: str = ""
    scene: str = ""
    class_ids: Sequence[int] = ()

    @property
    def results(self) -> RunResults | None:
        """Return the results of the final training, or None."""
        return None if self.metrics is None else RunResults.of(self.metrics)

    @property
    def of_values(self) -> bool:
        """Whether its model predicts values."""
        return self.results is not None and self.results.of_values

    @property
    def words(self) -> str:
        """The samples of the run: "pixels" or "images"."""
        return "pixels" if self.samples is None else "images"


@dataclass(frozen=True)
class FactTable:
    """A table of texts; the first column names the rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A chart: its title, its SVG, a description, and whether it needs all the width."""

    title: str
    svg: str
    about: str
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        key: short name, for links.
        sentences: what it says; the first is the verdict.
        notes: what differs or is missing.
    """

    key: str
    title: str
    sentences: Sequence[str] = ()
    grids: Sequence[FactTable] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
