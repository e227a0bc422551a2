"""The results of a run in one view, which the console, the page and the JSON form show.

A run writes them as `metrics.json`. Whoever shows them reads a `RunResults`, so that no reader
looks for keys of its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self, TypeVar

from hytas.errors import InputError, one_line

AccuracyReport = Mapping[str, Any]
"""An accuracy report of `hytas.metrics.accuracy_report`."""
OF_CLASSES = {"OA", "AA", "kappa", "ECE", "ECE_before"}
"""Figures of such a report that every model of classes has."""
WINNER = "winner"
RESULTS = (
    *("test", "seeds", "references", "calibration", "smoothed", "smoothing", "self_training"),
    *("class_prior", "mean", "parity"),
)
"""Parts of `metrics.json` that the JSON form of an outcome repeats."""


def _both(pixels: int, without: float | None, with_it: float | None, words: str) -> list[str]:
    if without is None or with_it is None:
        return []
    figures = words.format(f"{without:.4f}", f"{with_it:.4f}")
    return [f"OA on {pixels:,} validation pixels {figures}"]


class Decision:
    """A dataclass of facts on a decision."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


D = TypeVar("D", bound=Decision)


@dataclass(frozen=True)
class Calibration(Decision):
    """The temperature of a model, and how it was fitted.

    Attributes:
        temperature: divisor of the logits; 1 if the model is not calibrated.
        pixels: held-out pixels that it was fitted on.
        folds: networks that were trained for it, each without its held-out pixels; 0 if the model
            itself was trained without validation pixels.
        ECE_before, ECE_after: expected calibration error on these pixels, without and with it.
        reason: why the model is not calibrated; empty if it is.
        unlabelled: pixels without a label whose mean confidence the temperature was fitted to; 0 if
            it was fitted on the held-out pixels.
        agreement: share of these at which two networks agree, which the confidence meets; or None.
    """

    temperature: float = 1.0
    pixels: int = 0
    folds: int = 0
    ECE_before: float | None = None
    ECE_after: float | None = None
    reason: str = ""
    unlabelled: int = 0
    agreement: float | None = None

    def describe(self) -> str:
        """Return one line for the user."""
        if self.reason or self.ECE_before is None or self.ECE_after is None:
            return "the confidence is not calibrated" + (f": {self.reason}" if self.reason else "")
        on = f"on {self.pixels} validation pixels"
        where = f"{on}: temperature {self.temperature:g}, ECE there"
        if self.agreement is not None:
            where = (
                f"on {self.unlabelled} unlabelled pixels, at {self.agreement:.1%} of which the "
                f"networks of two folds agree: temperature {self.temperature:g}, ECE {on}"
            )
        errors = f"{self.ECE_before:.3f} before and {self.ECE_after:.3f} after"
        return f"confidence calibrated {where} {errors}{self.why_larger}"

    @property
    def why_larger(self) -> str:
        """Return a clause if the error on held-out pixels grew, though the confidence is better."""
        if not self.unlabelled or (self.ECE_after or 0) <= (self.ECE_before or 0):
            return ""
        return "; larger there, as confidence is fitted to unlabelled pixels"


@dataclass(frozen=True)
class SmoothingChoice(Decision):
    """How maps are smoothed, and why.

    Attributes:
        method: "guided" or "none".
        pixels: held-out pixels that were compared.
        OA_raw, OA_smoothed: accuracy on them of networks that were not trained on them; None if
            something else decided.
        reason: what decided if the accuracies alone did not; else empty.
        temperature: of smoothed probabilities; 1 with too few pixels.
        ECE_before, ECE_after: expected calibration error of smoothed probabilities on these pixels,
            without and with the temperature; None with too few pixels.
    """

    method: str
    pixels: int = 0
    OA_raw: float | None = None
    OA_smoothed: float | None = None
    reason: str = ""
    temperature: float = 1.0
    ECE_before: float | None = None
    ECE_after: float | None = None

    def describe(self) -> str:
        """Return one line for the user."""
        figures = _both(self.pixels, self.OA_raw, self.OA_smoothed, "{} raw and {} smoothed")
        why = "; ".join([*([self.reason] if self.reason else []), *figures])
        return f"maps are {'smoothed' if self.method == 'guided' else 'not smoothed'}: {why}"


NETWORK = "network"
"""The member of a mean that the race chose."""


@dataclass(frozen=True)
class MeanChoice(Decision):
    """The networks whose probabilities a model averages, and why.

    Attributes:
        members: "network", and fits of networks in closed form (`hytas.spaces.names.FITS`).
        pixels: held-out pixels that were compared.
        losses: members, joined by "+" -> mean negative log likelihood of these pixels in the map
            that would ship, raw or smoothed.
        reason: why nothing was compared; else empty.
    """

    members: tuple[str, ...]
    pixels: int = 0
    losses: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    def describe(self) -> str:
        """Return one line for the user."""
        shipped = " + ".join(self.members)
        what = f"the model is the mean of {shipped}" if self.members[1:] else f"{shipped} alone"
        if self.reason:
            return f"{what}: {self.reason}"
        told = dict.fromkeys(("+".join(self.members), next(iter(self.losses)), NETWORK))
        losses = ", ".join(f"{name} {self.losses[name]:.3f}" for name in told)
        return f"{what}; loss of {self.pixels} validation pixels: {losses}"


@dataclass(frozen=True)
class SelfTraining(Decision):
    """Whether a model is trained further with unlabelled pixels, and why.

    Attributes:
        pixels: held-out pixels that were compared.
        OA_before, OA_after: accuracy on them without and with it, of maps as the run makes them.
        reason: why not, if the accuracies alone do not say it; else empty.
    """

    used: bool
    pixels: int = 0
    OA_before: float | None = None
    OA_after: float | None = None
    reason: str = ""

    def describe(self) -> str:
        """Return one line for the user."""
        figures = _both(self.pixels, self.OA_before, self.OA_after, "{} without and {} with it")
        why = "; ".join([*figures, *([self.reason] if self.reason else [])])
        return f"self-training is {'used' if self.used else 'not used'}: {why}"


@dataclass(frozen=True)
class ClassPrior(Decision):
    """Whether a model assumes the class shares around its labels, and why.

    Attributes:
        pixels: held-out pixels that were compared.
        unlabelled: pixels around the labels whose shares were estimated.
        labels, scene: class shares of the training pixels, and of these together with the pixels
            around them; empty if they were not estimated.
        distance: of both, total variation.
        error: the same of the estimated shares of held-out pixels and their true ones.
        strength: exponent of the ratio of both by which the model weights its classes.
        OA_before, OA_after: accuracy on the held-out pixels without and with it, of the map as it
            was smoothed before.
        reason: why not; else empty.
    """

    used: bool
    pixels: int = 0
    unlabelled: int = 0
    labels: Sequence[float] = ()
    scene: Sequence[float] = ()
    distance: float = 0.0
    error: float = 0.0
    strength: float = 0.0
    OA_before: float | None = None
    OA_after: float | None = None
    reason: str = ""

    @property
    def log_factors(self) -> list[float]:
        """Logarithm of the factor of each class: `strength` times that of the ratio of both."""
        pairs = zip(self.labels, self.scene, strict=True)
        return [self.strength * math.log(after / before) for before, after in pairs]

    @property
    def assumed(self) -> list[float]:
        """Class shares that the model assumes: those of the labels, if it is not used."""
        pairs = zip(self.labels, self.log_factors, strict=True)
        weighted = [one * math.exp(factor) for one, factor in pairs]
        return [one / sum(weighted) for one in weighted]

    def describe(self) -> str:
        """Return one line for the user."""
        shares = ""
        if self.unlabelled:
            shares = (
                f"; those of {self.unlabelled} pixels around them are {self.distance:.2f} away, "
                f"and their estimate errs by {self.error:.2f}"
            )
        if not self.used:
            return f"the model keeps the class shares of the labels: {self.reason}{shares}"
        part = "" if self.strength == 1 else f" with exponent {self.strength:g}"
        return (
            f"the model assumes the class shares around the labels{part}: OA on {self.pixels} "
            f"validation pixels, which have the shares of the labels, {self.OA_before:.4f} without "
            f"and {self.OA_after:.4f} with them{shares}"
        )


@dataclass(frozen=True, eq=False)
class MethodResult:
    """The winner, or a reference method, on the same pixels.

    Attributes:
        name: of the method, or `WINNER`.
        held_out: accuracy on held-out pixels; None if there are none.
        held_out_smoothed: the same in a smoothed map; None without maps.
        test: accuracy report on the test pixels.
        smoothed: the same with smoothing, or None.
        scenes: of each scene "name", "learnt", and "test", its accuracy report or None.
        pixels, of_pixels: pixels that it was fitted on, of those that it could be fitted on; None
            for the winner.
    """

    name: str
    title: str
    held_out: float | None
    held_out_smoothed: float | None
    test: AccuracyReport
    smoothed: AccuracyReport | None
    scenes: Sequence[Mapping[str, Any]] = ()
    pixels: int | None = None
    of_pixels: int | None = None

    @property
    def best_map(self) -> AccuracyReport:
        """Return the accuracy report of its better map, smoothed or not."""
        return max(self.test, self.smoothed or self.test, key=lambda report: report.get("OA", 0))


@dataclass(frozen=True, eq=False)
class Comparison:
    """The winner next to the reference methods.

    Attributes:
        reason: why there are no reference methods; else empty.
        rows: the winner first; empty without reference methods.
        pixels: held-out pixels that all were compared on.
        below: titles of the methods that lead on held-out pixels by more than chance.
        verdict: one line on the held-out pixels.
    """

    reason: str = ""
    rows: Sequence[MethodResult] = ()
    pixels: int = 0
    below: Sequence[str] = ()
    verdict: str = ""


@dataclass(frozen=True, eq=False)
class RunResults:
    """What a finished run reached; every figure that its readers show.

    Attributes:
        unit: what is classified: "pixels", "images" or "spectra".
        test: accuracy report of `model.onnx` on the test pixels, with "ECE_before".
        smoothed: the same with smoothed probabilities, whether maps are smoothed or not; None for
            images.
        scenes, scenes_smoothed: of each scene "name", "learnt", and "test", its accuracy report.
        seeds: of several final trainings "of", the seeds, and for each figure "mean", "std" and
            "values"; also in "smoothed" and "per_class". Empty for one training.
        calibration, smoothing, self_training, class_prior, mean: the decisions of the final
            training.
        update: for a run that began with a model "from", "scenes" (each with "before" and "after")
            and "reason"; else None.
        comparison: with the reference methods; None if the run fitted none.
        split: counts and overlap of training and test pixels.
    """

    unit: str
    test: AccuracyReport
    smoothed: AccuracyReport | None
    scenes: Sequence[Mapping[str, Any]]
    scenes_smoothed: Sequence[Mapping[str, Any]]
    seeds: Mapping[str, Any]
    calibration: Calibration
    smoothing: SmoothingChoice | None
    self_training: SelfTraining | None
    class_prior: ClassPrior | None
    mean: MeanChoice | None
    update: Mapping[str, Any] | None
    comparison: Comparison | None
    split: Mapping[str, Any]

    @property
    def of_values(self) -> bool:
        """Whether its model predicts values."""
        return "per_target" in self.test

    training: Mapping[str, Any]
    values: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Self:
        """Read the content of `metrics.json`.

        Raises:
            InputError: it is not the metrics of a run.
        """
        try:

            def decision(kind: type[D], name: str) -> D | None:
                facts = metrics.get(name)
                return None if facts is None else kind(**facts)

            return cls(
                metrics.get("unit", "pixels"),
                metrics["test"],
                metrics.get("smoothed"),
                metrics.get("scenes") or [],
                metrics.get("scenes_smoothed") or [],
                metrics.get("seeds") or {},
                Calibration(**metrics.get("calibration", {})),
                decision(SmoothingChoice, "smoothing"),
                decision(SelfTraining, "self_training"),
                decision(ClassPrior, "class_prior"),
                decision(MeanChoice, "mean"),
                metrics.get("further"),
                _comparison(metrics),
                metrics.get("split", {}),
                metrics["training"],
                metrics,
            )
        except (AttributeError, LookupError, TypeError) as error:
            raise InputError(
                "metrics.json", rule=f"not the metrics of a run ({one_line(error)})"
            ) from None

    @property
    def is_smoothed(self) -> bool:
        """Return whether the maps of the run are smoothed."""
        chosen = self.smoothing is not None and self.smoothing.method == "guided"
        return chosen and self.smoothed is not None

    @property
    def of_map(self) -> AccuracyReport:
        """Return the accuracy report of the map that the run makes, smoothed or not."""
        return self.smoothed if self.is_smoothed and self.smoothed is not None else self.test

    def decisions(self) -> list[str]:
        """Return one line for each decision of the final training that pixels were compared for."""
        lines = [] if self.mean is None or not self.mean.pixels else [self.mean.describe()]
        lines += [] if self.smoothing is None else [self.smoothing.describe()]
        if self.self_training is not None and self.self_training.pixels:
            lines.append(self.self_training.describe())
        if self.class_prior is not None and self.class_prior.unlabelled:
            lines.append(self.class_prior.describe())
        return [*lines, self.calibration.describe()]

    @property
    def further(self) -> dict[str, float]:
        """Further figures of the map that the run makes, which its task adds."""
        return {
            name: value
            for name, value in self.of_map.items()
            if isinstance(value, float) and name not in OF_CLASSES
        }

    @property
    def headline(self) -> str:
        """Return the accuracy of the map that the run makes, or the mean R2 of its targets."""
        test = self.of_map
        if "per_target" in test:
            count = len(test["per_target"])
            what = "R2" if count == 1 else f"mean R2 of {count} targets"
            shown = "-" if test["R2"] is None else f"{test['R2']:.3f}"
            return f"{what} {shown} on {test['pixels']:,} test {self.unit}"
        what = f"accuracy of the {'smoothed map' if self.is_smoothed else 'map'}"
        if self.unit != "pixels":
            what = "accuracy"
        spread = ""
        if self.seeds:
            over = self.seeds.get("smoothed", self.seeds) if self.is_smoothed else self.seeds
            figures = f"{over['OA']['mean']:.4f} +- {over['OA']['std']:.4f}"
            spread = f"; {len(self.seeds['of'])} seeds {figures}"
        further = "".join(f"; {name} {value:.4f}" for name, value in self.further.items())
        mean = f"(AA {test['AA']:.4f}{spread}{further})"
        return f"{what} {test['OA']:.4f} on {test['pixels']:,} test {self.unit} {mean}"

    @property
    def lead(self) -> tuple[float, str] | None:
        """Return the points above the best map of the reference methods and its title, or None."""
        rows = self.comparison.rows[1:] if self.comparison else ()
        if not rows or "OA" not in self.of_map:
            return None
        best = max(rows, key=lambda row: float(row.best_map["OA"]))
        smoothed = "" if best.best_map is best.test else ", smoothed"
        return 100 * (self.of_map["OA"] - best.best_map["OA"]), best.title + smoothed

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON form of an outcome tells of the results."""
        return {name: self.values.get(name) for name in RESULTS} | {"decisions": self.decisions()}


def short_title(title: str) -> str:
    """Return the name of a method without what it is fitted on: "SVM (RBF) on spectra" is "SVM"."""
    return title.partition(" on ")[0].partition(" (")[0]


def _comparison(metrics: Mapping[str, Any]) -> Comparison | None:
    references = metrics.get("references")
    if references is None:
        return None
    validation = references["validation"]
    if not references["methods"] or validation is None:
        return Comparison(references["reason"])
    methods = references["methods"]
    winner = _method(WINNER, WINNER, metrics, validation)
    others = [
        replace(
            _method(name, one["title"], one, validation),
            pixels=one["pixels"],
            of_pixels=one["of_pixels"],
        )
        for name, one in methods.items()
    ]
    return Comparison(
        references["reason"],
        [winner, *others],
        validation["pixels"],
        [methods[name]["title"] for name in validation["below"]],
        validation["verdict"],
    )


def _method(
    name: str, title: str, reached: Mapping[str, Any], validation: Mapping[str, Any]
) -> MethodResult:
    return MethodResult(
        name,
        title,
        (validation.get("OA") or validation.get("R2") or {}).get(name),
        validation.get("smoothed", {}).get(name),
        reached["test"],
        reached.get("smoothed"),
        reached.get("scenes") or [],
    )
