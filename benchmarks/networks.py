"""Networks of pixel tokens with attention, which benchmarks train or measure."""

from typing import Any


def pixel_network(
    depth: int, embed_dim: int, mlp: int = 2, patch: int = 7, pooling: str = "class"
) -> dict[str, Any]:
    """Return an architecture of `hytas-wide` without a stream of bands.

    Args:
        mlp: width of the MLP of each layer over `embed_dim`.
    """
    return {
        "space": "hytas-wide",
        "tokens": "pixel",
        "patch": patch,
        "band_width": 3,
        "band_stride": 2,
        "pooling": pooling,
        "fusion": "no",
        "embed_dim": embed_dim,
        "band_depth": 0,
        "pixel_depth": depth,
        "band_mixer": "attention",
        "band_gate": "no",
        "band_heads": 2,
        "pixel_mixer": "attention",
        "pixel_gate": "no",
        "pixel_heads": 4,
        "band_mlp": [],
        "pixel_mlp": [mlp] * depth,
    }
