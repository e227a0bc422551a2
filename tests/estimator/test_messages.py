"""Refusals of the estimator name arguments of Python."""

import pytest

from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.estimator import HSIClassifier
from hytas.estimator.arguments import PARAMETERS, python_arguments
from hytas.run import RunConfig
from refusals import refuses


@pytest.mark.parametrize("method", ["predict", "predict_proba", "export"])
def test_every_method_names_its_arguments(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError("scene", rule="has no bands", hint="give `provider` or `force`")

    model = HSIClassifier()
    model.classes_, model._content, model._deployed, model.outcome_ = [1, 2], b"", None, None
    monkeypatch.setattr(DeployedModel, "from_bytes", fail)
    monkeypatch.setattr("hytas.estimator.classifier.write_onnx", fail)
    arguments = ["m.onnx"] if method == "export" else [[[[1, 2]]]]
    with refuses("cube", rule="has no bands; give `device` or `force`"):
        getattr(model, method)(*arguments)


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


def test_the_parameters_are_settings_of_a_run() -> None:
    given = {"strategy": "local", "race_steps": 7, "smooth": "none", "validation_fraction": 0.3}
    config = HSIClassifier(**given)._config(HSIClassifier(**given).get_params(), 3)
    split = {"validation_fraction": config.split.validation_fraction}
    assert {name: getattr(config, name, split.get(name)) for name in given} == given
    assert HSIClassifier().get_params().keys() == PARAMETERS.keys()
    text = str(HSIClassifier.__doc__)
    assert all(f"    {name}: " in text for name in PARAMETERS)
    assert RunConfig().strategy == HSIClassifier().strategy
