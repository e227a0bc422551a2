"""The spectral transformer: tokens that are bands, pixels, or both.

A token is a group of bands over the whole patch (group-wise spectral embedding, GSE), as in HyTAS
(Zhou et al., 2024) after SpectralFormer (Hong et al., TGRS 2022); or a pixel of the patch with all
its bands, as a vision transformer would have it. With both there is a stream of layers for each: in
parallel (their read-outs are joined before the head) or in series (the class token of the bands'
stream is added to that of the pixels' stream).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.layers import PixelEmbedding, SpectralEmbedding, TokenStream, initialise
from hytas.models.shape import InputShape

BAND, PIXEL, SERIES, PARALLEL = TOKENS = ("band", "pixel", "series", "parallel")
CLASS, MEAN, CENTRE = POOLINGS = ("class", "mean", "centre")


@dataclass(frozen=True)
class Layers:
    """Heads and MLP ratios of the layers of a stream; as many as it is deep."""

    heads: Sequence[int]
    mlp: Sequence[float]


NONE = Layers((), ())


class SpectralTransformer(nn.Module):
    """A transformer over bands, over pixels, or of two streams.

    With band tokens, stride 1, pooling "class" and fusion it is the network of HyTAS.

    Args:
        shape: what the scene fixes; its patch may be larger than `patch_size`.
        tokens: "band", "pixel", "series" or "parallel".
        patch_size: side of the patch that is looked at, the centre of the one given.
        band_width: neighbouring bands stacked in a band token.
        band_stride: bands from one band token to the next.
        pooling: what the head reads of the (last) stream: "class", its class token; "mean", the
            mean of the other tokens; "centre", the centre pixel's. A parallel stream of bands,
            which has no centre, is then read at its class token.
        fusion: cross-layer fusion (CAF) in every stream.
        embed_dim: width E of all tokens.
        bands: layers of the bands' stream.
        pixels: layers of the pixels' stream.
        drop_path: stochastic depth of the last layer of each stream.

    Input: scaled patches (N, P, P, bands), float. Output: logits (N, classes).

    Raises:
        InputError: other tokens or pooling than these, or a patch without a centre.
    """

    def __init__(
        self,
        shape: InputShape,
        *,
        tokens: str,
        patch_size: int,
        band_width: int,
        band_stride: int,
        pooling: str,
        fusion: bool,
        embed_dim: int,
        bands: Layers = NONE,
        pixels: Layers = NONE,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        for gene, value, known in (("tokens", tokens, TOKENS), ("pooling", pooling, POOLINGS)):
            if value not in known:
                raise InputError(f"{gene} {value!r}: must be one of {', '.join(known)}")
        if patch_size % 2 == 0:
            raise InputError(f"patch {patch_size}: must be odd, for a patch has a centre")
        self.tokens, self.patch_size, self.pooling = tokens, patch_size, pooling
        if tokens != PIXEL:
            self.band_embed = SpectralEmbedding(patch_size, band_width, embed_dim, band_stride)
            count = 1 + -(-shape.bands // band_stride)
            self.band_stream = TokenStream(
                count, embed_dim, bands.heads, bands.mlp, fusion, drop_path
            )
        if tokens != BAND:
            self.pixel_embed = PixelEmbedding(shape.bands, patch_size, embed_dim)
            self.pixel_stream = TokenStream(
                1 + patch_size**2, embed_dim, pixels.heads, pixels.mlp, fusion, drop_path
            )
        read = embed_dim * (2 if tokens == PARALLEL else 1)
        self.norm = nn.LayerNorm(read)
        self.head = nn.Linear(read, shape.classes)
        initialise(self)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams there are: "band", "pixel", or both, in the order in which they run."""
        return (self.tokens,) if self.tokens in (BAND, PIXEL) else (BAND, PIXEL)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        return self.classify(*self.embed(patches))

    def embed(self, patches: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Band tokens (N, B, E) and pixel tokens (N, P * P, E), None where there are none."""
        patches = crop(patches, self.patch_size)
        bands = self.band_embed(patches) if BAND in self.streams else None
        pixels = self.pixel_embed(patches) if PIXEL in self.streams else None
        return bands, pixels

    def read_of(self, stream: str) -> slice:
        """The tokens of a stream that are read: their mean is what the head, or the other gets."""
        if self.tokens == SERIES and stream == BAND:
            return slice(0, 1)
        if self.pooling == MEAN:
            return slice(1, None)
        if self.pooling == CENTRE and stream == PIXEL:
            centre = 1 + self.patch_size**2 // 2
            return slice(centre, centre + 1)
        return slice(0, 1)

    def classify(
        self, bands: Tensor | None, pixels: Tensor | None, streams: nn.Module | None = None
    ) -> Tensor:
        """Embedded tokens -> logits (N, classes).

        `streams` may hold other streams than the network's own, which return only what is read.
        """
        read: list[Tensor] = []
        for name, tokens in ((BAND, bands), (PIXEL, pixels)):
            if tokens is None:
                continue
            context = read.pop() if self.tokens == SERIES and read else None
            if streams is None:
                left = getattr(self, f"{name}_stream")(tokens, context)[:, self.read_of(name)]
            else:
                left = getattr(streams, f"{name}_stream")(tokens, context)
            read.append(left if left.shape[1] == 1 else left.mean(dim=1, keepdim=True))
        joined = torch.cat(read, dim=2) if len(read) > 1 else read[0]
        logits: Tensor = self.head(self.norm(joined[:, 0]))
        return logits


def crop(patches: Tensor, patch_size: int) -> Tensor:
    """The centre (N, patch_size, patch_size, bands) of larger patches."""
    margin = (patches.shape[1] - patch_size) // 2
    if margin == 0:
        return patches
    return patches[:, margin : margin + patch_size, margin : margin + patch_size]
