"""The seam: results in their order, whatever runs the calls."""

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hytas._engine import Feasible
from hytas.errors import InputError
from hytas.proxies import Evaluator, with_workers
from hytas.spaces import open_space
from hytas.spaces.shape import InputShape
from hytas.workers import ExecutorWorkers, Workers, open_workers

from tasks import fails, length_of, slow_first  # isort: skip


# submitit and Ray leave files and sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

SHAPE = InputShape(bands=20, classes=3, patch_size=7)


def architectures(count: int) -> list[dict[str, Any]]:
    space, budget = open_space("hytas-wide", "20K-params", offered=SHAPE.variables())
    return list(space.unpack(Feasible(space, budget).sample(count, 0, "choices")))


ENGINES: list[Any] = ["threads", "slurm:cluster=debug", "slurm:cluster=local,jobs=2"]
ENGINES.append(pytest.param("ray", marks=pytest.mark.slow))  # a cluster of processes


@pytest.fixture(scope="module", params=ENGINES)
def workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("jobs"))
        patch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{':'.join(sys.path)}")
        yield from opened(request)


def opened(request: pytest.FixtureRequest) -> Iterator[Workers]:
    if request.param == "threads":
        with ThreadPoolExecutor(2) as executor:
            yield ExecutorWorkers(executor, 2)
        return
    package = "ray" if request.param == "ray" else "submitit"
    if not find_spec(package):
        pytest.skip(f"needs {package}")
    with open_workers(request.param) as found:
        yield found


def test_results_keep_their_order_values_are_shared_and_errors_told(workers: Workers) -> None:
    assert list(workers.run(slow_first, ((n,) for n in range(3)), 3)) == list(range(3))
    shared = workers.share(list(range(1000)))
    assert list(workers.run(length_of, [(shared, 1), (shared, 2)], 2)) == [1001, 1002]
    with pytest.raises(InputError, match="number 1: this one cannot"):
        list(workers.run(fails, [(1,)], 1))


def test_scores_are_the_same_to_the_last_bit_on_any_engine(workers: Workers) -> None:
    if workers.name in ("Slurm (local)", "Ray"):
        pytest.skip("its workers import torch: of `make test-slow`")
    assert_same_scores(workers)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES[2:])
def test_scores_are_the_same_in_other_processes(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray" if engine == "ray" else "submitit")
    monkeypatch.chdir(tmp_path)
    with open_workers(engine) as workers:
        assert_same_scores(workers)


def assert_same_scores(workers: Workers) -> None:
    evaluator = Evaluator("dss,params", SHAPE)
    asked = architectures(5)
    expected = [one["scores"] for one in evaluator.score(asked)]
    with with_workers(evaluator, workers) as scorer:
        assert scorer is not evaluator
        assert [one["scores"] for one in scorer.score(asked)] == expected


def test_what_travels_of_an_evaluator_is_small() -> None:
    evaluator = Evaluator("dss,params", SHAPE)
    before = len(pickle.dumps(evaluator))
    evaluator.score(architectures(5))
    assert len(pickle.dumps(evaluator)) == before
