"""Many networks as one: their parameters, laid out in one size, with zeros beyond each.

Networks of one kind compute the same operations on parameters of other sizes. So one network runs
with the parameters of any of them, by name, or of all as one batch (`torch.func.vmap`). A layer
that a network does not have is one of zeros, which is the identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import isqrt, prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hytas.models.blocks import NO_DROP
from hytas.models.layers import Attention, Initializer, LayerNorm
from hytas.models.network import Network
from hytas.models.numberless import Made, without_numbers
from hytas.models.streams import initializer_of
from hytas.models.table import LARGEST, NETWORKS, free_genes
from hytas.models.weight_sharing import CENTRE, GRID, rules_of
from hytas.spaces import space_of
from hytas.spaces.genes import is_depth
from hytas.spaces.shape import Shape

Layout = tuple[tuple[int, ...], ...]
"""Of each axis the sizes that it is made of: (3, heads, width) for the rows of q, k and v."""
LEAST_WIDTH = 2
"""Of the tokens of a network that only lends its operations: a convolution over one channel would
not be a depthwise one."""

MOST_KNOWN = 1024  # outlines, and modules that networks share


class Part(NamedTuple):
    """A parameter."""

    layout: Layout
    initializer: Initializer

    @property
    def size(self) -> torch.Size:
        """The size of the parameter."""
        return torch.Size(map(prod, self.layout))


Outline = dict[str, Part]
"""Name of a parameter -> its layout and initializer."""


class Slot(NamedTuple):
    """Where a module looks up a parameter."""

    name: str
    part: Part
    module: nn.Module
    own: str


class Built(NamedTuple):
    """A network without numbers, in eval mode, which shares modules with others."""

    network: Network
    slots: list[Slot]


class Outlines:
    """Outlines of architectures, and the networks that run with such parameters."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._made, self._lent = Made(), Made()
        self._slots: dict[tuple[nn.Module, str], list[Slot]] = {}
        self._networks: dict[Hashable, Network] = {}
        self._known: dict[str, Outline | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to a worker, which finds out the rest."""
        return {**vars(Outlines(self.shape))}

    def built(self, architecture: Mapping[str, Any]) -> Built | None:
        """Return a network that runs with parameters by name; None for one that is not `framed`.

        It is valid until the next one is built.
        """
        if not free_genes(architecture):
            return None
        if self._made.forget(MOST_KNOWN):
            self._slots.clear()
        with without_numbers(self._made):
            network = NETWORKS[space_of(architecture)](architecture, self.shape, NO_DROP)
        if not (isinstance(network, Network) and network.framed):
            return None
        return Built(network, self._slots_of(network))

    def outline(self, architecture: Mapping[str, Any]) -> Outline | None:
        """Return the parameters of a network; None for one that is not `framed`."""
        key = repr(architecture)
        if key not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            built = self.built(architecture)
            self._known[key] = None if built is None else _read_out(built)
        return self._known[key]

    def network(self, architectures: Sequence[Mapping[str, Any]], labelled: bool) -> Network:
        """Return a network that is as deep as the deepest of `architectures` of one kind.

        Its own parameters have no numbers, and are as small as can be: it runs with others.
        """
        genes: dict[str, Any] = {}
        for name, value in architectures[0].items():
            genes[name] = value
            if name in free_genes(architectures[0], labelled):
                values = [each[name] for each in architectures]
                genes[name] = _of_frame(name, values)
        key = repr(genes)
        if key not in self._networks:
            if len(self._networks) >= MOST_KNOWN:
                self._networks, self._lent = {}, Made()
            with without_numbers(self._lent):
                made = NETWORKS[space_of(genes)](genes, self.shape, NO_DROP)
            assert isinstance(made, Network)
            self._networks[key] = made.eval().requires_grad_(False)
        return self._networks[key]

    def _slots_of(self, module: nn.Module, path: str = "") -> list[Slot]:
        """Return the parameters of a module, which goes to eval mode; a shared one is read once."""
        if module.training:
            module.training = False
        slots: list[Slot] = []
        for own, parameter in module._parameters.items():
            if parameter is not None:
                initializer = initializer_of(module, own)
                assert initializer is not None
                part = Part(tuple((size,) for size in parameter.shape), initializer)
                slots.append(Slot(path + own, part, module, own))
        for name, child in module._modules.items():
            if child is None:
                continue
            inner = f"{path}{name}."
            if child not in self._made.members:
                slots += self._slots_of(child, inner)
                continue
            if (child, inner) not in self._slots:
                self._slots[child, inner] = self._slots_of(child, inner)
            slots += self._slots[child, inner]
        if isinstance(module, Attention):
            return [each._replace(part=_divided(module, each.name, each.part)) for each in slots]
        return slots


def _read_out(built: Built) -> Outline:
    """Return the parameters of a network, with separate inputs of the read-out."""
    outline = {slot.name: slot.part for slot in built.slots}
    network, name = built.network, f"{built.network.readout}.weight"
    rows, (columns,) = outline[name].layout
    outline[name] = outline[name]._replace(
        layout=(rows, (network.joined, columns // network.joined))
    )
    return outline


def _of_frame(name: str, values: Sequence[Any]) -> Any:
    """Return a free gene of the network that runs for networks with these values of it."""
    if isinstance(values[0], list):
        return [1] * max(map(len, values))
    if is_depth(name) or name in LARGEST:
        return max(values)
    return LEAST_WIDTH if name == "embed_dim" else 1


def _divided(attention: Attention, name: str, part: Part) -> Part:
    """Separate the heads along an axis of an attention's parameters."""
    heads = (attention.heads, attention.head_dim)
    if name.endswith((".qkv.weight", ".qkv.bias")):
        return part._replace(layout=((3, *heads), *part.layout[1:]))
    return part._replace(layout=(part.layout[0], heads)) if name.endswith(".proj.weight") else part


def kind_of(architecture: Mapping[str, Any], labelled: bool) -> Hashable:
    """Return a key that architectures share whose networks compute the same operations.

    Args:
        labelled: whether the networks see labelled patches. If not, small patches may be padded.
    """
    free = free_genes(architecture, labelled)
    return tuple(
        (name, bool(value) if is_depth(name) else None) if name in free else (name, str(value))
        for name, value in sorted(architecture.items())
    )


class Real(NamedTuple):
    """How much of a layer's weight (K, out, in) is not zeros that were added.

    Attributes:
        outputs: rows, (K,); 0 of a layer that a network does not have.
        inputs: columns, (K,).
        columns: which inputs are the layer's own, (K, in) bool; None where the others are zeros.
    """

    outputs: Tensor
    inputs: Tensor
    columns: Tensor | None


class Frame:
    """The sizes in which the parameters of several networks of one kind are laid out.

    Args:
        network: from `Outlines.network`, for these networks.

    Attributes:
        layouts: name -> layout of the frame.
        even: whether the networks have all parameters, in this size.
    """

    def __init__(self, network: Network, outlines: Sequence[Outline]) -> None:
        self.network, self.outlines = network, outlines
        self._real: dict[str, Real] = {}
        self.layouts: dict[str, Layout] = {}
        for name, _ in network.named_parameters():
            # A layer that a network lacks is as wide as its first one, whose tokens it hands on.
            first = re.sub(r"\bblocks\.\d+\.", "blocks.0.", name)
            parts = [outline.get(name, outline.get(first)) for outline in outlines]
            layouts = [part.layout for part in parts if part is not None]
            self.layouts[name] = _largest(layouts)
        self.even = all(
            len(outline) == len(self.layouts)
            and all(part.layout == self.layouts[name] for name, part in outline.items())
            for outline in outlines
        )

    def size(self, name: str) -> torch.Size:
        """Return the size of a parameter in the frame."""
        return torch.Size(map(prod, self.layouts[name]))

    def place(self, name: str, rows: Tensor, layout: Layout, value: Tensor | float) -> None:
        """Write a parameter of `layout` into rows (n, *size), which are zeros, of this frame."""
        whole = self.layouts[name]
        rules = rules_of(name, len(whole))
        places: list[slice] = [slice(None)]
        sizes, own = [len(rows)], [1]
        for axis, rule, parts in zip(whole, rules, layout, strict=True):
            if rule == GRID:  # a square, row by row
                axis, parts = (isqrt(axis[0]),) * 2, (isqrt(parts[0]),) * 2
            middle = rule in (CENTRE, GRID)
            for full, size in zip(axis, parts, strict=True):
                start = (full - size) // 2 if middle else 0
                places.append(slice(start, start + size))
            sizes += axis
            own += parts
        laid = value.reshape(own) if isinstance(value, Tensor) else value
        rows.view(sizes)[tuple(places)] = laid

    def real(self, name: str, device: torch.device) -> Real | None:
        """Return how much of a layer's weight the networks have; None for all of it."""
        if self.even:
            return None
        if name not in self._real:
            parts = [outline.get(name) for outline in self.outlines]
            sizes = [
                (0, 0) if part is None else (part.size[0], prod(part.size[1:])) for part in parts
            ]
            outputs, inputs = torch.tensor(sizes, device=device).unbind(1)
            self._real[name] = Real(outputs, inputs, self._columns(name, device))
        return self._real[name]

    def _columns(self, name: str, device: torch.device) -> Tensor | None:
        """Return which inputs are a layer's own: (K, in) bool; None where the others are zeros.

        Patches and bands around smaller ones are no zeros, nor is what relative positions add.
        """
        centred = {CENTRE, GRID} & set(rules_of(name, len(self.layouts[name])))
        if not centred and not name.endswith("attention.proj.weight"):
            return None
        rows = torch.zeros(len(self.outlines), *self.size(name), dtype=torch.bool, device=device)
        for row, outline in zip(rows, self.outlines, strict=True):
            if name in outline:
                self.place(name, row[None], outline[name].layout, True)
        return rows[:, 0].flatten(1)

    def lend(self, device: torch.device, dtype: torch.dtype) -> list[tuple[nn.Module, str, Tensor]]:
        """Let the network compute in the sizes of the frame.

        Returns:
            Module, attribute and values (K,) of what differs between the networks.
        """
        differing: list[tuple[nn.Module, str, Tensor]] = []
        for name, module in self.network.named_modules():
            if isinstance(module, Attention):
                _, module.heads, module.head_dim = self.layouts[f"{name}.qkv.weight"][0]
                dims = self._sizes(f"{name}.qkv.weight", lambda layout: layout[0][2])
                if len(set(dims)) == 1:
                    module.scale = dims[0] ** -0.5
                else:
                    scales = torch.tensor([d**-0.5 for d in dims], device=device, dtype=dtype)
                    differing.append((module, "scale", scales))
            elif isinstance(module, LayerNorm):
                widths = self._sizes(f"{name}.weight", lambda layout: layout[0][0])
                module.width = None
                if set(widths) != {self.layouts[f"{name}.weight"][0][0]}:
                    widths_of = torch.tensor(widths, device=device, dtype=dtype)
                    differing.append((module, "width", widths_of))
            elif _is_depthwise(module):
                module.groups = self.size(f"{name}.weight")[0]
        return differing

    def _sizes(self, name: str, read: Callable[[Layout], int]) -> list[int]:
        return [read(one[name].layout) if name in one else 1 for one in self.outlines]


def _is_depthwise(module: nn.Module) -> bool:
    if not isinstance(module, nn.Conv1d | nn.Conv2d):
        return False
    return module.groups > 1 and module.in_channels == module.out_channels


def _largest(layouts: Sequence[Layout]) -> Layout:
    if all(layout == layouts[0] for layout in layouts):
        return layouts[0]
    return tuple(
        tuple(max(sizes) for sizes in zip(*axes, strict=True))
        for axes in zip(*layouts, strict=True)
    )
