"""Architectures small enough for naive float64 formulas: ragged heads, widths and depths."""

SMALL = [
    {
        "space": "hytas",
        "depth": len(heads),
        "embed_dim": embed_dim,
        "num_heads": heads,
        "mlp_ratio": ratios,
    }
    for embed_dim, heads, ratios in [
        (32, [3, 4, 5, 3], [1, 2, 3, 1]),
        (32, [3, 3, 6, 4, 3], [2, 2, 1, 1, 3]),
        (48, [6, 4, 5, 3], [1, 2, 1, 1]),
        (32, [3, 3, 3, 3], [1, 1, 1, 2]),
        (32, [3, 3, 3, 3, 4, 5], [1, 2, 1, 2, 1, 2]),
    ]
]


def _wide(tokens: str, bands: int, pixels: int, pooling: str, fusion: str) -> dict[str, object]:
    return {
        "space": "hytas-wide",
        "tokens": tokens,
        "patch": 3,
        "band_width": 3,
        "band_stride": 2,
        "pooling": pooling,
        "fusion": fusion,
        "embed_dim": 32,
        "band_depth": bands,
        "pixel_depth": pixels,
        "band_heads": [4, 2, 8, 4][:bands],
        "band_mlp": [1, 2, 1, 3][:bands],
        "pixel_heads": [2, 4, 4, 2][:pixels],
        "pixel_mlp": [2, 1, 3, 1][:pixels],
    }


# One of each kind of tokens.
WIDE = [
    _wide("band", 4, 0, "class", "yes"),
    _wide("pixel", 0, 3, "mean", "yes"),
    _wide("series", 2, 2, "centre", "no"),
    _wide("parallel", 3, 2, "class", "yes"),
]
