"""The parts that the layers of a network are made of: embeddings, attention, fusion.

Every formula of a network stands once in this folder: here, in `blocks.py` (layers of
tokens) and in `streams.py` (layers one after the other). Training, scoring and export run these.
Sources: HyTAS (Zhou et al., 2024), after SpectralFormer (Hong et al., TGRS 2022): group-wise
spectral embedding (GSE) and cross-layer adaptive fusion (CAF).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVIATION = 0.02
"""Of tokens and linear maps, as ViT and HyTAS start."""
WIDE = 5
"""Side of the largest kernel of a depthwise convolution."""

_WRITTEN_OUT = ContextVar("attention written out", default=False)
_IN_PARTS = ContextVar("gradients of wide kernels in parts", default=False)
_OBSERVER: ContextVar[Callable[[Tensor], None] | None] = ContextVar("observer", default=None)
T = TypeVar("T")


class Initializer(NamedTuple):
    """How the initial values of a parameter are drawn.

    Attributes:
        name: "normal" or "uniform" around zero, or "constant".
        scale: deviation, bound, or the value itself.
    """

    name: str
    scale: float


class Placed(nn.Module):
    """A module whose own parameters are tokens and positions, drawn as those of a ViT."""


@contextmanager
def holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable a value while the context lasts, in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def attention_written_out(foreign: bool = False) -> Iterator[None]:
    """Compute attention by plain products while the context lasts, in this thread.

    The fused kernels cannot be differentiated twice, and ONNX has none of them in its older
    operator sets.

    Args:
        foreign: also in networks that do not attend by `attend`; torch then uses its plain kernel
            in all threads.
    """
    with holding(_WRITTEN_OUT, True), sdpa_kernel(SDPBackend.MATH) if foreign else nullcontext():
        yield


def wide_kernels_in_parts() -> AbstractContextManager[None]:
    """Compute gradients of wide depthwise kernels on a CPU in parts, in this thread.

    It takes less time while the context lasts. Such gradients have no derivatives, and function
    transforms of torch do not know them.
    """
    return holding(_IN_PARTS, True)


@contextmanager
def attention_observed(
    network: nn.Module, observer: Callable[[str, Tensor], None]
) -> Iterator[None]:
    """Call `observer` with the weights of each attention while the context lasts, in this thread.

    Args:
        observer: takes the name of the module and its weights (N, h, Q, T).
    """

    def begin(name: str, *_: object) -> None:
        _OBSERVER.set(partial(observer, name))

    def end(*_: object) -> None:
        _OBSERVER.set(None)

    hooks = []
    for name, module in network.named_modules():
        if isinstance(module, Attention):
            hooks.append(module.register_forward_pre_hook(partial(begin, name)))
            hooks.append(module.register_forward_hook(end))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        end()


class Seen(NamedTuple):
    """What attention adds because of where tokens lie: a key, seen from a query.

    Attributes:
        bias: (h, Q, T) or (N, h, Q, T), added to the logits; None for none.
        keys: (Q, T, d), added to the key; None for none.
        values: (Q, T, d), added to the value; None for none.
    """

    bias: Tensor | None = None
    keys: Tensor | None = None
    values: Tensor | None = None


NOWHERE = Seen()


def attend(query: Tensor, key: Tensor, value: Tensor, seen: Seen = NOWHERE) -> Tensor:
    """Return softmax(q k') v for q (N, h, Q, d), k and v (N, h, T, d), the scale inside q.

    `seen` adds to k and v, and to the logits, what depends on where tokens lie.
    """
    bias, observer = seen.bias, _OBSERVER.get()
    if seen.keys is not None:
        moved = _by_query(query, seen.keys.transpose(1, 2))
        bias = moved if bias is None else bias + moved
    if not _WRITTEN_OUT.get() and seen.values is None and observer is None:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
    logits = query @ key.transpose(-2, -1)
    weights = torch.softmax(logits if bias is None else logits + bias, dim=-1)
    if observer is not None:
        observer(weights)
    attended = weights @ value
    if seen.values is not None:
        attended = attended + _by_query(weights, seen.values)
    return attended


def _by_query(left: Tensor, right: Tensor) -> Tensor:
    """(N, h, Q, a), (Q, a, b) -> (N, h, Q, b): a product with a matrix of each query's own."""
    heads, queries = left.shape[1:3]
    rows = left.permute(2, 0, 1, 3).reshape(queries, -1, left.shape[3])  # (Q, N h, a)
    return (rows @ right).reshape(queries, -1, heads, right.shape[2]).permute(1, 2, 0, 3)


def probabilities(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Return class probabilities (N, C) for logits (N, C).

    Args:
        temperature: what they are divided by first. The order of the classes stays.
    """
    return torch.softmax(logits if temperature == 1.0 else logits / temperature, dim=1)


def repeat_ends(pixels: Tensor, margin: int) -> Tensor:
    """(..., bands) -> (..., bands + 2 margins): the first and last band again beyond either end."""
    if not margin:
        return pixels
    if not pixels.requires_grad:
        return F.pad(pixels, (margin, margin), mode="replicate")
    # The gradient of that is summed by atomics on a GPU, in an order that no seed fixes.
    first, last = pixels[..., :1], pixels[..., -1:]
    size = (*pixels.shape[:-1], margin)
    return torch.cat([first.expand(size), pixels, last.expand(size)], dim=-1)


def depthwise(channels: int, kernel: int, axes: int) -> nn.Conv1d | nn.Conv2d:
    """Return a convolution of each channel with itself, over one axis or two, zeros beyond."""
    kind = nn.Conv1d if axes == 1 else nn.Conv2d
    return kind(channels, channels, kernel, padding=kernel // 2, groups=channels)


def over_grid(convolution: nn.Conv1d | nn.Conv2d, tokens: Tensor, grid: Sequence[int]) -> Tensor:
    """Convolve tokens (N, T, E) over the grid that they lie on, row by row; T is its size."""
    laid = tokens.transpose(1, 2).reshape(tokens.shape[0], -1, *grid)
    if laid.is_cuda:  # torch's own kernels; of other layouts cuDNN plans each new shape for 0.1 s
        laid = laid.contiguous()
    wide = convolution.kernel_size[0] == WIDE and min(grid) > WIDE // 2
    in_parts = _IN_PARTS.get() and laid.device.type == "cpu"
    if wide and in_parts and torch.is_grad_enabled() and convolution.weight.requires_grad:
        weights = convolution.weight, convolution.bias
        mixed: Tensor = _WideKernel.apply(laid, *weights)  # type: ignore[no-untyped-call]
    else:
        mixed = convolution(laid)
    return mixed.flatten(2).transpose(1, 2)


class _WideKernel(torch.autograd.Function):
    """A depthwise convolution by a kernel of `WIDE`, or `WIDE` x `WIDE`, for training on a CPU.

    oneDNN's depthwise gradient of weights has at most three columns; for more, it computes 16 times
    as much. So the two outer columns get theirs by themselves.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """(N, E, *grid) -> (N, E, *grid)."""
        ctx.save_for_backward(inputs, weight)
        convolve = F.conv1d if weight.ndim == 3 else F.conv2d
        return convolve(inputs, weight, bias, padding=WIDE // 2, groups=len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of inputs, weight and bias."""
        inputs, weight = ctx.saved_tensors
        if grad.ndim == 3:  # along one axis: a grid of one column
            column = inputs[..., None], weight[..., None], grad[..., None]
            of_inputs, of_weight = _gradient("inputs", *column), _gradient("weight", *column)
            return of_inputs[..., 0], of_weight[..., 0], grad.sum((0, 2))
        left = _gradient("weight", inputs[..., :-2], weight[..., :1], grad[..., 2:])
        centre = _gradient("weight", inputs, weight[..., 1:4], grad)
        right = _gradient("weight", inputs[..., 2:], weight[..., 4:], grad[..., :-2])
        of_weight = torch.cat([left, centre, right], 3)
        return _gradient("inputs", inputs, weight, grad), of_weight, grad.sum((0, 2, 3))


def _gradient(of: str, inputs: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
    """Return torch's gradient of the inputs (N, E, H, W), or of the weight (E, 1, h, w)."""
    padding, groups = [side // 2 for side in weight.shape[2:]], len(weight)
    setting = [groups], [1, 1], padding, [1, 1], False, [0, 0], groups
    wanted = [of == "inputs", of == "weight", False]
    gradients = torch.ops.aten.convolution_backward(grad, inputs, weight, *setting, wanted)
    gradient: Tensor = gradients[0] if of == "inputs" else gradients[1]
    return gradient


class BandConvolution(nn.Conv1d):
    """A convolution over bands without padding; on a GPU one product, which needs no plan."""

    def forward(self, pixels: Tensor) -> Tensor:
        """(N, channels, bands) -> (N, E, tokens)."""
        if not pixels.is_cuda:
            return super().forward(pixels)
        stacks = pixels.unfold(2, self.kernel_size[0], self.stride[0])
        stacks = stacks.transpose(1, 2).flatten(2)  # (N, tokens, channels * width)
        return F.linear(stacks, self.weight.flatten(1), self.bias).transpose(1, 2)


class SpectralEmbedding(nn.Module):
    """GSE: a token every `stride` bands, from the patch of that band and its neighbours.

    A linear map of the `width` stacked neighbours, written as the convolution over bands that it
    is. Bands beyond either end repeat the end band.
    """

    def __init__(self, patch_size: int, width: int, embed_dim: int, stride: int = 1) -> None:
        super().__init__()
        self.patch_size, self.margin = patch_size, width // 2
        self.project = BandConvolution(patch_size**2, embed_dim, width, stride)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, ceil(bands / stride), E)."""
        pixels = repeat_ends(patches.flatten(1, 2), self.margin)  # (N, P * P, bands + 2 margins)
        tokens: Tensor = self.project(pixels)
        return tokens.transpose(1, 2)

    def of_strip(self, strip: Tensor) -> Tensor:
        """Embed every pixel of a row: scaled bands (P, W + P - 1, bands) -> (W, tokens, E).

        The map of a patch is a convolution over (column, band) whose channels are the P rows, so
        no patch is copied.
        """
        side, project = self.patch_size, self.project
        kernel = project.weight.view(-1, side, side, project.weight.shape[2])
        rows = repeat_ends(strip, self.margin)[None]
        stride = (1, project.stride[0])
        tokens = F.conv2d(rows, kernel, project.bias, stride)  # (1, E, W, tokens)
        return tokens[0].permute(1, 2, 0)


class PixelEmbedding(nn.Module):
    """A token a pixel of the patch: a linear map of all its bands.

    Args:
        embed_dim: width E of a token.
        placed: whether a token also encodes the position of its pixel, by its neighbours through a
            depthwise 3 x 3 convolution with a residual (conditional positional encoding; Chu et
            al., ICLR 2023), zeros beyond the patch.
    """

    def __init__(self, bands: int, patch_size: int, embed_dim: int, placed: bool = True) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.project = nn.Linear(bands, embed_dim)
        self.near = depthwise(embed_dim, 3, 2) if placed else None

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, P * P, E), row by row."""
        return self.place(self.project(patches.flatten(1, 2)))

    def place(self, tokens: Tensor) -> Tensor:
        """Add the neighbours' encoding to projected pixels (N, P * P, E), if `placed`."""
        if self.near is None:
            return tokens
        return tokens + over_grid(self.near, tokens, (self.patch_size, self.patch_size))

    def of_strip(self, strip: Tensor) -> Tensor:
        """Embed every pixel of a row: projected pixels (P, W + P - 1, E) -> (W, P * P, E)."""
        side = self.patch_size
        width = strip.shape[1] - side + 1
        windows = [strip[:, column : column + width] for column in range(side)]
        patches = torch.stack(windows, dim=2)  # (row, W, column, E)
        return self.place(patches.transpose(0, 1).flatten(1, 2))


class QueryKeyValue(nn.Linear):
    """One weight (3 q, E) for queries, keys and values, applied as three products.

    So queries may be computed for fewer tokens, and no product is split again.
    """

    def forward(  # type: ignore[override]
        self, tokens: Tensor, asking: Tensor, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (N, T, E), those that ask (N, Q, E) -> (N, Q, q), (N, T, q), (N, T, q).

        `scale` multiplies the queries' weight, which is smaller than the queries.
        """
        query, key, value = _thirds(self.weight)
        if self.bias is None:
            return F.linear(asking, query * scale), F.linear(tokens, key), F.linear(tokens, value)
        ask, meet, give = _thirds(self.bias)
        return (
            F.linear(asking, query * scale, ask * scale),
            F.linear(tokens, key, meet),
            F.linear(tokens, value, give),
        )


def _thirds(rows: Tensor) -> tuple[Tensor, ...]:
    """Return the rows of queries, keys and values.

    The gradient of `chunk` is one concatenation. An ONNX export folds slices, and not that.
    """
    if rows.requires_grad:
        return rows.chunk(3)
    size = rows.shape[0] // 3
    return rows[:size], rows[size : 2 * size], rows[2 * size :]


class Attention(nn.Module):
    """Multi-head self-attention.

    Args:
        embed_dim: width E of a token.
        head_dim: width of a head, as in ViTs, whose queries, keys and values have a bias. None is
            E // heads, as HyTAS truncates it, without a bias.
        places: module that says what attention adds because of where tokens lie (`Seen`), for the
            tokens of `read`.

    Attributes:
        scale: of the queries; the width of a head to the power of -1/2.
    """

    def __init__(
        self,
        embed_dim: int,
        heads: int,
        head_dim: int | None = None,
        places: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.head_dim = head_dim or embed_dim // heads
        self.scale: float = self.head_dim**-0.5
        inner = heads * self.head_dim
        self.qkv = QueryKeyValue(embed_dim, 3 * inner, bias=head_dim is not None)
        self.proj = nn.Linear(inner, embed_dim)
        self.places = places

    def forward(self, tokens: Tensor, read: slice | None = None) -> Tensor:
        """(N, T, E) -> (N, Q, E): the tokens of `read`, all without it, each attending to all."""
        return self.mixed(tokens, read, NOWHERE if self.places is None else self.places(read))

    def mixed(self, tokens: Tensor, read: slice | None, seen: Seen) -> Tensor:
        """Do the same, with what relative positions add."""
        asking = tokens if read is None else tokens[:, read]
        query, key, value = map(self._split, self.qkv(tokens, asking, self.scale))
        joined: Tensor = self.proj(attend(query, key, value, seen).transpose(1, 2).flatten(2))
        return joined

    def _split(self, projected: Tensor) -> Tensor:
        """(N, T, q) -> (N, h, T, q // h)."""
        split = projected.reshape(*projected.shape[:2], self.heads, self.head_dim)
        return split.transpose(1, 2)


class CrossLayerFusion(nn.Module):
    """CAF: a learned T x T mix of the tokens now and two layers ago (2 T^2 + T parameters)."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.bound = (2 * tokens) ** -0.5  # of the papers' 1 x 2 convolution
        self.weight = nn.Parameter(torch.empty(2, tokens, tokens).uniform_(-self.bound, self.bound))
        self.bias = nn.Parameter(torch.empty(tokens).uniform_(-self.bound, self.bound))

    def forward(self, now: Tensor, before: Tensor) -> Tensor:
        """(N, T, E), (N, T, E) -> (N, T, E)."""
        return self.weight[0] @ now + self.weight[1] @ before + self.bias[:, None]
