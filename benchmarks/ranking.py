"""What a race should rank its finalists by: each rule against whole trainings.

    python benchmarks/ranking.py RUN... --out ranking.jsonl

RUN is the folder of a finished `hytas search`. The finalists of its second rung are trained to the
end, each by the recipe that it has there, on all labelled pixels that are not for testing. Their
accuracy on test pixels is the truth. It is compared with what each rule (`hytas.race.RANKINGS`)
says of the second rung, of the first two by the mean that the race uses, and with the agreement
with a vote on pixels without a label (`hytas.race.consensus`). Nothing chooses by these test
pixels; they show what the choice was worth. Trainings are kept in --out.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import numpy as np
import torch
from scipy.stats import spearmanr

from hytas.data import Split
from hytas.machine import one_thread
from hytas.race import RANKINGS, default_ranking, race_scores
from hytas.race.results import RungResult, TrialKey, rung_results
from hytas.race.scores import validation_score
from hytas.run.context import RunContext, prepare
from hytas.run.folder import RunFolder
from hytas.search import EvaluationStore
from hytas.train import logits_of, train

MOST_TEST_PIXELS = 4000


def races(folder: RunFolder) -> dict[TrialKey, list[RungResult]]:
    """The first two rungs of each finalist; of those that ran in the second one, both."""
    with EvaluationStore(folder.evaluations, read_only=True) as store:
        results = [result for result in rung_results(store.trainings()) if not result.reason]
    rungs = sorted({result.steps for result in results})
    if len(rungs) < 2:
        raise click.UsageError(f"{folder.path}: its race has {len(rungs)} rungs; 2 are needed")
    found: dict[TrialKey, list[RungResult]] = {}
    for result in results:
        if result.steps in rungs[:2]:
            found.setdefault(result.key, []).append(result)
    return found


def truth(context: RunContext, architecture: Mapping[str, Any], preset: str) -> float:
    """The accuracy on test pixels of a network that was trained to the end."""
    recipe, data = context.config.recipes[preset], context.data
    network = context.network(architecture, recipe)
    learnt, _ = context.final_pixels
    with one_thread():
        train(
            network,
            data.labelled(learnt),
            data.labelled(learnt[:0]),
            recipe,
            seed=context.config.seed,
        )
        test = data.split.test
        some = np.linspace(0, len(test) - 1, min(len(test), MOST_TEST_PIXELS)).astype(np.int64)
        asked = data.labelled(test[some])
        answers = logits_of(network.eval(), asked, torch.device("cpu"))
    return float((answers.argmax(axis=1) == asked.targets).mean())


def trained(path: Path, out: Path) -> Iterator[tuple[dict[str, float], float]]:
    """What each rule says of a finalist of a run's second rung, and its accuracy."""
    folder = RunFolder(path)
    config, _ = folder.read_config()
    if config.recipe.epochs == 0:  # the search stopped after its race
        config = config.with_epochs(None)
    context = prepare(config, config.load_scene(), torch.device("cpu"), Split.load(folder.split))
    with EvaluationStore(folder.evaluations, read_only=True) as store:
        architectures = {item.id: item.architecture for item in store.evaluations()}
        votes = store.votes()
    lines = out.read_text().splitlines() if out.exists() else []
    known = {tuple(json.loads(line)["of"]): json.loads(line)["OA"] for line in lines}
    raced = races(folder)
    placed = race_scores(
        raced, RANKINGS[default_ranking(context.data.split.spatially_disjoint)], votes
    )
    for key, rungs in raced.items():
        if len(rungs) < 2:
            continue
        of = (str(path), *key)
        if of not in known:
            known[of] = truth(context, architectures[key[0]], key[1])
            with out.open("a") as file:
                file.write(json.dumps({"of": of, "OA": known[of]}) + "\n")
        said = {f"{name}, second rung": rungs[-1].score(rule) for name, rule in RANKINGS.items()}
        said |= {
            f"{name}, both rungs": validation_score(rungs, rule) for name, rule in RANKINGS.items()
        }
        if (agreement := placed[key].agreement) is not None:
            said["agreement with the vote"] = agreement
            said["the race: mean of it and the validation score"] = placed[key].value
        yield said, known[of]


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path))
def main(runs: tuple[Path, ...], out: Path) -> None:
    """Print what each rule is worth, for each run and in the mean."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for path in runs:
        found = list(trained(path, out))
        accuracies = [accuracy for _, accuracy in found]
        click.echo(f"{path.name}: {len(found)} networks, OA {min(accuracies):.4f} to ", nl=False)
        click.echo(f"{max(accuracies):.4f}")
        for name in found[0][0]:
            merits = [said[name] for said, _ in found]
            rho = float(spearmanr(merits, accuracies).statistic)
            lost = max(accuracies) - accuracies[int(np.argmax(merits))]
            rows.setdefault(name, []).append((rho, lost))
    head = " | ".join(path.name for path in runs)
    click.echo(f"\n| rule: Spearman (OA lost) | {head} | mean |\n|{'---|' * (len(runs) + 2)}")
    for name, values in rows.items():
        if len(values) < len(runs):  # racers of an older run did not vote
            continue
        each = " | ".join(f"{rho:.2f} ({lost:.4f})" for rho, lost in values)
        rho, lost = (fmean(part) for part in zip(*values, strict=True))
        click.echo(f"| {name} | {each} | {rho:.2f} ({lost:.4f}) |")


if __name__ == "__main__":
    main()
