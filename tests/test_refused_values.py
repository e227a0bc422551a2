"""What functions refuse: a row has the call, the argument that the error names, and the rule."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hytas
from hytas._engine import Budget, Evolution, Feasible, SearchSpace
from hytas.class_prior import estimate_prior
from hytas.data import Scene
from hytas.deploy.smoothing import Smoothing
from hytas.job import run_pipeline
from hytas.metrics import accuracy_report, calibration, summarise
from hytas.models import InputShape
from hytas.proxies import Evaluator
from hytas.run import RunConfig
from hytas.supernet import SupernetSettings
from hytas.supernet.space_quality import EvolutionSettings
from hytas.temperature import fit_temperature
from hytas.train import Recipe
from hytas.train.presets import read_presets
from hytas.workers import check_workers
from refusals import refuses
from small import strips
from tiny import SPACE

RUN = RunConfig(budget="2K..8K-params", space=SPACE, population=4, generations=1, finalists=2)
SHAPE = InputShape(bands=9, classes=4, patch_size=3, band_group=3)
BATCH = torch.zeros(5, 3, 3, 9), torch.tensor([0, 1, 2, 3, 1])
BATCH_OF_8_BANDS = "batch (2, 3, 3, 8) with 2 labels"
LABELS_OF_2_AXES = "batch of 5 patches and labels of 2 axes"
SPECTRA = np.random.default_rng(0).random((60, 12))
GUIDE = Smoothing("none", np.ones((3, 2), "f4"), np.zeros(3, "f4")).to_dict()
INHERITED = RunConfig(budget="9K-params", proxy="inherited", supernet_settings=SupernetSettings())


def evaluator(name: str = "snip", **changed: Any) -> Evaluator:
    return Evaluator(name, SHAPE, **{"batch": BATCH, **changed})


@pytest.mark.parametrize(
    ("changed", "argument", "rule"),
    [
        ({"proxy": "dsss"}, "proxy", "did you mean dss"),
        ({"strategy": "foo"}, "strategy", "must be one of evolution, "),
        ({"strategy": "nsga2"}, "strategy", "name its axes with `pareto`"),
        ({"pareto": "params,score", "strategy": "random"}, "pareto", "does not go with `strategy`"),
        ({"pareto": "accuracy"}, "pareto", "must name a cost"),
        ({"finalists": 0}, "finalists", "must be 1 or more"),
        ({"race_steps": 0}, "race_steps", "must be 1 or more"),
        ({"seed": 2**32 - 1, "seeds": 3}, "seeds", "must be at most 4294967295"),
        ({"population": 10**20}, "population", "must be at most 1000000000"),
        ({"class_prior": "test"}, "class_prior", "must be one of labels, auto"),
        ({"self_training": "yes"}, "self_training", "must be one of auto, none"),
        ({"plugins": 5}, "plugins", "must be a list"),
        ({"track": ["wandb"]}, "track", "must be one of tensorboard, mlflow"),
        ({"minutes": 0.5}, "minutes", ""),
        ({"minutes": float("nan")}, "minutes", ""),
        ({"minutes": 2.0, "recipe": Recipe(epochs=3)}, "epochs", ""),
        ({"proxy": "inherited"}, "proxy", "scores with the weights of a super"),
        ({"supernet": "a.st"}, "supernet", "only the proxy inherited scores"),
    ],
)
def test_settings_of_a_run(changed: Mapping[str, Any], argument: str, rule: str) -> None:
    with refuses(argument, rule=rule):
        replace(RUN, **changed)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return strips()


@pytest.mark.parametrize(
    ("changed", "argument", "rule"),
    [
        ({"pareto": "params"}, "pareto", ""),
        ({"pareto": "score,kilograms"}, "pareto", ""),
        ({"pareto": "params,score,params"}, "pareto", ""),
        ({"pareto": "params,accuracy", "finalists": 1}, "pareto", "there is no race"),
        ({"validation_fraction": 0.0}, "finalists", "a race ranks on validation pixels"),
        (
            {"space": "s3", "budget": None},
            "variable image_size 7: must be 8 to 4096 in space s3",
            "",
        ),
        ({"teacher": "no-such-folder"}, "teacher", ""),
    ],
)
def test_runs_that_write_nothing(
    changed: Mapping[str, Any], argument: str, rule: str, scene: Scene, tmp_path: Path
) -> None:
    with refuses(argument, rule=rule):
        run_pipeline(replace(RUN, **changed), scene, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("call", "argument", "rule"),
    [
        (lambda: evaluator(batch=None), "proxy", "it needs labelled patches"),
        (
            lambda: evaluator(batch=(np.zeros((2, 3, 3, 8)), [0, 1])),
            "batch (2, 3, 3, 8) with 2 labels",
            r"\(n, 3",
        ),
        (lambda: evaluator(batch=(np.zeros((2, 3, 3, 9)), [0, 4])), "batch labels", "lie in 0..3"),
        (lambda: evaluator(batch=(BATCH[0] * np.nan, BATCH[1])), "batch", "NaN or infinite"),
        (
            lambda: evaluator(batch=(BATCH[0], BATCH[1][:, None])),
            "batch of 5 patches and labels of 2 axes",
            "",
        ),
        (lambda: evaluator(precision="fp8"), "precision", "must be one of float32, bf16"),
        (lambda: EvolutionSettings(subnets=5), "subnets", "must be 10 or more"),
        (lambda: EvolutionSettings(top=1.0), "top", "must be more than 0"),
        (lambda: EvolutionSettings(extend=0.01), "extend", "at most `shift` 0.006"),
        (lambda: EvolutionSettings(least=0), "least", "must be 1 or more"),
        (lambda: SupernetSettings(method="progressive"), "method", "one of uniform, sandwich"),
        (lambda: SupernetSettings(uniform="params"), "uniform", "choices, architectures"),
        (lambda: fit_temperature(np.zeros((2, 3)), []), "logits", "each of 0"),
        (lambda: fit_temperature([[0.0, np.nan]], [1]), "logits", "must all be finite"),
        (lambda: estimate_prior(np.ones((4, 2)), [0.4, 0.4, 0.2]), "probabilities", "3 columns"),
        (lambda: calibration([0, 1], [0, 1], [0.5]), "probabilities", "each of 2 pixels"),
        (lambda: calibration([0, 1], [0, 1], [0.5, np.nan]), "probabilities", r"lie in 0\.\.1"),
        (lambda: summarise([]), "reports", "there are none"),
        (
            lambda: summarise([accuracy_report([0, 1], [0, 1], names) for names in ("xy", "xz")]),
            "reports",
            "same classes",
        ),
        (lambda: Smoothing.from_dict({**GUIDE, "method": "median"}, 2), "smoothing", "guided"),
        (lambda: read_presets("plane"), "recipe", "must be one of plain, unwhitened"),
        (lambda: read_presets("full,full"), "recipe", "twice"),
        (lambda: check_workers("1025"), "workers", "must be local, a number"),
        (lambda: check_workers("dask"), "workers", "must be local, a number"),
        (lambda: check_workers("ray:"), "workers", "needed after the colon"),
        (lambda: check_workers("slurm:jobs=0"), "workers", "must be above 0"),
        (lambda: check_workers("slurm:folder="), "workers", "must be NAME=VALUE"),
        (lambda: check_workers("ray://head:0"), "workers", "must be ray, ray:auto"),
        (lambda: hytas.BlockSplit(folds=1), "folds", ""),
        (lambda: hytas.BlockSplit(block=0), "block", ""),
        (lambda: hytas.BlockSplit(patch_size=4), "patch_size", ""),
        (lambda: hytas.HSIClassifier().fit(SPECTRA, np.ones(60)), "labels", "two classes"),
        (lambda: hytas.HSIClassifier().fit(SPECTRA, np.eye(60)), "labels", "60 x 60 given"),
        (
            lambda: hytas.HSIClassifier().fit(np.ma.masked_less(SPECTRA, 0.5), np.arange(60) % 2),
            "cube",
            "is a masked array",
        ),
    ],
)
def test_values(call: Callable[[], object], argument: str, rule: str) -> None:
    with refuses(argument, rule=rule):
        call()


FEASIBLE = Feasible(SearchSpace.builtin("autoformer-tiny"), Budget.parse("5.40M..5.41M-params"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FEASIBLE.unrank(-1), "index -1: must be 0 or more"),
        (lambda: FEASIBLE.enumerate(-2, 1), "start -2: must be 0 or more"),
        (lambda: Evolution(FEASIBLE).tell([-1], [1.0]), "ids: -1 was never asked for"),
    ],
)
def test_values_of_the_engine(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
