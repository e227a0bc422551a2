"""The spectral transformer: tokens that are bands, pixels, or both.

A token is a group of bands over the whole patch (group-wise spectral embedding, GSE), as in HyTAS
(Zhou et al., 2024) after SpectralFormer (Hong et al., TGRS 2022); or a pixel of the patch with all
its bands, as a vision transformer would have it. With both there is a stream of layers for each: in
parallel (their read-outs are joined before the head) or in series (the read-out of the bands'
stream enters the pixels' stream). The layers of a stream mix its tokens by attention, by
convolutions, or not at all.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hytas.errors import InputError
from hytas.models.blocks import NO_DROP, Drop, Layers
from hytas.models.layers import PixelEmbedding, SpectralEmbedding
from hytas.models.linear import LinearSkip, PixelsAndHeads, centre_of, centre_row
from hytas.models.network import Network, RowParts
from hytas.models.numberless import shared
from hytas.models.pretreatment import Pretreatment
from hytas.models.streams import TokenStream, initialise
from hytas.spaces.shape import InputShape
from hytas.types import Architecture

BAND, PIXEL, SERIES, PARALLEL = TOKENS = ("band", "pixel", "series", "parallel")
CLASS, MEAN, CENTRE = POOLINGS = ("class", "mean", "centre")


def switch(gene: str, value: Any) -> bool:
    """Return the truth value of a gene that is yes or no."""
    if value not in ("yes", "no"):
        raise InputError(gene, value, "must be yes or no")
    return bool(value == "yes")


class SpectralTransformer(Network):
    """A transformer over bands, over pixels, or of two streams.

    With band tokens, stride 1, pooling "class" and fusion it is the network of HyTAS.

    Args:
        shape: of the scene; its patch may be larger than that of the genes.
        genes: "tokens": "band", "pixel", "series" or "parallel"; "patch": side of the patch that is
            looked at, the centre of the one given; "band_width": neighbouring bands stacked in a
            band token; "band_stride": bands from one band token to the next; "pooling": what the
            head reads of the (last) stream: "class", its class token, "mean", the mean of the other
            tokens, or "centre", the centre pixel's (a stream of bands, which has no centre, is then
            read at its class token, as is one in series; the mean is read of a stream without a
            class token, unless it is read at its centre); "fusion": "yes" for cross-layer fusion
            (CAF) in every stream; "embed_dim": width E of all tokens; "skip": "linear" adds the
            logits of a matrix on the bands of the centre pixel; "pretreatment": what is done to
            each spectrum first, "none" or that of `hytas.models.pretreatment.Pretreatment`.
        layers: of the streams "band" and "pixel", as far as there are such tokens.

    Input: scaled patches (N, P, P, bands), float. Output: logits (N, classes).

    Raises:
        InputError: other tokens or pooling than these, or a patch without a centre.
    """

    starts_by_streams = True

    def __init__(
        self,
        shape: InputShape,
        genes: Architecture,
        layers: Mapping[str, Layers],
        drop: Drop = NO_DROP,
    ) -> None:
        super().__init__()
        tokens, patch_size, pooling = (genes[name] for name in ("tokens", "patch", "pooling"))
        embed_dim, fusion = genes["embed_dim"], switch("fusion", genes["fusion"])
        for gene, value, allowed in (("tokens", tokens, TOKENS), ("pooling", pooling, POOLINGS)):
            if value not in allowed:
                raise InputError(gene, value, f"must be one of {', '.join(allowed)}")
        if patch_size % 2 == 0:
            raise InputError("patch", patch_size, "must be odd, for a patch has a centre")
        self.tokens, self.patch_size, self.pooling = tokens, patch_size, pooling
        kind = genes.get("pretreatment", "none")
        if kind != "none":  # by its own name: subnets of a supernet share none of another kind
            treat = shared("pretreatment", Pretreatment, kind, shape.bands)
            self.add_module(f"pretreatment_{kind}", treat)
        if tokens != PIXEL:
            bands, stride = layers[BAND], genes["band_stride"]
            sizes = (patch_size, genes["band_width"], embed_dim, stride)
            self.band_embed = shared(BAND, SpectralEmbedding, *sizes)
            grid = (-(-shape.bands // stride),)
            read = self._read(BAND, bands.attends)
            self.band_stream = TokenStream(grid, embed_dim, bands, fusion, drop, read)
        if tokens != BAND:
            pixels = layers[PIXEL]
            across = (shape.bands, patch_size, embed_dim, pixels.attends)
            self.pixel_embed = shared(PIXEL, PixelEmbedding, *across)
            square, read = (patch_size, patch_size), self._read(PIXEL, pixels.attends)
            self.pixel_stream = TokenStream(square, embed_dim, pixels, fusion, drop, read)
        heard = self.streams if tokens == PARALLEL else self.streams[-1:]
        self.norms = nn.ModuleDict({name: shared(name, nn.LayerNorm, embed_dim) for name in heard})
        if genes.get("skip", "none") == "linear":
            self.skip = shared("skip", LinearSkip, shape.bands, shape.classes, bool(shape.values))
        self.head = shared("head", nn.Linear, embed_dim * len(heard), shape.classes)
        initialise(self)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams there are: "band", "pixel", or both, in the order in which they run."""
        return (self.tokens,) if self.tokens in (BAND, PIXEL) else (BAND, PIXEL)

    @property
    def token_streams(self) -> Mapping[str, TokenStream]:
        """The streams by name."""
        return {name: getattr(self, f"{name}_stream") for name in self.streams}

    @property
    def pixel_projection(self) -> nn.Linear | None:
        """The linear map of a pixel's bands, if tokens are pixels."""
        return self.pixel_embed.project if PIXEL in self.streams else None

    @property
    def pretreatment(self) -> Pretreatment | None:
        """What is done to each spectrum first, if anything is."""
        return next((one for one in self.children() if isinstance(one, Pretreatment)), None)

    @property
    def linear_skip(self) -> LinearSkip | None:
        """The matrix on the bands of the centre pixel, if there is one."""
        return getattr(self, "skip", None)

    def seen(self, patches: Tensor) -> Tensor:
        """Return the centre of patches (N, P, P, bands) that the network looks at."""
        return crop(patches, self.patch_size)

    def strips(self) -> RowParts:
        """Return the parts of the network for whole rows of pixels."""
        pixels: nn.Module = _SharedPixels(self)
        row: nn.Module = _Row(self)
        if self.linear_skip is not None:
            pixels, row = PixelsAndHeads(pixels, [self.linear_skip]), _SkipRow(self, row)
        if self.pretreatment is not None:
            pixels = nn.Sequential(self.pretreatment, pixels)
        return RowParts(pixels, row)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, P, P, bands) -> (N, classes)."""
        patches = self.pretreated(self.seen(patches))
        logits = self.classify(
            self.band_embed(patches) if BAND in self.streams else None,
            self.pixel_embed(patches) if PIXEL in self.streams else None,
        )
        skip = self.linear_skip
        return logits if skip is None else logits + skip(centre_of(patches))

    def classify(self, bands: Tensor | None, pixels: Tensor | None) -> Tensor:
        """Map band tokens (N, B, E) and pixel tokens (N, P * P, E), if there are any, to logits."""
        read: list[Tensor] = []
        for name, embedded in ((BAND, bands), (PIXEL, pixels)):
            if embedded is None:
                continue
            context = read.pop() if self.tokens == SERIES and read else None
            left: Tensor = getattr(self, f"{name}_stream")(embedded, context)
            if name in self.norms:  # before the mean, so that every token counts alike
                left = self.norms[name](left)
            read.append(left if left.shape[1] == 1 else left.mean(dim=1, keepdim=True))
        joined = torch.cat(read, dim=2) if len(read) > 1 else read[0]
        logits: Tensor = self.head(joined[:, 0])
        return logits

    def _read(self, stream: str, attends: bool) -> slice:
        """Return the tokens of a stream whose mean the head, or the other stream, gets."""
        first = 1 if attends else 0  # of the tokens after the class token
        if self.pooling == CENTRE and stream == PIXEL:
            centre = first + self.patch_size**2 // 2
            return slice(centre, centre + 1)
        handed_on = self.tokens == SERIES and stream == BAND
        if not attends or (self.pooling == MEAN and not handed_on):
            return slice(first, None)
        return slice(0, 1)


class _SharedPixels(nn.Module):
    """The scaled bands of a pixel, its projection, or both: what its patches share."""

    def __init__(self, network: SpectralTransformer) -> None:
        super().__init__()
        self.keep_bands = BAND in network.streams
        self.project = network.pixel_projection

    def forward(self, scaled: Tensor) -> Tensor:
        """(..., bands) -> (..., F)."""
        if self.project is None:
            return scaled
        projected: Tensor = self.project(scaled)
        return torch.cat([scaled, projected], dim=-1) if self.keep_bands else projected


class _SkipRow(nn.Module):
    """The logits of a row of pixels, with those of the centre pixels that stand last."""

    def __init__(self, network: SpectralTransformer, row: nn.Module) -> None:
        super().__init__()
        self.row, self.classes = row, network.head.out_features

    def forward(self, features: Tensor) -> Tensor:
        """(P, W + P - 1, F + C) -> (W, C)."""
        logits: Tensor = self.row(features[..., : -self.classes])
        return logits + centre_row(features[..., -self.classes :])


class _Row(nn.Module):
    """The logits of a row of pixels, from shared features of the pixels around them."""

    def __init__(self, network: SpectralTransformer) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor) -> Tensor:
        """(P, W + P - 1, F) -> (W, C)."""
        network = self.network
        bands = pixels = None
        width = 0 if network.pixel_projection is None else network.pixel_projection.out_features
        if BAND in network.streams:
            bands = network.band_embed.of_strip(features[..., : features.shape[-1] - width])
        if width:
            pixels = network.pixel_embed.of_strip(features[..., features.shape[-1] - width :])
        return network.classify(bands, pixels)


def crop(patches: Tensor, patch_size: int) -> Tensor:
    """Return the centre (N, patch_size, patch_size, bands) of larger patches."""
    margin = (patches.shape[1] - patch_size) // 2
    if margin == 0:
        return patches
    return patches[:, margin : margin + patch_size, margin : margin + patch_size]
