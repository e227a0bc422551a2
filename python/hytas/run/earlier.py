"""What earlier runs taught, for a predictor to learn from."""

import hashlib
import json
import math
from collections.abc import Sequence

import numpy as np

from hytas.data import Scene, Split
from hytas.errors import InputError
from hytas.run.folder import RunFolder
from hytas.run.proposals import Trained, standardised
from hytas.run.rounds import RoundResult, round_results, standing
from hytas.search import EvaluationStore


def read_earlier(folders: Sequence[str], space: str, scene: Scene, split: Split) -> list[Trained]:
    """What the races of earlier runs trained; the target is the place in the order of merit.

    A network trained longer stands above those that were dropped before it; one whose training
    failed is left out.

    Raises:
        InputError: a folder holds no run, one whose search has not ended, a run in another space,
            one that trained nothing, or one that learnt test pixels of `split` of the same cube as
            that of `scene`.
    """
    trained: list[Trained] = []
    for folder in folders:
        run = RunFolder(folder)
        _check_run(run)
        _check_pixels(run, scene, split)
        with EvaluationStore(run.evaluations, read_only=True) as store:
            results = round_results(store.trainings())
            items = {item.id: item for item in store.evaluations()}
        rounds: dict[int, list[RoundResult]] = {}
        for result in results:
            rounds.setdefault(result.id, []).append(result)
        # Those of a longer round went on because they were better than those of a shorter one.
        longest = {key: max(each.steps for each in found) for key, found in rounds.items()}
        whole = [key for key in rounds if standing(rounds[key]) > -math.inf]
        order = sorted(whole, key=lambda key: (longest[key], standing(rounds[key])))
        raced = [items[key] for key in order]
        if not raced:
            raise InputError(
                f"learn from {folder}: its run trained nothing: there was no race (finalists 1), "
                "or every training failed"
            )
        found = {str(item.architecture["space"]) for item in raced}
        if found != {space}:
            raise InputError(
                f"learn from {folder}: is of space {', '.join(sorted(found))}, this run of {space}"
            )
        trained += standardised(raced, range(len(raced)))
    return trained


def digest_of(trained: Sequence[Trained]) -> str:
    """The sha256 of what earlier runs taught, in hex."""
    text = json.dumps([[one.architecture, one.scores, one.target] for one in trained])
    return hashlib.sha256(text.encode()).hexdigest()


def _check_run(folder: RunFolder) -> None:
    """Refuse a folder without a race that ended; half of one would teach a wrong order."""
    for file in (folder.config, folder.split, folder.evaluations):
        if not file.is_file():
            raise InputError(f"learn from {folder.path}: holds no run (no {file.name})")
    if not folder.architecture.exists():
        raise InputError(
            f"learn from {folder.path}: its search has not ended; the command that began it goes on"
        )


def _check_pixels(folder: RunFolder, scene: Scene, split: Split) -> None:
    """Refuse a run on the same cube, however labelled, that saw what this one tests."""
    if folder.cube_digest != scene.cube_digest:
        return
    shared = np.intersect1d(Split.load(folder.split).learnable, split.test)
    if shared.size:
        raise InputError(
            f"learn from {folder.path}: its race saw {shared.size} of this run's test pixels; "
            "split as it did, or learn from runs on other scenes"
        )
