"""A Ray cluster of several machines, all on this one, that join and leave during the work."""

import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hytas._engine import Budget, Feasible, SearchSpace
from hytas.proxies import Evaluator, with_workers
from hytas.search import (
    Evaluation,
    EvaluationStore,
    SearchProgress,
    SearchWatch,
    StrategySettings,
    search,
)
from hytas.spaces.shape import InputShape
from hytas.workers import open_workers

pytest.importorskip("ray", reason="needs Ray: pip install 'hytas[ray]'")

# Ray leaves files and sockets to the garbage collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]

SHAPE = InputShape(bands=20, classes=3, patch_size=7)
PATHS = f"{Path(__file__).parent}:{':'.join(sys.path)}"


@pytest.fixture(scope="module")
def client_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def cluster(client_port: int) -> Iterator[Any]:
    """A head that works on nothing, and waits for Ray's client, too."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATHS)
        head = {"num_cpus": 0}
        if find_spec("grpc"):
            head["ray_client_server_port"] = client_port
        made = Cluster(initialize_head=True, head_node_args=head)
        yield made
        made.shutdown()


class Machines:
    """The machines of a cluster besides its head; the first is the one that came first."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._there: list[Any] = []

    def join(self, count: int = 1, **settings: Any) -> None:
        """Let machines of one processor join; the head knows them when this returns."""
        for _ in range(count):
            self._there.append(self._cluster.add_node(num_cpus=1, **settings))

    def first_leaves(self, allow_graceful: bool = True) -> None:
        """End a machine; the head, which may take seconds, knows it when this returns."""
        self._cluster.remove_node(self._there.pop(0), allow_graceful)
        self._cluster.wait_for_nodes()

    def all_leave(self) -> None:
        while self._there:
            self.first_leaves()


@pytest.fixture
def machines(cluster: Any) -> Iterator[Machines]:
    made = Machines(cluster)
    yield made
    made.all_leave()


def opened(cluster: Any) -> Any:
    return open_workers(f"ray:{cluster.address}")


def test_a_search_is_the_same_while_machines_join_and_leave(
    cluster: Any, machines: Machines, tmp_path: Path
) -> None:
    feasible = Feasible(
        SearchSpace.builtin("hytas", SHAPE.variables()), Budget.parse("20K..300K-params")
    )
    settings = StrategySettings(population=24, generations=5, seed=3, chunk=8)
    evaluator = Evaluator("params", SHAPE)

    def found(name: str, scorer: Any, progress: Any = lambda _: None) -> list[dict[str, Any]]:
        with EvaluationStore(tmp_path / name) as store:
            search(feasible, scorer, fitness, settings, store, watch=SearchWatch(progress))
            return [without_time(item) for item in store.evaluations()]

    machines.join()
    counts: list[int] = []

    def change(progress: SearchProgress) -> None:
        """Two machines join after the first batch, and the first one leaves later."""
        counts.append(progress.workers)
        if len(counts) == 1:
            machines.join(2)
        elif len(counts) == 4:
            machines.first_leaves(allow_graceful=False)

    with opened(cluster) as workers, with_workers(evaluator, workers) as scorer:
        spread = found("cluster.sqlite", scorer, change)
        left = workers.count
    assert spread == found("alone.sqlite", evaluator)
    assert (counts[0], max(counts), left) == (1, 3, 2)


def fitness(items: Any) -> list[float]:
    return [-item.scores["params"] for item in items]


def without_time(item: Evaluation) -> dict[str, Any]:
    return {name: value for name, value in vars(item).items() if name != "seconds"}
