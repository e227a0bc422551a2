"""What all tests share."""

import fcntl
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from commands import Run

# The process that distributes the tests loads this file before its workers start, so imports of
# torch are in the fixtures.
Once = Callable[[str, Callable[[Path], None]], Path]

# A shell without job control starts its background jobs deaf to Ctrl-C, and their children inherit
# that; the commands that tests interrupt shall hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real scenes and published results, beside the repository."""
    folder = Path(os.environ.get("HYTAS_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no real scenes: {folder} is missing (HYTAS_SHARED names another place)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def quick_references() -> Iterator[None]:
    """A small forest, and an SVM that chooses among two widths: every run fits them."""
    from hytas.references import classical

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classical, "TREES", 10)
        patch.setattr(classical, "COSTS", (100.0,))
        patch.setattr(classical, "WIDTHS", (0.25, 1.0))
        yield


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this session share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def once(common: Path) -> Once:
    """`once(name, make)`: a folder that `make(folder)` filled, by the first worker that asked."""

    def made(name: str, make: Callable[[Path], None]) -> Path:
        folder, done = common / name, common / f"{name}.done"
        with (common / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)  # in its place, because a run keeps the paths of its data
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session", autouse=True)
def saved_time(common: Path) -> Iterator[None]:
    """Trace networks of one structure once, in all processes of this session; sync no file.

    With HYTAS_TRACE_ANEW set, as in the nightly run, each network is traced and each file synced.
    """
    import traces
    from commands import save_time

    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("HYTAS_TRACE_ANEW"):
            (common / "traces").mkdir(exist_ok=True)
            patch.setenv(traces.VARIABLE, str(common / "traces"))
            save_time(patch)
        yield


@pytest.fixture(scope="session")
def hytas() -> "Run":
    """Run `hytas ARGUMENTS` in a process of its own."""
    from commands import run_copy

    return run_copy


@pytest.fixture(scope="session")
def here() -> "Run":
    """Run `hytas ARGUMENTS` in this process."""
    from commands import run_here

    return run_here
