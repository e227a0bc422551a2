"""The seam: results in their order, whatever runs the calls."""

import pickle
import re
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hytas._engine import Feasible
from hytas.errors import InputError
from hytas.proxies import Evaluator, with_workers
from hytas.proxies.parallel import ParallelEvaluator
from hytas.spaces import open_space
from hytas.spaces.shape import InputShape
from hytas.workers import ExecutorWorkers, Workers, base, open_workers, probe_backends

from tasks import fails, length_of, slow_first, speaks  # isort: skip


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


def test_a_line_of_a_worker_is_told_with_where_it_comes_from(
    workers: Workers, capfd: pytest.CaptureFixture[str]
) -> None:
    origin = {
        "Ray": r"\(speaks pid=\d+\)",  # with ip=ADDRESS from another machine
        "Slurm (local)": rf"\(job \w+, {re.escape(socket.gethostname())}\)",
    }.get(workers.name)
    if origin is None:
        pytest.skip("its calls print in this process")
    assert list(workers.run(speaks, [(7,)], 1)) == [7]
    text, deadline = "", time.monotonic() + 20
    while "is told" not in text and time.monotonic() < deadline:
        time.sleep(0.1)
        text += "".join(capfd.readouterr())
    plain = re.sub(r"\x1b\[\d+m", "", text)
    assert re.search(rf"^{origin} number 7 is told$", plain, re.MULTILINE)


def test_values_that_jobs_of_slurm_share_are_removed(tmp_path: Path) -> None:
    pytest.importorskip("submitit", reason="needs submitit: pip install 'hytas[slurm]'")
    with open_workers(f"slurm:cluster=debug,folder={tmp_path}") as found:
        shared = found.share([1, 2])
        assert list(found.run(length_of, [(shared, 1)], 1)) == [3]
    assert not list(tmp_path.glob("shared-*"))


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


class Counting(Executor):
    """Runs a call when its result is asked for, and counts calls that wait."""

    def __init__(self) -> None:
        self.most = self.waiting = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        done: Future[Any] = Future()
        result = done.result

        def ask(timeout: float | None = None) -> Any:
            self.waiting -= 1
            done.set_result(fn(*args))
            return result(timeout)

        done.result = ask  # type: ignore[method-assign]
        return done


def test_few_jobs_wait_at_a_time() -> None:
    executor = Counting()
    workers = ExecutorWorkers(executor, 3)
    assert list(workers.run(abs, ((-n,) for n in range(50)), 50)) == list(range(50))
    assert executor.most == 6


def test_jobs_that_wait_are_taken_back() -> None:
    with ThreadPoolExecutor(1) as executor:
        workers = ExecutorWorkers(executor, 4)
        started = time.monotonic()
        found = workers.run(time.sleep, ((0.1,) for _ in range(100)), 100)
        next(found)
        found.close()
    assert time.monotonic() - started < 1


def test_a_worker_of_another_version_is_refused_by_name() -> None:
    other = {**base.facts_here(), "host": "node-7", "torch": "1.0"}
    with pytest.raises(InputError, match=r"node-7 has torch 1\.0, and the machine"):
        base.check_facts([base.facts_here(), other], "ray")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("partition", "must be NAME=VALUE"),
        ("nodes=3", "the name one of folder, jobs, cluster, partition"),
        ("cpus=many", "must be a number"),
        ("cluster=cloud", "cluster must be one of slurm, local, debug"),
    ],
)
def test_settings_of_slurm_are_checked_before_anything_starts(settings: str, words: str) -> None:
    with pytest.raises(InputError, match=words), open_workers(f"slurm:{settings}"):
        pass


def test_what_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("ray", "submitit"):
        monkeypatch.setitem(sys.modules, package, None)
    for name in ("ray", "slurm"):
        with pytest.raises(InputError, match=rf"pip install 'hytas\[{name}\]'"), open_workers(name):
            pass


def test_engines_are_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("ray", "submitit"):
        monkeypatch.setitem(sys.modules, package, None)
    found = probe_backends()
    assert found["local"].startswith("works, ")
    assert found["ray"].endswith("pip install 'hytas[ray]'")
    assert found["slurm"].endswith("pip install 'hytas[slurm]'")


def test_a_small_search_starts_no_process_and_a_large_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluator, asked = Evaluator("dss,params", SHAPE), architectures(20)
    # The last bits of eigenvalues may depend on where a matrix lies in memory.
    expected = [pytest.approx(one["scores"], rel=1e-10) for one in evaluator.score(asked)]
    monkeypatch.setattr("hytas.workers.backends.worker_count", lambda *_: 2)
    for seconds, count in ((1e9, 1), (1e-9, 2)):
        monkeypatch.setattr("hytas.proxies.parallel.START_SECONDS", seconds)
        with with_workers(evaluator, None) as scorer:
            assert isinstance(scorer, ParallelEvaluator)
            assert scorer.workers == 1
            parts = list(scorer.parts(asked))
            assert scorer.workers == count
            assert len(parts[0]) == 1
        assert [one["scores"] for part in parts for one in part] == expected


def test_processes_start_where_they_save_more_than_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(Evaluator):
        def score(self, architectures):
            return [{"scores": {}, "seconds": 1.0, "reasons": {}} for _ in architectures]

    monkeypatch.setattr("hytas.proxies.parallel.START_SECONDS", 4.0)
    monkeypatch.setattr("hytas.workers.local.server_age", lambda: 0.0)
    for count, expected, several in ((2, 8, False), (2, 9, True), (4, 6, False), (4, 7, True)):
        monkeypatch.setattr("hytas.workers.backends.worker_count", lambda *_, n=count: n)
        with with_workers(Slow("params", SHAPE), None) as scorer:
            assert isinstance(scorer, ParallelEvaluator)
            scorer.expect(expected)
            scorer.score(architectures(1))
            assert (scorer.workers > 1) == several
    # Their server has loaded torch: a tenth of the time is left.
    monkeypatch.setattr("hytas.workers.local.server_age", lambda: 9.0)
    with with_workers(Slow("params", SHAPE), None) as scorer:
        scorer.expect(2)
        scorer.score(architectures(1))
        assert scorer.workers > 1


def test_a_supernet_that_is_too_large_to_be_sent_scores_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = bytes(1000)
    evaluator = Evaluator("inherited", SHAPE, inherited=lambda architecture: float(len(weights)))
    for most, alone in ((500, True), (10**6, False)):
        monkeypatch.setattr(
            "hytas.workers.backends.worker_count",
            lambda _, sent, __, most=most: 1 if sent > most else 2,
        )
        with with_workers(evaluator, None) as scorer:
            assert (scorer is evaluator) == alone
            assert scorer.score(architectures(1))[0]["scores"] == {"inherited": 1000.0}


def test_what_travels_of_an_evaluator_is_small() -> None:
    evaluator = Evaluator("dss,params", SHAPE)
    before = len(pickle.dumps(evaluator))
    evaluator.score(architectures(5))
    assert len(pickle.dumps(evaluator)) == before
