"""Search the search space: supernets say which choices of which genes to add and to drop."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hytas._engine import Feasible, SearchSpace
from hytas.data import LabelledData
from hytas.errors import InputError
from hytas.files import is_same_file, write_text
from hytas.run.config import RunConfig
from hytas.run.context import Run, RunContext, open_run
from hytas.run.folder import read_json, write_json
from hytas.run.progress import SILENT, Report
from hytas.run.supernet import check_supernet, load_supernet, score_with, supernet_stage
from hytas.spaces import open_space
from hytas.spaces.keys import stable_hash
from hytas.spaces.opening import with_values
from hytas.supernet import Supernet
from hytas.supernet.space_quality import (
    EvolutionSettings,
    SpaceQuality,
    SpaceStep,
    choice_errors,
    propose,
    space_quality,
)

TRIED = 500
"""Draws among which a new choice must occur, for it to be possible under the budget."""
BUILT = 3
"""Networks with a new choice that must be there."""


@dataclass(frozen=True)
class Evolved:
    """A space that was searched for.

    Attributes:
        before: E and T of the space that it comes from.
        after: of itself.
        at_random: of that space, pruned at random to as many architectures inside the budget; None
            where the evolved space has not fewer.
        steps: of each round, what happened to which genes.
    """

    path: Path
    before: SpaceQuality
    after: SpaceQuality
    at_random: SpaceQuality | None
    steps: list[list[SpaceStep]]


def evolve_space(
    config: RunConfig,
    scene: LabelledData,
    out: str | Path,
    *,
    rounds: int,
    settings: EvolutionSettings,
    device: str = "auto",
    report: Report = SILENT,
) -> Evolved:
    """Write a space file whose choices suit a scene and a budget better than those of another.

    A round trains a supernet in the space, estimates by it what each choice has to do with the
    error, and changes the choices. It ends where a round changes nothing, or after `rounds`. What
    is done lies in a folder next to `out`, from which the same call goes on.

    Source: S3 (Chen et al., NeurIPS 2021).

    Args:
        config: with the space, a budget and `supernet_settings`.
        scene: to learn from; its test pixels are not looked at.
        out: the space file.
        rounds: at most.
        device: cpu, cuda or auto.

    Raises:
        InputError: bad configuration, or the folder belongs to another run.
        OSError: the files cannot be written.
    """
    out = Path(out)
    if out.suffix != ".json":
        raise InputError("out", out, "is a space file; its name must end in .json")
    if rounds < 1:
        raise InputError("steps", rounds, "must be 1 or more")
    if is_same_file(out, Path(config.space)):
        raise InputError("out", out, "is the space that evolves", "choose another name")
    with open_run(out.with_suffix(".rounds"), config, scene, device, report, check_supernet) as run:
        _same_settings(run.folder.path, settings)
        most = "one round" if rounds == 1 else f"at most {rounds} rounds"
        report.line(f"{most} of {settings.subnets} subnets")
        space, steps, errors = config.space, [], []
        for number in range(rounds):
            error, taken = _round(run, space, f"round-{number + 1}", settings)
            errors.append(error)
            if not taken:
                break
            steps.append(taken)
            space = _write_space(run.folder.path, space, f"round-{number + 2}", taken)
        settled = len(errors) > len(steps)
        name = f"round-{len(steps) + 1}"
        after = errors[-1] if settled else _estimate(run, space, name, settings).quality
        at_random = _at_random(run, space, settings)
        about = _history(config, scene, errors[0], after, at_random, steps)
        write_text(out, with_values(space, {}, about))
        return Evolved(out, errors[0], after, at_random, steps)


def _same_settings(folder: Path, settings: EvolutionSettings) -> None:
    path = folder / "evolution.json"
    wanted = settings.to_dict()
    if read_json(path, wanted) != wanted:
        raise InputError(path, rule="belongs to other thresholds", hint="choose another `out`")
    write_json(path, wanted)


class _Estimate(NamedTuple):
    """The quality of a space, from the errors (n,) of drawn subnets on validation pixels."""

    inner: Run
    drawn: list[dict[str, Any]]
    errors: NDArray[np.float64]
    quality: SpaceQuality


def _estimate(run: Run, space: str, name: str, settings: EvolutionSettings) -> _Estimate:
    inner = run.inside(name, replace(run.context.config, space=space))
    if not inner.folder.supernet.is_file():
        supernet_stage(inner)
    supernet = load_supernet(inner.context, inner.folder.supernet)
    score, feasible = score_with(inner.context, supernet), inner.context.feasible
    assert feasible is not None
    seed = stable_hash(run.context.config.seed, "space error")
    drawn = feasible.space.unpack(feasible.sample(settings.subnets, seed, "choices"))
    errors = np.array([1.0 - score(architecture) for architecture in drawn])
    quality = space_quality(errors, settings.top)
    run.report.line(f"{name}: E {quality.E:.4f}, T {quality.T:.4f}")
    return _Estimate(inner, drawn, errors, quality)


def _round(
    run: Run, space: str, name: str, settings: EvolutionSettings
) -> tuple[SpaceQuality, list[SpaceStep]]:
    """E and T of a space, and the steps that its errors ask for."""
    inner, drawn, errors, quality = _estimate(run, space, name, settings)
    taken: list[SpaceStep] = []
    for gene in inner.context.space.genes:
        values = gene["values"]
        if isinstance(values[0], list):
            continue  # a gene whose layers have choices of their own
        so_far = {step.gene: step.values for step in taken}

        def is_possible(name: str, wanted: list[Any], so_far: Any = so_far) -> bool:
            return _is_possible(inner.context, space, {**so_far, name: wanted})

        means = choice_errors(gene["name"], values, drawn, errors)
        step = propose(gene["name"], values, means, settings, is_possible)
        if step is not None:
            taken.append(step)
            run.report.line(f"  {_said(step)}")
    return quality, taken


def _is_possible(context: RunContext, space: str, values: Mapping[str, list[Any]]) -> bool:
    """Whether a space with these choices has networks inside the budget, with each new choice."""
    config, shape = context.config, context.data.shape
    before = {gene["name"]: gene["values"] for gene in context.space.genes}
    try:
        _, budget = open_space(space, config.budget or "", offered=shape.variables())
        text = with_values(space, values)
        opened = SearchSpace.parse(text, context.space.variables)
        for table in budget.tables:
            opened = opened.with_table(table, Path(table).read_text(encoding="utf-8"))
        feasible = Feasible(opened, budget)
        drawn = opened.unpack(feasible.sample(TRIED, 0, "choices"))
        supernet = Supernet.new(opened.name, shape, config.seed)
        for name, wanted in values.items():
            for value in set(map(repr, wanted)) - set(map(repr, before[name])):
                having = [each for each in drawn if value in map(repr, _listed(each[name]))]
                if len(having) < BUILT:
                    return False
                with warnings.catch_warnings(action="ignore"):  # torch's, of a layer without width
                    subnets = [supernet.subnet(architecture) for architecture in having[:BUILT]]
                if any(0 in size for subnet in subnets for size in subnet.sizes.values()):
                    return False  # of a layer without width
    except (InputError, ValueError, RuntimeError):
        return False
    return True


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _write_space(folder: Path, space: str, name: str, steps: list[SpaceStep]) -> str:
    path = folder / f"{name}.json"
    write_text(path, with_values(space, {step.gene: step.values for step in steps}))
    return str(path.resolve())


def _at_random(run: Run, evolved: str, settings: EvolutionSettings) -> SpaceQuality | None:
    """E and T of the first space, pruned at random to the size of the evolved one."""
    config, shape = run.context.config, run.context.data.shape

    def size(space: str) -> int:
        opened, budget = open_space(space, config.budget or "", offered=shape.variables())
        return Feasible(opened, budget).at_most()

    wanted = size(evolved)
    if wanted >= size(config.space):
        return None
    draw = np.random.default_rng(config.seed)
    path = run.folder.path / "random.json"
    values = {gene["name"]: list(gene["values"]) for gene in run.context.space.genes}
    for _ in range(10 * sum(map(len, values.values()))):
        name = str(draw.choice(sorted(values)))
        if len(values[name]) > 1:
            dropped = int(draw.integers(len(values[name])))
            kept = [value for place, value in enumerate(values[name]) if place != dropped]
            if _is_possible(run.context, config.space, {**values, name: kept}):
                values[name] = kept
        write_text(path, with_values(config.space, values))
        if size(str(path)) <= wanted:
            break
    return _estimate(run, str(path.resolve()), "random", settings).quality


def _said(step: SpaceStep) -> str:
    return f"{step.gene}: {step.what} to {step.values} (worth {step.worth:+.4f})"


def _history(
    config: RunConfig,
    scene: LabelledData,
    before: SpaceQuality,
    after: SpaceQuality,
    at_random: SpaceQuality | None,
    steps: list[list[SpaceStep]],
) -> str:
    lines = [f"round {n}: {'; '.join(map(_said, taken))}" for n, taken in enumerate(steps, start=1)]
    pruned = "" if at_random is None else f"; pruned at random {json.dumps(at_random._asdict())}"
    return (
        f"Evolved from {Path(config.space).name} for scene {scene.name} and budget "
        f"{config.budget}. Error before {json.dumps(before._asdict())}, after "
        f"{json.dumps(after._asdict())}{pruned}. " + (". ".join(lines) or "Nothing changed")
    )
