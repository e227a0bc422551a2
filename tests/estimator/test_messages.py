"""Refusals of the estimator name arguments of Python."""

from pathlib import Path

import numpy as np
import pytest

from hytas.errors import InputError
from hytas.estimator import HSIClassifier
from hytas.estimator.arguments import PARAMETERS, python_arguments
from hytas.run import RunConfig
from refusals import refuses


def test_rows_of_a_cube_get_a_hint() -> None:
    rule = "is too large; .*hytas.BlockSplit.samples"
    with refuses("patch_size", 9, rule), python_arguments(rows=True):
        raise InputError("patch_size", 9, "is too large")
    with refuses("budget", "x", "needs a unit; $"), python_arguments(rows=True):
        raise InputError("budget", "x", "needs a unit")


def test_the_kind_of_error_stays() -> None:
    class OwnError(InputError):
        pass

    with pytest.raises(OwnError, match="work_dir='a'"), python_arguments():
        raise OwnError("out", "a", "is a file")


def test_the_parameters_are_settings_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"strategy": "local", "race_steps": 7, "smooth": "none", "validation_fraction": 0.3}
    started: list[RunConfig] = []

    def start(config: RunConfig, *_: object, **__: object) -> None:
        started.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr("hytas.estimator.classifier.run_pipeline", start)
    labels = np.repeat([1, 2], 32).reshape(8, 8)
    with pytest.raises(KeyboardInterrupt):
        HSIClassifier(**given, work_dir=tmp_path / "run").fit(np.ones((8, 8, 4)), labels)
    (config,) = started
    split = {"validation_fraction": config.split.validation_fraction}
    assert {name: getattr(config, name, split.get(name)) for name in given} == given
    assert HSIClassifier().get_params().keys() == PARAMETERS.keys()
    text = str(HSIClassifier.__doc__)
    assert all(f"    {name}: " in text for name in PARAMETERS)
    assert RunConfig().strategy == HSIClassifier().strategy


@pytest.mark.parametrize(
    ("labels", "rule"),
    [
        (np.eye(3)[np.arange(60) % 3], "60 x 3 given, .* each of the 60 spectra.*argmax"),
        (np.arange(59) % 3, "59 given, .* each of the 60 spectra is needed; $"),
        (np.ones(60), "two classes or more; $"),
        (np.ones((20, 3)), "20 x 3 given"),
    ],
)
def test_labels_of_spectra_are_one_for_each(labels: np.ndarray, rule: str) -> None:
    spectra = np.random.default_rng(0).random((60, 12))
    with refuses("labels", rule=rule):
        HSIClassifier().fit(spectra, labels)


def test_masked_arrays_are_refused() -> None:
    cube, labels = np.ones((8, 8, 4)), np.repeat([1, 2], 32).reshape(8, 8)
    for argument, given in (
        ("cube", (np.ma.masked_array(cube, mask=cube > 0), labels)),
        ("labels", (cube, np.ma.masked_equal(labels, 2))),
        ("cube", (np.ma.masked_array(cube[0], mask=cube[0] > 0), labels[0])),
    ):
        with pytest.raises(InputError, match=f"{argument}: is a masked array"):
            HSIClassifier().fit(*given)
