"""A tabular benchmark: the accuracy of trained networks, by architecture."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from hytas.errors import InputError
from hytas.lab.analysis.simulation import (
    AskTell,
    Simulation,
    TablePool,
    maker_of,
    simulate,
    space_of_all,
)
from hytas.lab.analysis.tables import (
    BENCHMARK_TABLE,
    HYTAS_TABLES,
    OF_SEED,
    TARGET,
    RankingTable,
    read_table,
    table_file,
)
from hytas.lab.benchmark.vit_tables import VIT_SUFFIXES, VIT_TABLES, vit_table
from hytas.spaces.genes import genes_only
from hytas.spaces.keys import architecture_key
from hytas.types import Architecture, Floats

_SHOWN = {"oa": "OA", "aa": "AA", "max_oa": "max_OA"}


class Benchmark:
    """A table of trained networks, with lookups in place of trainings.

    It has the queries of NATS-Bench and NASLib: the accuracy of a network, and all networks.
    `Benchmark.load` opens one.

    Raises:
        InputError: its networks are of several spaces.
    """

    def __init__(self, table: RankingTable) -> None:
        self.name = table.name
        self.space = space_of_all(table.architectures)
        self._table = table
        self._figures: dict[str, Floats] = {
            **table.figures,
            **{name.lower(): values for name, values in table.scores.items()},
            TARGET.lower(): table.accuracy,
        }
        if table.size is not None:
            self._figures["params"] = table.size.params
        self._pool = TablePool.of(table.architectures)
        self._numbers = {
            architecture_key(genes_only(item)): number
            for number, item in enumerate(table.architectures)
        }

    @classmethod
    def load(
        cls, source: str | Path, space: str | None = None, *, accuracy: str | None = None
    ) -> Self:
        """Open a benchmark.

        Args:
            source: folder of `hytas benchmark make`, a CSV table, or the name of a published table
                such as "hytas-indian" or "vit-bench-101-pit", which is downloaded once. Also a
                file of the authors of the latter.
            space: of the networks of a table that does not name it, such as "autoformer".
            accuracy: of a table of vision transformers, the figure that is the OA.

        Raises:
            InputError: there is no such table, it is not readable, or the download fails.
            OSError: a file cannot be read.
        """
        path = Path(source)
        of_vits = path.suffix in VIT_SUFFIXES if path.is_file() else str(source) in VIT_TABLES
        if of_vits and not path.is_dir():
            return cls(vit_table(source, space=space, accuracy=accuracy))
        if accuracy is not None:
            rule = "only a table of vision transformers has several"
            raise InputError("accuracy", accuracy, rule)
        if path.is_dir():
            path = path / BENCHMARK_TABLE
        path = table_file(path)
        if not path.exists():
            raise InputError(
                "benchmark",
                str(source),
                "must be a folder of `hytas benchmark make`, a CSV table, or one of "
                f"{', '.join([*HYTAS_TABLES, *VIT_TABLES])}",
            )
        return cls(read_table(path, space=space))

    def __len__(self) -> int:
        return len(self._table)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return what `query` knows of a network, means over seeds where it was trained often."""
        return tuple(_SHOWN.get(name, name) for name in self._figures if OF_SEED not in name)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds that networks were trained with; none if the table has only means."""
        prefix = f"{TARGET.lower()}{OF_SEED}"
        endings = (name.removeprefix(prefix) for name in self._figures if name.startswith(prefix))
        return tuple(sorted(map(int, endings)))

    def architectures(self) -> list[dict[str, Any]]:
        """Return the genes of all networks, in the order of the table."""
        return [dict(item) for item in self._table.architectures]

    def query(
        self, architecture: Architecture | int, metric: str = TARGET, seed: int | None = None
    ) -> float:
        """Return a figure of a network.

        Args:
            architecture: genes, or its number in `architectures()`.
            metric: one of `metrics`; large and small letters are the same.
            seed: one of `seeds`; None asks for the mean.

        Returns:
            The figure; NaN if it failed.

        Raises:
            InputError: the table has no such network, metric or seed.
        """
        return float(self._column(metric, seed)[self._number(architecture)])

    def nearest(self, architecture: Architecture) -> dict[str, Any]:
        """Return the network of the table whose genes are nearest to those of any architecture."""
        return dict(self._table.architectures[self._pool.nearest(genes_only(architecture))])

    def simulate(
        self,
        strategy: str | Callable[[int], AskTell],
        budget: int,
        seeds: int | Sequence[int] = 100,
        *,
        lead: str | None = None,
    ) -> Simulation:
        """Return the result of a search whose evaluations are lookups in the table.

        A proposal that the table does not have is answered by the nearest network that the search
        has not seen (`hytas.lab.analysis.simulation`).

        Args:
            strategy: "random", a strategy of our engine, or a function from a seed to a search
                with `ask` and `tell`.
            budget: evaluations, each a network of the table.
            seeds: of the searches, or their number.
            lead: the metric that the search maximises. None: validation accuracy where the table
                has it, else OA. The test OA judges the search whatever leads.

        Raises:
            InputError: an unknown strategy or metric, or a number below 1.
        """
        every = list(range(seeds) if isinstance(seeds, int | np.integer) else seeds)
        values = self._table.measured if lead is None else self._column(lead, None)
        make = maker_of(strategy, self.space, budget) if isinstance(strategy, str) else strategy
        return simulate(self._pool, self._table.accuracy, make, budget, every, values)

    def _number(self, architecture: Architecture | int) -> int:
        if isinstance(architecture, int | np.integer):
            if not 0 <= architecture < len(self):
                raise InputError("architecture", architecture, f"must be 0 to {len(self) - 1}")
            return int(architecture)
        if not isinstance(architecture, Mapping):
            raise InputError(
                "architecture", architecture, "must be genes, or a number of `architectures()`"
            )
        key = architecture_key(genes_only(architecture))
        if key not in self._numbers:
            rule = f"is not in the table {self.name}"
            hint = "`nearest` finds one that is"
            raise InputError("architecture", key, rule, hint)
        return self._numbers[key]

    def _column(self, metric: str, seed: int | None) -> Floats:
        name = metric.lower()
        if name not in self._figures or OF_SEED in name:
            raise InputError("metric", metric, f"must be one of {', '.join(self.metrics)}")
        if seed is None:
            return self._figures[name]
        if (of_seed := f"{name}{OF_SEED}{seed}") not in self._figures:
            seeds = ", ".join(map(str, self.seeds)) or "none, the table has only means"
            raise InputError("seed", seed, f"{metric} is known for the seeds {seeds}")
        return self._figures[of_seed]
