"""Global-local alignment: the class token is drawn to the mean of the tokens it stands for."""

import torch
from torch import Tensor, nn

from hytas.models.layers import TokenStream


class Alignment:
    """Distance of class token and other tokens in the last layer of every stream of a network.

    Use as a context manager around a forward pass; `penalty` is then the mean over pixels of the
    squared Euclidean distance between the class token and the mean of the others, divided by the
    width, and summed over streams.
    Source: the regulariser of HyLITE (Zhou et al., BMVC 2023), which promotes the integration of
    local into global information.

    Args:
        network: holds `TokenStream` modules; of one without any the penalty is 0.
    """

    def __init__(self, network: nn.Module) -> None:
        self._streams = [part for part in network.modules() if isinstance(part, TokenStream)]
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._found: list[Tensor] = []

    def __enter__(self) -> "Alignment":
        self._found = []
        self._handles = [part.register_forward_hook(self._look) for part in self._streams]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _look(self, module: nn.Module, inputs: object, tokens: Tensor) -> None:
        gap = tokens[:, 0] - tokens[:, 1:].mean(dim=1)
        self._found.append(gap.square().mean())

    @property
    def penalty(self) -> Tensor:
        """A scalar; 0 before a pass."""
        return torch.stack(self._found).sum() if self._found else torch.zeros(())
