"""Global-local alignment: a penalty pulls the class token to the mean of the other tokens."""

import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models import as_network


class Alignment:
    """Measure the distance of the class token to the other tokens, in each stream's last layer.

    Use it as a context manager around a forward pass. `penalty` is then the squared Euclidean
    distance between the class token and the mean of the other tokens, divided by the width,
    averaged over pixels and summed over streams.
    Source: the regulariser of HyLITE (Zhou et al., BMVC 2023).

    Args:
        network: whose `token_streams` with a class token are watched; while they are, their last
            layers compute all tokens.
    """

    def __init__(self, network: nn.Module) -> None:
        streams = as_network(network, "recipe alignment").token_streams.values()
        self._streams = [stream for stream in streams if stream.class_token is not None]
        if not self._streams:
            rule = f"a {type(network).__name__} has no class token to align"
            hint = "use 0"
            raise InputError("recipe", "alignment", rule, hint)
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
        """Return the penalty, a scalar; 0 before a forward pass."""
        return torch.stack(self._found).sum() if self._found else torch.zeros(())
