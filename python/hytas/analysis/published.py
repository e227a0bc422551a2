"""Figures that the authors of HyTAS published, to compare with ours.

Sources: Zhou et al., HyTAS, ECCV 2024: table 8 of the supplementary (`SIGN`, `SIGN_OA`), and the
figure of factors and accuracy, whose numbers stand in the authors' notebook (`FACTORS`).
"""

from collections.abc import Mapping

from hytas.analysis.size import SCENES

# Scene -> proxy -> Spearman's rho with and without the sign step. The last row of the table lacks
# a number, so of Salinas only what is certain stands here.
SIGN: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "indian": {"synflow": (0.60, 0.69), "logsynflow": (0.60, 0.73), "dss": (0.60, 0.69)},
    "houston": {"synflow": (0.53, 0.68), "logsynflow": (0.52, 0.74), "dss": (0.53, 0.67)},
    "pavia": {"synflow": (0.73, 0.69), "logsynflow": (0.73, 0.63), "dss": (0.73, 0.70)},
    "ksc": {"synflow": (0.71, 0.82), "logsynflow": (0.68, 0.84), "dss": (0.72, 0.82)},
    "salinas": {"synflow": (0.91, 0.93), "logsynflow": (0.89, 0.92)},
}
# The same for the accuracy of the network that the score puts first.
SIGN_OA: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "indian": {"synflow": (0.79, 0.81), "logsynflow": (0.79, 0.80), "dss": (0.80, 0.81)},
    "houston": {"synflow": (0.84, 0.88), "logsynflow": (0.84, 0.87), "dss": (0.84, 0.88)},
    "pavia": {"synflow": (0.90, 0.90), "logsynflow": (0.90, 0.90), "dss": (0.89, 0.90)},
    "ksc": {"synflow": (0.87, 0.89), "logsynflow": (0.87, 0.88), "dss": (0.89, 0.89)},
    "salinas": {"synflow": (0.92, 0.93), "logsynflow": (0.92, 0.89)},
}
# Scene -> gene -> Spearman's rho of the gene (the mean over layers) with the accuracy.
FACTORS: Mapping[str, Mapping[str, float]] = {
    "indian": {"depth": 0.28, "embed_dim": 0.61, "num_heads": 0.01, "mlp_ratio": -0.07},
    "houston": {"depth": 0.40, "embed_dim": 0.53, "num_heads": 0.03, "mlp_ratio": -0.02},
    "pavia": {"depth": 0.00, "embed_dim": 0.73, "num_heads": 0.01, "mlp_ratio": 0.05},
    "ksc": {"depth": 0.37, "embed_dim": 0.72, "num_heads": 0.01, "mlp_ratio": -0.05},
    "salinas": {"depth": 0.19, "embed_dim": 0.91, "num_heads": 0.02, "mlp_ratio": -0.01},
}


def scene_of(table: str) -> str | None:
    """Return the published scene at the start of a table's name, or None."""
    return next((scene for scene in SCENES if table.lower().startswith(scene)), None)


def sign_rho(scene: str | None, proxy: str) -> tuple[float, float] | None:
    """Return the published rho of a proxy with and without sign; None if it was not published."""
    return SIGN.get(scene or "", {}).get(proxy)
