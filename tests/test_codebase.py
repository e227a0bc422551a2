"""The rules of the house that a reader would otherwise have to trust."""

import ast
import re
import resource
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import hytas

PACKAGE = Path(hytas.__file__).parent

# A package may import those of lower rank, and itself; those of one rank do not know each other.
RANK = {
    "errors": -1,
    "types": -1,
    "files": 0,
    "plugins": 0.5,
    "workers": 0.75,
    "manifest": 1,
    "tensors": 1,
    "machine": 0,
    "settings": 0,
    "_engine": 0,
    "metrics": 1,
    "results": 1,
    "temperature": 1,
    "class_prior": 1,
    "spaces": 1,
    "model_card": 1,
    "pictures": 1,
    "data": 1,
    "missions": 1.5,  # the core does not import it
    "models": 2,
    "tasks": 2.5,
    "report": 2,
    "proxies": 3,
    "search": 4,
    "train": 4,
    "deploy": 4,
    "export": 5,  # it checks its files by running them as deploy does
    "store": 4.5,
    "decide": 4.5,
    "race": 5,
    "supernet": 5,
    "references": 5,
    "run": 6,
    "job": 6.5,
    "estimator": 7,
    "testing": 7,
    "lab": 7,  # the core does not import it: names of trackers and of methods do
    "cli": 8,
}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def imported(path: Path, *, types: bool = True) -> set[str]:
    """Modules of hytas that a module imports, anywhere in it, or not for its types alone."""
    parts = ["hytas", *path.relative_to(PACKAGE).with_suffix("").parts]
    names = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in [] if types else list(ast.walk(tree)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names |= {module} if node.module else {f"{module}.{a.name}" for a in node.names}
            if module == "hytas":
                names |= {f"hytas.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "hytas"}


def package(name: str) -> str:
    return name.split(".")[1]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own not in RANK:
        pytest.fail(f"{own} has no place in the house: give it a rank in this test")
    for name in imported(path):
        assert name != "hytas", "nothing inside imports the package root"
        assert package(name) == own or RANK[package(name)] < RANK[own], f"{own} imports {name}"


def test_the_core_does_not_import_the_missions() -> None:
    """They register themselves at the plug-in point of any user; `plugins` alone names them."""
    for path in modules():
        text = path.read_text(encoding="utf-8").replace("`hytas.missions`", "")
        allowed = path.parent.name == "missions" or path.name == "plugins.py"
        assert allowed or "hytas.missions" not in text, path


ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_parts_of_a_room_import_each_other_one_way(room: str) -> None:
    """The modules and sub-packages of a package are layers, too."""
    folder = PACKAGE / room
    parts = {path.stem for path in folder.glob("[a-z]*") if path.suffix in ("", ".py")}
    below: dict[str, set[str]] = {part: set() for part in parts}
    for path in folder.rglob("*.py"):
        own = path.relative_to(folder).parts[0].removesuffix(".py")
        inside = [n for n in imported(path, types=False) if n.startswith(f"hytas.{room}.")]
        named = {name.split(".")[2] for name in inside}
        below.setdefault(own, set()).update(named & parts - {own})
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail(f"{room}: {' -> '.join(error.args[1])}")


# What a machine without torch classifies with needs no network, proxy or search.
ONBOARD = {
    "data",
    "deploy",
    "errors",
    "files",
    "machine",
    "metrics",
    "model_card",
    "pictures",
    "tasks",
    "types",
}


def test_deployment_stands_alone() -> None:
    for path in (PACKAGE / "deploy").glob("*.py"):
        assert {package(name) for name in imported(path)} <= ONBOARD, path.name
    names = ", ".join(
        f"hytas.deploy.{path.stem}" for path in (PACKAGE / "deploy").glob("[a-z]*.py")
    )
    assert run_python(f"import sys, {names}; print('torch' in sys.modules)") == "False"


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module",
    [
        *("hytas", "hytas.cli.main", "hytas.data", "hytas.deploy", "hytas.pictures"),
        *("hytas.proxies", "hytas.decide.decisions"),
    ],
)
def test_module_imports_no_torch(module: str) -> None:
    assert run_python(f"import sys, {module}; print('torch' in sys.modules)") == "False"


@pytest.mark.parametrize(
    "module", ["hytas", "hytas.cli.classify", "hytas.deploy", "hytas.report.page"]
)
def test_matplotlib_is_imported_when_something_is_drawn(module: str) -> None:
    assert run_python(f"import sys, {module}; print('matplotlib' in sys.modules)") == "False"


def test_every_file_of_the_spaces_imports_no_torch() -> None:
    names = ", ".join(
        f"hytas.spaces.{path.stem}" for path in (PACKAGE / "spaces").glob("[a-z]*.py")
    )
    assert run_python(f"import sys, {names}; print('torch' in sys.modules)") == "False"


def test_pictures_alone_draw() -> None:
    for path in modules():
        names = {
            alias.name if isinstance(node, ast.Import) else node.module or ""
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        draws = any(name.split(".")[0] == "matplotlib" for name in names)
        assert not draws or path.is_relative_to(PACKAGE / "pictures"), path


def test_tests_leave_private_names_alone() -> None:
    """So that the inside of a module may change without its tests."""
    imports = r"from hytas[\w.]* import (\([^)]*|[^\n(]*)\b_(?!engine\b)[a-zA-Z]"
    patches = r"setattr\([^()\"']*[\"'](hytas\.[\w.]*\.)?_[a-zA-Z]"
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(f"{imports}|{patches}", text), path


def test_help_is_quick() -> None:
    """Next to the library of commands in the same minute: numpy alone would double its time."""

    def seconds(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_python(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    codes = ("import click", "from hytas.cli.main import run; run(['--help'])")
    usual, help_ = (
        min(times) for times in zip(*([*map(seconds, codes)] for _ in range(7)), strict=True)
    )
    assert help_ < 3.5 * usual


def test_no_command_has_an_option_twice() -> None:
    import click

    from hytas.cli.main import hytas

    def commands(group: click.Group, context: click.Context) -> list[click.Command]:
        found: list[click.Command] = []
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            found += commands(command, context) if isinstance(command, click.Group) else [command]
        return found

    checked = commands(hytas, click.Context(hytas))
    assert len(checked) > 10
    for command in checked:
        names = [name for parameter in command.params for name in parameter.opts]
        assert sorted(names) == sorted(set(names)), command.name


# Modules of a table define these names: the table calls each by its name.
INTERFACES = {
    *("TITLE", "listener", "main", "matches", "measure", "read", "refine", "show"),
}


def test_no_public_name_stands_for_two_things() -> None:
    """A class, function or alias has one home, and so has a constant that others import.

    The function of a command is no public name: click calls it.
    """
    homes: dict[str, set[Path]] = {}
    constants: dict[str, set[Path]] = {}
    taken: dict[str, set[str]] = {}
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    taken.setdefault(alias.name, set()).add(node.module)
        for node in tree.body:
            match node:
                case ast.FunctionDef() | ast.ClassDef():
                    called = " ".join(ast.unparse(one) for one in node.decorator_list)
                    if "command" not in called and "group" not in called:
                        homes.setdefault(node.name, set()).add(path)
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    (constants if name.isupper() else homes).setdefault(name, set()).add(path)
    for name, paths in constants.items():
        found = {path for path in paths if _module(path) in taken.get(name, set())}
        homes.setdefault(name, set()).update(found)
    twice = [
        f"{name}: {', '.join(sorted(map(_module, paths)))}"
        for name, paths in homes.items()
        if len(paths) > 1 and not name.startswith("_") and name not in INTERFACES
    ]
    assert not twice, "\n".join(twice)


# Users give them facts of files and arrays, each by its name.
OF_MANY_FACTS = {"classify_scene", "image_set", "load_scene", "scene_from_arrays"}


def test_no_function_has_many_parameters() -> None:
    """At most eight, and six inside a module."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name not in OF_MANY_FACTS:
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([one for one in given if one.arg not in ("self", "cls")])
                is_private = node.name.startswith("_") and not node.name.endswith("__")
                where = f"{path}, line {node.lineno}: {node.name} has {count}"
                assert count <= (6 if is_private else 8), where


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


OF_PROBABILITIES = {
    *("decide/decisions.py", "decide/members.py", "references/runner.py"),
    *("run/final/prior.py", "run/final/stage.py", "run/prepared.py"),
}


def test_no_other_file_asks_which_task_it_is() -> None:
    """A task is a value: whoever needs to know something of it asks the task.

    Only what calibrates, smooths, or learns from, probabilities asks whether there are any.
    """
    kinds = {"Classes", "Values"}
    for path in modules():
        if path.is_relative_to(PACKAGE / "tasks"):
            continue
        if str(path.relative_to(PACKAGE)) not in OF_PROBABILITIES:
            assert ".has_probabilities" not in path.read_text(encoding="utf-8"), path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asked: list[ast.expr] = []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                asked = node.args
            elif isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
                about = ast.unparse(node)
                if not path.is_relative_to(PACKAGE / "data"):  # which says what labels are
                    assert ".continuous is" not in about, f"{path}, line {node.lineno}"
                    assert "card.targets is" not in about, f"{path}, line {node.lineno}"
            names = {getattr(one, "id", getattr(one, "attr", "")) for one in asked}
            assert not names & kinds, f"{path}, line {node.lineno}"
