"""Streams of layers over tokens, and how their parameters start."""

from collections.abc import Callable, Sequence
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas.models.blocks import Drop, Layers, layer_of
from hytas.models.layers import DEVIATION, CrossLayerFusion, Initializer, Placed
from hytas.models.numberless import is_without_numbers, shared
from hytas.models.pretreatment import Pretreatment


class TokenStream(Placed):
    """Tokens through layers of one kind, with CAF before each from the third on.

    A stream that attends has a class token and positions. One that does not has neither: its
    convolutions know where a token lies, and its tokens enter through a GELU. The last layer
    computes only the tokens that are read: their queries, and their rows of the MLP.

    Args:
        grid: sizes of the grid that the embedded tokens lie on: (B,) bands, or (P, P) pixels.
        embed_dim: width E of a token.

    Attributes:
        class_token, position: None where tokens do not attend.
        observer: called with all tokens (N, T, E) of the last layer, which are then all computed.
    """

    class_token: nn.Parameter | None
    position: nn.Parameter | None

    def __init__(
        self,
        grid: Sequence[int],
        embed_dim: int,
        layers: Layers,
        fusion: bool,
        drop: Drop,
        read: slice,
    ) -> None:
        super().__init__()
        depth = len(layers.heads)
        tokens = prod(grid) + (1 if layers.attends else 0)
        self.read, self.width, self.attends = read, embed_dim, layers.attends
        self.observer: Callable[[Tensor], None] | None = None
        for name, count in (("class_token", 1), ("position", tokens)):
            start = nn.Parameter(torch.zeros(1, count, embed_dim)) if layers.attends else None
            self.register_parameter(name, start)
        self.blocks = nn.ModuleList(
            layer_of(layers, index, embed_dim, grid, drop) for index in range(depth)
        )
        fused = max(depth - 2, 0) if fusion else 0
        self.fusions = nn.ModuleList(
            shared((index, len(grid)), CrossLayerFusion, tokens) for index in range(fused)
        )

    def forward(
        self, embedded: Tensor, context: Tensor | None = None, read: slice | None = None
    ) -> Tensor:
        """Embedded tokens (N, T', E), without the class token -> those that are read, (N, Q, E).

        `context` (N, 1, E), of another stream, is added to the class token; to all tokens where
        there is none. `read` replaces the stream's own.
        """
        read = self.read if read is None else read
        tokens = self.enter(embedded, context)
        inputs: list[Tensor] = []
        last = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            if layer >= 2 and len(self.fusions):
                tokens = self.fusions[layer - 2](tokens, inputs[layer - 2])
            inputs.append(tokens)
            reads = layer == last and self.observer is None
            tokens = block(tokens, read if reads else None)
        if self.observer is None and inputs:
            return tokens
        if self.observer is not None:
            self.observer(tokens)
        return tokens[:, read]

    def enter(self, embedded: Tensor, context: Tensor | None) -> Tensor:
        """Return the input (N, T, E) of the first layer."""
        if self.class_token is None or self.position is None:
            return F.gelu(embedded if context is None else embedded + context)
        class_token = self.class_token.expand(embedded.shape[0], -1, -1)
        if context is not None:
            class_token = class_token + context
        return torch.cat([class_token, embedded], dim=1) + self.position


def initialise(network: nn.Module) -> None:
    """Draw tokens and linear maps from a truncated normal of deviation 0.02, as ViT and HyTAS do.

    Convolutions and fusions keep torch's own uniform draws. A network without numbers is left as it
    is.
    """
    if is_without_numbers() or next(network.parameters()).is_meta:
        return
    for module in network.modules():
        if isinstance(module, Placed):
            for parameter in module.parameters(recurse=False):
                nn.init.trunc_normal_(parameter, std=DEVIATION)
        elif isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=DEVIATION)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def initializers_of(network: nn.Module) -> dict[str, Initializer]:
    """Return parameter name -> initializer, as construction and `initialise` use it."""
    initializers: dict[str, Initializer] = {}
    for name, module in network.named_modules():
        for part, _ in module.named_parameters(recurse=False):
            initializer = initializer_of(module, part)
            if initializer is not None:
                initializers[f"{name}.{part}" if name else part] = initializer
    return initializers


def initializer_of(module: nn.Module, part: str) -> Initializer | None:
    """Return the initializer of a module's own parameter; None for a foreign module."""
    if isinstance(module, Placed):
        return Initializer("normal", DEVIATION)
    if isinstance(module, nn.Linear):
        return (
            Initializer("normal", DEVIATION) if part == "weight" else Initializer("constant", 0.0)
        )
    if isinstance(module, nn.LayerNorm | Pretreatment):
        return Initializer("constant", 1.0 if part == "weight" else 0.0)
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        return Initializer("uniform", module.weight[0].numel() ** -0.5)
    return Initializer("uniform", module.bound) if isinstance(module, CrossLayerFusion) else None
