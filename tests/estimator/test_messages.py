"""Messages of the estimator name arguments of Python, never options of the command line."""

import inspect
import re
from pathlib import Path

import pytest

import hytas
from hytas.deploy import DeployedModel
from hytas.errors import InputError
from hytas.estimator import HSIClassifier
from hytas.estimator.messages import python_arguments, python_message

PACKAGE = Path(hytas.__file__).parent
OPTION = re.compile(r"--[a-z][a-z-]*")
# Rooms whose code an estimator runs, without the files that only read scenes from disk.
ROOMS = (
    "data",
    "deploy",
    "export",
    "models",
    "proxies",
    "race",
    "run",
    "search",
    "spaces",
    "train",
)
FROM_DISK = {"datasets.py", "find.py", "load.py", "several.py", "join.py"}
FOLDERS = {"drawn", "products", "images"}  # labels, products and images, which are files
# Its options are those of another program.
FOREIGN = {"c_source.py"}
IMAGES = {"images.py"}  # of deploy: an estimator has scenes
# Arguments that a message may name, and words that stand in their place.
ARGUMENTS = set(inspect.signature(HSIClassifier).parameters) | {
    *("cube", "labels", "force", "workers")
}


def options() -> set[str]:
    """Every piece of text with an option in the code that an estimator runs."""
    found = set()
    for room in ROOMS:
        for path in (PACKAGE / room).rglob("*.py"):
            if path.name not in FROM_DISK | FOREIGN | IMAGES and path.parent.name not in FOLDERS:
                text = re.sub(r'"\s*\n\s*f?r?"', "", path.read_text())  # joins a split message
                found |= set(re.findall(r"(?:say |use )?--[a-z][a-z-]*", text))
    return found


def test_every_option_becomes_an_argument() -> None:
    assert len(options()) > 5
    for text in options():
        message = python_message(f"x {text} 7")
        assert not OPTION.search(message), text
        words = set(re.findall(r"[a-z_]+", message))
        assert words & ARGUMENTS, f"{text}: {message}"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("patch size: 4 must be odd", "patch_size: 4 must be odd"),
        ("provider: 'cuda' does not work", "device: 'cuda' does not work"),
        ("it needs a supernet; give --supernet FILE (see x)", "choose another proxy"),
        ("if it marks unlabelled pixels, say --unlabelled 255", "set them to 0 in labels"),
        ("if 0 is a class, say --zero-is-a-class", "add 1 to all labels"),
        ("--out runs/a: is a file", "work_dir runs/a: is a file"),
        ("use --force to write it anyway", "use force=True to write it anyway"),
        ("write it again with `hytas export`", "write it again with `export`"),
        ("`hytas train runs/a` makes them", "`fit` makes them"),
    ],
)
def test_examples(message: str, expected: str) -> None:
    assert expected in python_message(message)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "export"])
def test_every_method_translates(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError("scene: no --nodata; use --force")

    model = HSIClassifier()
    model.classes_, model._content, model._deployed, model.outcome_ = [1, 2], b"", None, None
    monkeypatch.setattr(DeployedModel, "from_bytes", fail)
    monkeypatch.setattr("hytas.estimator.classifier.write_onnx", fail)
    arguments = ["m.onnx"] if method == "export" else [[[[1, 2]]]]
    with pytest.raises(InputError, match=r"cube: no nodata; use force=True"):
        getattr(model, method)(*arguments)


def test_the_kind_of_error_stays() -> None:
    class OwnError(InputError):
        pass

    with pytest.raises(OwnError, match="bands"), python_arguments():
        raise OwnError("--bands")
