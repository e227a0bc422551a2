"""Global-local alignment: the class token is drawn to the mean of the tokens it stands for."""

import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models import as_network


class Alignment:
    """Distance of class token and other tokens in the last layer of every stream of a network.

    Use as a context manager around a forward pass; `penalty` is then the mean over pixels of the
    squared Euclidean distance between the class token and the mean of the others, divided by the
    width, and summed over streams.
    Source: the regulariser of HyLITE (Zhou et al., BMVC 2023), which promotes the integration of
    local into global information.

    Args:
        network: whose `token_streams` with a class token are watched; while they are, their last
            layers compute all tokens.

    Raises:
        InputError: the network has no such stream.
    """

    def __init__(self, network: nn.Module) -> None:
        streams = as_network(network, "recipe alignment").token_streams.values()
        self._streams = [stream for stream in streams if stream.class_token is not None]
        if not self._streams:
            raise InputError(
                f"recipe alignment: a {type(network).__name__} has no class token to align; use 0"
            )
        self._found: list[Tensor] = []

    def __enter__(self) -> "Alignment":
        self._found = []
        for stream in self._streams:
            stream.observer = self._look
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams:
            stream.observer = None

    def _look(self, tokens: Tensor) -> None:
        gap = tokens[:, 0] - tokens[:, 1:].mean(dim=1)
        self._found.append(gap.square().mean())

    @property
    def penalty(self) -> Tensor:
        """A scalar; 0 before a pass."""
        return torch.stack(self._found).sum() if self._found else torch.zeros(())
