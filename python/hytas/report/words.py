"""The sentences of a report: how far to trust the figures, and the next steps."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hytas.report.facts import RunFacts
from hytas.settings import as_tuple


def share(value: float) -> str:
    """Return a share as percent, with one decimal except for 0 and 100 %."""
    percent = 100 * value
    return f"{percent:.0f} %" if value in (0, 1) else f"{percent:.1f} %"


def about_split(split: Mapping[str, Any], words: str = "pixels") -> list[str]:
    """Say which pixels, or images, trained and tested, and how far that flatters the figures."""
    own = "scene" if words == "pixels" else "data"
    kinds = {
        "fixed": f"The split is the {own}'s own.",
        "random": "The split is random.",
        "blocks": "The split is by blocks with a guard band between them.",
        "folds": "The split is one fold of blocks with a guard band between them.",
        "polygons": "Whole polygons train or test, with a guard band between them.",
        "groups": "Whole groups train or test.",
    }
    kind, test = split.get("kind", "?"), int(split.get("test", 0))
    sentences = [
        kinds.get(str(kind), f"The split is of kind {kind}."),
        f"{split.get('train', 0):,} {words} train, {split.get('validation', 0):,} validate and "
        f"{test:,} test.",
    ]
    overlap = split.get("overlap_of_model", split.get("overlap"))
    if overlap is not None and words == "pixels":
        inside = round(overlap * test)
        sentences.append(
            f"{inside:,} of the {test:,} test pixels ({share(overlap)}) lie within the model's "
            "patch of a training pixel."
        )
        if overlap > 0.05:
            sentences.append(
                "The model has seen their surroundings, so the accuracy is optimistic for a new "
                "scene."
            )
        elif overlap == 0:
            sentences.append("No test pixel lies in a patch that the model was trained on.")
    return sentences


def title(run: RunFacts) -> str:
    """Return the title of a run: its scene and its budget."""
    budget = run.config.get("budget")
    return ", ".join(filter(None, [run.scene or run.name, str(budget) if budget else ""]))


def class_label(number: int, name: str) -> str:
    """Return id and name of a class; the id alone where the name repeats it."""
    return name if str(number) in name.split() else f"{number} {name}"


def taken_for(test: Mapping[str, Any]) -> list[str]:
    """Return for each class the one that it is most often taken for, and how many pixels."""
    names = list(test["per_class"])
    mistakes = []
    for place, row in enumerate(test["confusion"]):
        others = [(count, -at) for at, count in enumerate(row) if at != place]
        count, at = max(others, default=(0, 0))
        mistakes.append(f"{names[-at]} ({count})" if count else "")
    return mistakes


def next_steps(run: RunFacts) -> list[tuple[str, str]]:
    """Return what to do next: a sentence and a command, which may be empty."""
    data, folder = next(iter(as_tuple(run.config.get("data"))), "synthetic"), run.path or run.name
    if run.metrics is None:
        command = f"hytas train {shlex.quote(folder)}" if run.architecture else ""
        return [("Go on: the run is not finished. Its own command goes on, too.", command)]
    model = shlex.quote(f"{folder}/model.onnx")
    use = "Make the map of a scene.", f"hytas classify {model} {shlex.quote(data)} --out map.tif"
    if run.samples is not None:
        use = "Classify a folder of images.", f"hytas classify {model} FOLDER --out classes.csv"
    if run.of_values:
        use = "Predict another scene or table.", f"hytas predict {model} {shlex.quote(data)}"
    speed = "Measure the speed on the machine that will run the model.", f"hytas bench {model}"
    steps = [*_of_warning(run), use, speed]
    commands = [str(entry.get("command", "")) for entry in run.times.values()]
    same = next((text for text in commands if text.startswith("hytas search")), "")
    if same and "seeds" not in run.metrics:
        about = "See how much chance decides: the winner is trained three times."
        steps.append((about, f"{same} --seeds 3"))
    return steps


def _of_warning(run: RunFacts) -> Iterator[tuple[str, str]]:
    """Yield what comes before the use of a model that held-out samples put below another method."""
    comparison = None if run.results is None else run.results.comparison
    if comparison is not None and comparison.below:
        names = " and ".join(comparison.below)
        yield (
            f"Before you use the model: more held-out {run.words} are right with {names}.",
            "",
        )


def same_split(runs: Sequence[RunFacts]) -> str:
    """Say whether runs can be compared."""
    if len({run.fingerprint for run in runs}) > 1:
        return "These runs are of different scenes: their accuracies are not comparable."
    splits = [run.split for run in runs]
    if not all(splits):
        return "Not all runs say which pixels they test: whether they can be compared is unknown."
    if len(set(splits)) == 1:
        return "All runs train, validate and test on the same pixels of the same scene."
    return (
        "These runs are of the same scene, but do not split it alike: a difference in accuracy "
        "may come from the split."
    )
