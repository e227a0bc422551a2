"""The outcome of a run, read from its folder, and the check of an architecture for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hytas.data import Spectra
from hytas.decide.members import with_members
from hytas.errors import InputError
from hytas.metrics import FIGURES
from hytas.results import RESULTS, RunResults
from hytas.run.context import Run, RunContext
from hytas.run.folder import ARTEFACTS, if_there, read_json
from hytas.run.times import run_cost
from hytas.spaces import parse_budget
from hytas.spaces.genes import gene_text
from hytas.spaces.names import LINEAR_SPACE


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
        bounds: (cost, lower, upper) of the budget; empty without one.
        budget: canonical text, or None.
        metrics: of `metrics.json`; None if the run stopped after the search.
        files: files of the folder for the user, with their sizes in bytes.
        cost: seconds of each stage and in all (`hytas.run.times.run_cost`).
    """

    architecture: dict[str, Any]
    costs: dict[str, int]
    bounds: list[tuple[str, int, int]]
    budget: str | None
    metrics: dict[str, Any] | None
    files: dict[str, int]
    folder: Path
    cost: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """Return the time of each stage, in the order in which they were done."""
        return {name: one["seconds"] for name, one in self.cost.get("stages", {}).items()}

    @property
    def results(self) -> RunResults | None:
        """Return the results of the final training; None if the run stopped after the search."""
        return None if self.metrics is None else RunResults.of(self.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        results = dict.fromkeys(RESULTS) if self.results is None else self.results.to_dict()
        return {
            "architecture": self.architecture,
            "costs": self.costs,
            "budget": self.budget,
            **results,
            "cost": self.cost,
            "folder": str(self.folder),
            "files": self.files,
        }


def outcome_of(run: Run, architecture: dict[str, Any]) -> Outcome:
    """Return the outcome of a run that has ended."""
    context, folder = run.context, run.folder
    files = [each.path(folder.path) for each in ARTEFACTS.values() if each.listed]
    metrics = if_there(folder.metrics, read_json)
    if metrics is not None and (mean := metrics.get("mean")):
        architecture = with_members(architecture, mean["members"])
    cost = run_cost(folder)
    test = {} if metrics is None else metrics["test"]
    run.report.end(
        {f"test/{name}": float(test[name]) for name in FIGURES if name in test}
        | {f"cost/{name}": float(cost[name]) for name in ("cpu_seconds", "gpu_seconds")}
    )
    return Outcome(
        architecture,
        context.costs(architecture),
        list(parse_budget(context.config.budget or ()).bounds),
        context.config.budget,
        metrics,
        {file.name: file.stat().st_size for file in files if file.is_file()},
        folder.path,
        cost,
    )


def check_given(
    context: RunContext, architecture: Mapping[str, Any], source: str = "architecture"
) -> None:
    """Refuse genes that the space does not have; `source` is their name in messages.

    Raises:
        InputError: naming the gene, its value and the rule.
    """
    if "space" not in architecture:
        raise InputError(
            source,
            rule='has no "space": an architecture names its space next to its genes, as a run\'s '
            "architecture.json does",
        )
    if architecture["space"] not in (context.space.name, LINEAR_SPACE):
        rule = f"has space {architecture['space']!r}; the run searches {context.space.name}"
        raise InputError(source, rule=rule)
    side = architecture.get("patch", 1)
    if isinstance(context.data.scene, Spectra) and side != 1:
        rule = f"has patch {side}: a table of spectra has no neighbours"
        raise InputError(source, rule=rule, hint="take an architecture with patch 1")
    try:
        context.costs(architecture)
    except (ValueError, TypeError, OverflowError) as error:
        text = " ".join(str(error).split())
        why = text.removeprefix("genome: ").removeprefix("architecture: ")
        raise InputError(source, rule=why) from None


def describe_architecture(architecture: dict[str, Any]) -> str:
    """Return the genes on one line, with lists such as 3-4-4."""
    return " ".join(
        f"{value}:" if name == "space" else f"{name} {gene_text(value)}"
        for name, value in architecture.items()
    )
