"""How a refusal is worded: for Python, and for the command line."""

import ast
import pickle
import re
from pathlib import Path

import pytest

import hytas
from hytas.cli.main import run
from hytas.errors import InputError


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@pytest.mark.parametrize(
    ("error", "python", "command"),
    [
        (
            InputError("budget", "2M", "needs a unit", "such as 2M-params"),
            "budget='2M': needs a unit; such as 2M-params",
            "--budget 2M: needs a unit; such as 2M-params",
        ),
        (
            InputError("data", rule="holds several cubes", hint="name one with `cube_key`"),
            "data: holds several cubes; name one with cube_key",
            "--data: holds several cubes; name one with --cube-key",
        ),
        (
            InputError("fold", 3, "must be less than `folds`"),
            "fold=3: must be less than folds",
            "--fold 3: must be less than --folds",
        ),
        (InputError("no field at all"), "no field at all", "no field at all"),
    ],
)
def test_the_caller_renders_the_fields(error: InputError, python: str, command: str) -> None:
    assert str(error) == python
    assert error.render(option) == command
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.argument, copied.value, copied.render(option)) == (
        error.argument,
        error.value,
        command,
    )


def test_arguments_get_other_names() -> None:
    error = InputError("data", "a.mat", "holds no labels", "give `labels`")
    renamed = error.renamed({"data": "cube", "labels": "y"})
    assert str(renamed) == "cube='a.mat': holds no labels; give y"
    assert str(InputError("plain").renamed({"plain": "other"})) == "plain"


def test_the_command_line_names_options_of_the_command_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["analyse", "ranking", "--tables", "none.csv", "--sizes", "1"])
    assert ended.value.code == 2
    assert (
        capsys.readouterr().err.strip()
        == "error: --sizes 1: must be whole numbers of 2 or more, such as 20,50"
    )


# Texts that are commands: what a page tells to run next, and the options of a C compiler.
COMMANDS = {"report/words.py", "export/c_source.py"}


def test_no_text_of_the_library_names_an_option() -> None:
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    package = Path(hytas.__file__).parent
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.startswith("cli/") or name in COMMANDS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not option.search(node.value), f"{name}:{node.lineno}: {node.value}"
