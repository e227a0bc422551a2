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
