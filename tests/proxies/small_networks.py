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


def _wide(
    tokens: str,
    bands: int,
    pixels: int,
    pooling: str,
    fusion: str,
    mixer: str = "attention",
    gate: str = "no",
) -> dict[str, object]:
    kinds = {}
    for stream, depth in (("band", bands), ("pixel", pixels)):
        kinds[f"{stream}_mixer"] = mixer if depth else "attention"
        kinds[f"{stream}_gate"] = gate if depth else "no"
        kinds[f"{stream}_heads"] = 4 if depth and mixer == "attention" else 2
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
        **kinds,
        "band_mlp": [1, 2, 1, 3][:bands],
        "pixel_mlp": [2, 1, 3, 1][:pixels],
    }


# One of each kind of tokens, and one of each kind of layer.
WIDE = [
    _wide("band", 4, 0, "class", "yes"),
    _wide("pixel", 0, 3, "mean", "yes"),
    _wide("series", 2, 2, "centre", "no"),
    _wide("parallel", 3, 2, "class", "yes"),
    _wide("pixel", 0, 2, "mean", "no", "conv3", "yes"),
    _wide("band", 2, 0, "mean", "no", "conv5", "no"),
    _wide("series", 1, 2, "mean", "no", "none", "yes"),
    _wide("parallel", 1, 1, "class", "no", "attention", "yes"),
]
