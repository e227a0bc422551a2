"""
The search engine of hytas: spaces, exact costs, budgets, sampling and selection.
"""
from __future__ import annotations
import collections.abc
import numpy
import numpy.typing
import typing
__all__: list[str] = ['Budget', 'Evolution', 'Feasible', 'SearchSpace', 'amount_text', 'builtin_space_text', 'builtin_spaces', 'mutation_presets', 'spoken_amount', 'strategies']
class SearchSpace:
    """
    A search space and the exact costs of its architectures.
    """
    @staticmethod
    def builtin(name: str, variables: collections.abc.Mapping[str, typing.SupportsInt | typing.SupportsIndex] = {}) -> SearchSpace:
        """
        A built-in space; ValueError on an unknown name or variable.
        """
    @staticmethod
    def parse(text: str, variables: collections.abc.Mapping[str, typing.SupportsInt | typing.SupportsIndex] = {}) -> SearchSpace:
        """
        A space from the JSON text of a space file (docs/research.md).
        """
    def cost(self, architecture: dict[str, typing.Any]) -> dict[str, int]:
        """
        Every cost of one architecture, by name; ValueError names a wrong gene.
        """
    def costs(self, genomes: numpy.ndarray, name: str) -> numpy.typing.NDArray[numpy.int64]:
        """
        One cost of packed genomes (N, G): int64 (N,).
        """
    def key(self, architecture: dict[str, typing.Any]) -> str:
        """
        A stable text, e.g. hytas:d4-e64-h3.4.5.6-m1.2.3.4; a safe file name but for the colon.
        """
    def pack(self, architectures: collections.abc.Sequence[dict[str, typing.Any]]) -> numpy.typing.NDArray[numpy.uint8]:
        """
        Packed genomes, uint8 (N, G), of a list of architectures.
        """
    def size(self) -> int:
        """
        The exact number of architectures.
        """
    def unpack(self, genomes: numpy.ndarray) -> list[dict[str, typing.Any]]:
        """
        The architectures of packed genomes (N, G).
        """
    def with_table(self, name: str, text: str) -> SearchSpace:
        """
        A copy with the cost latency@<name>, from the JSON text of a latency table (docs/budget-and-time.md).
        """
    @property
    def about(self) -> str:
        ...
    @property
    def cost_names(self) -> list[str]:
        ...
    @property
    def cost_units(self) -> dict[str, str]:
        """
        The unit of each cost, by name.
        """
    @property
    def fingerprint(self) -> int:
        """
        Equal for equal spaces, 64 bits.
        """
    @property
    def genes(self) -> list[dict[str, typing.Any]]:
        """
        One dict a gene: name, key, values (a list an element where they differ), length (of a list gene), per (the depth gene that counts its layers).
        """
    @property
    def genome_length(self) -> int:
        """
        Bytes of a packed genome.
        """
    @property
    def name(self) -> str:
        ...
    @property
    def variables(self) -> dict[str, int]:
        ...
class Budget:
    """
    Bounds on costs that must all hold: 2M-params, 1.5M..2M-params, 4MB-int8, ...
    """
    @staticmethod
    @typing.overload
    def parse(text: collections.abc.Sequence[str]) -> Budget:
        """
        From texts; each may hold several, comma-separated.
        """
    @staticmethod
    @typing.overload
    def parse(text: str) -> Budget:
        ...
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self) -> None:
        """
        No bound: everything fits.
        """
    def __repr__(self) -> str:
        ...
    def __str__(self) -> str:
        ...
    @property
    def bounds(self) -> list[tuple[str, int, int]]:
        """
        A list of (cost name, lower, upper), both ends included.
        """
    @property
    def tables(self) -> list[str]:
        """
        The names of the latency tables that it needs.
        """
class Feasible:
    """
    The architectures of a space that fit a budget, known exactly.
    """
    def __init__(self, space: SearchSpace, budget: Budget = ..., most_entries: typing.SupportsInt | typing.SupportsIndex = 16777216) -> None:
        """
        ValueError with the smallest, largest or nearest possible costs when no architecture fits.
        """
    def at_most(self) -> int:
        """
        The count, or a number that it cannot exceed where it is not known exactly.
        """
    def contains(self, genomes: numpy.ndarray) -> numpy.typing.NDArray[numpy.bool]:
        """
        For each packed genome whether it is valid and fits: bool (N,).
        """
    def count(self) -> int:
        """
        The exact number of feasible architectures.
        """
    def enumerate(self, start: int, n: typing.SupportsInt | typing.SupportsIndex) -> numpy.typing.NDArray[numpy.uint8]:
        """
        Architectures start .. start + n of the fixed order, uint8 (<= n, G).
        """
    def rank(self, architecture: dict[str, typing.Any]) -> int:
        """
        Its place in the fixed order.
        """
    def sample(self, n: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex, uniform: str = 'architectures') -> numpy.typing.NDArray[numpy.uint8]:
        """
        Exact independent draws, uint8 (n, G): uniform over 'architectures', or over 'choices' (each gene uniform).
        """
    def unrank(self, index: int) -> dict[str, typing.Any]:
        """
        The architecture at a place in the fixed order.
        """
    @property
    def budget(self) -> Budget:
        ...
    @property
    def exact(self) -> bool:
        """
        False when the exact table would be too large: then sample stays exact, but count, rank, unrank and enumerate raise ValueError.
        """
    @property
    def space(self) -> SearchSpace:
        ...
class Evolution:
    """
    The search loop: ask -> score -> tell. Everything asked for is feasible, new and distinct. One thread at a time.
    """
    @staticmethod
    def restore(feasible: Feasible, state: bytes) -> Evolution:
        """
        An evolution that goes on bit by bit; ValueError on a truncated, edited, newer or foreign state.
        """
    def __init__(self, feasible: Feasible, strategy: str = 'evolution', population: typing.SupportsInt | typing.SupportsIndex = 50, offspring: typing.SupportsInt | typing.SupportsIndex = 0, parents: typing.SupportsInt | typing.SupportsIndex = 10, mutation_share: typing.SupportsFloat | typing.SupportsIndex = 0.5, mutation: str = 'autoformer', rates: collections.abc.Mapping[str, typing.SupportsFloat | typing.SupportsIndex] = {}, uniform: str = 'choices', retries: typing.SupportsInt | typing.SupportsIndex = 6, seed: typing.SupportsInt | typing.SupportsIndex = 0) -> None:
        ...
    def ask(self, n: typing.SupportsInt | typing.SupportsIndex | None = None) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8]]:
        """
        (ids int64 (n,), genomes uint8 (n, G)): up to n architectures of this generation, None for its rest. Empty: the feasible set is exhausted.
        """
    def best(self) -> tuple[dict[str, typing.Any], typing.Any]:
        """
        (architecture, score) of the best first score; ValueError before any tell.
        """
    def front(self) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.float64]]:
        """
        (ids, genomes, scores (n, k)) that no other told architecture dominates.
        """
    def pending(self) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8]]:
        """
        (ids, genomes) asked for but not told: what to score first after a restore.
        """
    def population(self) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.float64]]:
        """
        (ids, genomes, scores (n, k)) of the current parents.
        """
    def rescore(self, ids: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], scores: typing.Annotated[numpy.typing.ArrayLike, numpy.float64]) -> None:
        """
        Other scores of ids that were told, where scores depend on what was evaluated since; the next generation is chosen by them.
        """
    def state(self) -> bytes:
        """
        Versioned, checksummed and complete, the generator included.
        """
    def tell(self, ids: typing.Annotated[numpy.typing.ArrayLike, numpy.int64], scores: typing.Annotated[numpy.typing.ArrayLike, numpy.float64]) -> None:
        """
        Scores (n,) or (n, k) of ids, larger is better, NaN ranks last; in any order and in parts.
        """
    @property
    def asked(self) -> int:
        """
        Architectures asked for.
        """
    @property
    def evaluated(self) -> int:
        """
        Architectures told.
        """
    @property
    def exhausted(self) -> bool:
        """
        Every feasible architecture has been asked for.
        """
    @property
    def feasible(self) -> Feasible:
        ...
    @property
    def generation(self) -> int:
        """
        Generations completed when the last one was asked for.
        """
    @property
    def objectives(self) -> int:
        """
        Scores a row; 0 before the first tell.
        """
def amount_text(cost: str, value: typing.SupportsInt | typing.SupportsIndex) -> str:
    """
    A cost in the notation of a budget: 2M-params, 4MB-int8.
    """
def builtin_space_text(name: str) -> str:
    """
    The JSON file of a built-in space: the example to start a space of one's own from.
    """
def builtin_spaces() -> list[str]:
    """
    The names of the spaces that come with the engine.
    """
def mutation_presets() -> list[str]:
    """
    The names of the presets of mutation rates.
    """
def spoken_amount(cost: str, value: typing.SupportsInt | typing.SupportsIndex, plain: bool = False) -> str:
    """
    A cost as a sentence says it: 203,456 params.
    """
def strategies() -> dict[str, dict[str, typing.Any]]:
    """
    The search strategies: name -> {about: a text, several_scores: whether a row of scores may have more than one}.
    """
