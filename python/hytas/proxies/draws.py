"""Random draws of a seed, and how the weights of an architecture are taken from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Protocol

import torch
from torch import Tensor

from hytas.proxies.keys import architecture_key, stable_hash
from hytas.proxies.released import ReleasedSupernet, bands_together

INITS = ("supernet", "own", "released")
FUSIONS = ("shipped", "released")
CHUNK = 1 << 20  # draws of a stream generated together; a network's own run starts in the first
SMALL_CHUNK = 1 << 14  # the same, of a tensor of its own
ROWS, WIDTH = 64, 256  # of a supernet matrix, generated together
NOISE = 0.05  # size of CRoZe's perturbation over that of what it perturbs
DEVIATION = 0.02  # of tokens, positions and linear maps, as the shipped network initialises them


class Pool:
    """Draws of a seed, each a function of (seed, name, place), whatever was asked before.

    They are made on the CPU whatever the device, so that weights never depend on the device.
    """

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.seed = seed
        self.device, self.dtype = device, dtype
        self.place = (device, dtype)
        self.norms: dict[Hashable, Tensor] = {}  # nuclear norms of slices, by their key
        self._made: dict[str, Tensor] = {}
        self._released: dict[str, Tensor] | None = None
        self._lock = threading.Lock()

    def stream(self, name: str, length: int, block: int = CHUNK) -> Tensor:
        """At least `length` draws: normal if the name says so, uniform in -1..1 if not.

        A name is always asked for with the same `block`, the draws made together.
        """
        have = self._made.get(name)
        if have is None or have.numel() < length:
            self._made[name] = have = self._grown(name, have, -(-length // block), block)
        return have

    def matrix(self, name: str, rows: int, columns: int, law: str = "normal") -> Tensor:
        """The first rows and columns of a supernet's matrix of "normal" or "uniform" draws.

        It is drawn in strips of `WIDTH` columns, so that what two matrices share is the same,
        however wide they are.
        """
        if columns <= WIDTH:
            return self._strip(f"{law} {name} {WIDTH}", rows)[:rows, :columns]
        whole = f"{law} {name}"
        have = self._made.get(whole)
        if have is None or have.shape[0] < rows or have.shape[1] < columns:
            tall, wide = (rows, columns) if have is None else map(max, have.shape, (rows, columns))
            starts = range(0, wide, WIDTH)
            names = [f"{whole} {WIDTH}" + (f" from {start}" if start else "") for start in starts]
            have = torch.cat([self._strip(each, tall)[:tall] for each in names], dim=1)
            self._made[whole] = have
        return have[:rows, :columns]

    def _strip(self, name: str, rows: int) -> Tensor:
        """At least `rows` rows of `WIDTH` draws."""
        have = self._made.get(name)
        if have is None or len(have) < max(rows, 1):
            have = self._grown(name, have, -(-max(rows, 1) // ROWS), ROWS * WIDTH).view(-1, WIDTH)
            self._made[name] = have
        return have

    def _grown(self, name: str, have: Tensor | None, blocks: int, block: int) -> Tensor:
        """What there is of `name`, flat, and the blocks of draws that follow it."""
        flat = [] if have is None else [have.flatten()]
        first = 0 if have is None else have.numel() // block
        drawn = torch.cat([self._block(name, number, block) for number in range(first, blocks)])
        return torch.cat([*flat, drawn.to(self.device, self.dtype)])

    def released(self, shape: Any) -> dict[str, Tensor]:
        """The tensors of the supernet that the released HyTAS code draws (released.py)."""
        with self._lock:
            if self._released is None:
                tensors = ReleasedSupernet(shape, self.seed).tensors
                tensors["embed"] = bands_together(tensors["embed"], shape)
                self._released = {name: t.to(*self.place) for name, t in tensors.items()}
        return self._released

    def _block(self, name: str, number: int, size: int) -> Tensor:
        generator = torch.Generator().manual_seed(stable_hash(self.seed, name, number) >> 1)
        draws = torch.empty(size, dtype=torch.float32)
        if name.startswith("normal"):
            return draws.normal_(0.0, DEVIATION, generator=generator)
        return draws.uniform_(-1.0, 1.0, generator=generator)


class Memo:
    """What the networks of a group have in common, made once."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Tensor] = {}

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """The tensor of this key, made the first time that it is asked for."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class Source(Protocol):
    """Where a network's weights come from."""

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor: ...

    def normal(self, name: str, rows: int, columns: int) -> Tensor: ...

    def uniform(self, name: str, *size: int) -> Tensor: ...


class _Supernet:
    """Slices of the seed's supernet, by the name of the tensor."""

    def __init__(self, pool: Pool, prefix: str, memo: Memo) -> None:
        self.pool, self.prefix, self.memo = pool, prefix, memo

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        return self.memo.once((self.prefix, key), make)

    def normal(self, name: str, rows: int, columns: int) -> Tensor:
        return self.pool.matrix(self.prefix + name, rows, columns)

    def uniform(self, name: str, *size: int) -> Tensor:
        count = prod(size)
        return self.pool.stream(self.prefix + name, count, SMALL_CHUNK)[:count].view(size)


class _Own:
    """Consecutive tensors of a run of draws that starts where the architecture says."""

    def __init__(self, pool: Pool, key: str, length: int) -> None:
        self.pool, self.length = pool, length
        names = ("normal", "uniform")
        self.at = {name: stable_hash(pool.seed, name, key) % CHUNK for name in names}

    def once(self, _: Hashable, make: Callable[[], Tensor]) -> Tensor:
        return make()

    def _take(self, name: str, size: tuple[int, ...]) -> Tensor:
        start = self.at[name]
        self.at[name] = start + prod(size)
        return self.pool.stream(name, CHUNK + self.length)[start : self.at[name]].view(size)

    def normal(self, name: str, rows: int, columns: int) -> Tensor:
        return self._take("normal", (rows, columns))

    def uniform(self, name: str, *size: int) -> Tensor:
        return self._take("uniform", size)


@dataclass(frozen=True)
class Draws:
    """How an architecture gets its draws.

    Attributes:
        init: "supernet", slices of the seed's supernet; "own", a run of its own; "released",
            slices of the supernet that the released HyTAS code draws (released.py).
        fusions: "shipped", cross-layer fusion before every layer from the third on; "released", as
            the released HyTAS code, which goes on fusing up to layer 10 whatever the depth, each
            time with what entered two layers before, not yet fused itself.
    """

    pool: Pool
    init: str = INITS[0]
    fusions: str = FUSIONS[0]
    prefix: str = ""
    memo: Memo = field(default_factory=Memo)

    def of_group(self) -> Draws:
        """The same draws with a memory of their own, to be forgotten with the group."""
        return replace(self, memo=Memo())

    @property
    def supernet(self) -> str | None:
        """Name of what the weights are slices of; None where each network has its own."""
        return None if self.init == "own" else f"{self.init} {self.prefix}"

    def source(self, architecture: Mapping[str, Any], length: int) -> Source:
        """The draws of one architecture that takes no more than `length`."""
        if self.init == "own":
            return _Own(self.pool, self.prefix + architecture_key(architecture), length)
        return _Supernet(self.pool, self.prefix, self.memo)


def perturbed_patches(patches: Tensor, pool: Pool) -> Tensor:
    """Patches (N, P, P, bands) with Gaussian noise of relative size `NOISE`, that of the seed."""
    noise = pool.stream("normal patches", patches.numel())[: patches.numel()]
    return moved(patches, noise.view_as(patches))


def moved(values: Tensor, noise: Tensor) -> Tensor:
    """`values` with noise of relative size `NOISE`."""
    scale: Tensor = NOISE * values.norm() / noise.norm()
    return values + noise * scale
