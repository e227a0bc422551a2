"""Networks of the literature by name: one line each."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hytas.errors import InputError


class PublishedNetwork(NamedTuple):
    """A published architecture.

    Attributes:
        params: parameters for 224 x 224 RGB images and 1000 classes.
        source: where the genes stand, and how they differ elsewhere.
    """

    architecture: dict[str, Any]
    params: int
    source: str


def _vit(space: str, embed_dim: int, heads: str, ratios: str) -> dict[str, Any]:
    num_heads = [int(one) for one in heads.split()]
    return {
        "space": space,
        "depth": len(num_heads),
        "embed_dim": embed_dim,
        "num_heads": num_heads,
        "mlp_ratio": [float(one) for one in ratios.split()],
    }


def _pit(space: str, base: int, depth: list[int], heads: list[int], ratio: int) -> dict[str, Any]:
    return {
        "space": space,
        "base_dim": base,
        "depth": depth,
        "num_heads": heads,
        "mlp_ratio": ratio,
    }


def _s3(third: int, windows: tuple[int, ...]) -> dict[str, Any]:
    genes: dict[str, Any] = {"space": "s3", "embed_dim": 96, "window": list(windows)}
    for stage, (depth, heads) in enumerate([(2, 3), (2, 6), (third, 12), (2, 24)], start=1):
        genes |= {f"depth_{stage}": depth, f"num_heads_{stage}": [heads] * depth}
        genes[f"mlp_ratio_{stage}"] = [4] * depth
    return genes


_AUTOFORMER = "AutoFormer (ICCV 2021), released sub-network file"
_TF_TAS = "TF-TAS (CVPR 2022), supplementary, table"
_S3 = "S3 (NeurIPS 2021), released configuration"
_T, _S, _B = "autoformer-tiny", "autoformer-small", "autoformer-base"
PUBLISHED_NETWORKS: Mapping[str, PublishedNetwork] = {
    # AutoFormer-T has ratios of 3, which the released tiny space lacks.
    "autoformer-t": PublishedNetwork(
        _vit(
            "autoformer", 192, "3 3 3 3 3 3 3 3 3 3 4 3 3", "3.5 3.5 3 3.5 3 3 4 4 3.5 4 3.5 4 3.5"
        ),
        5_867_944,
        _AUTOFORMER,
    ),
    "autoformer-s": PublishedNetwork(
        _vit(_S, 384, "6 6 5 7 5 5 5 6 6 7 7 6 7", "3 3.5 3 3.5 4 4 4 4 4 4 4 3.5 4"),
        22_891_432,
        _AUTOFORMER,
    ),
    "autoformer-b": PublishedNetwork(
        _vit(_B, 576, "9 9 9 9 9 10 9 9 10 9 10 9 9 10", "3.5 3.5 4 3.5 4 3.5 3.5 3 4 4 3 4 3 3.5"),
        53_691_688,
        _AUTOFORMER,
    ),
    "tf-tas-ti": PublishedNetwork(
        _vit(_T, 192, "4 3 3 3 3 4 4 3 3 3 4 3 3", "3.5 4 3.5 3.5 4 3.5 3.5 3.5 4 4 4 4 3.5"),
        6_200_776,
        f"{_TF_TAS} B and released file; the table prints the eighth ratio as 4 (6,237,736)",
    ),
    "tf-tas-s": PublishedNetwork(
        _vit(_S, 384, "6 6 6 6 7 6 5 7 5 5 5 7 6 7", "4 4 4 3 4 3 3 3.5 4 3.5 3.5 4 3 3.5"),
        23_935_336,
        f"{_TF_TAS} B",
    ),
    "tf-tas-b": PublishedNetwork(
        _vit(
            _B, 576, "9 10 10 10 10 9 10 9 9 10 9 9 9 10 9", "4 4 4 3.5 3 3 3 4 3 3 3.5 4 3.5 4 3"
        ),
        57_134_920,
        f"{_TF_TAS} B",
    ),
    "tf-tas-pit-ti": PublishedNetwork(
        _pit("pit-tiny", 40, [2, 4, 4], [2, 4, 8], 2), 4_732_120, f"{_TF_TAS} D"
    ),
    # The table's row for level XS prints two numbers of heads for three stages.
    "tf-tas-pit-s": PublishedNetwork(
        _pit("pit-small", 36, [1, 4, 2], [3, 12, 12], 4), 14_450_536, f"{_TF_TAS} D"
    ),
    "s3-t": PublishedNetwork(_s3(6, (7, 7, 14, 7)), 28_328_674, _S3),
    # The paper's count is that of windows of 14; windows of 7 in the first two stages, as S3-T and
    # S3-B have, would be 10,080 position weights less.
    "s3-s": PublishedNetwork(_s3(18, (14, 14, 14, 7)), 49_737_298, _S3),
    "s3-b": PublishedNetwork(_s3(30, (7, 7, 14, 7)), 71_125_762, _S3),
}


def published_network(name: str, space: str | None = None) -> PublishedNetwork:
    """Return a published network by its name, such as "tf-tas-ti".

    Args:
        name: a key of `PUBLISHED_NETWORKS`; capitals do not matter.
        space: the space that it must be of; None accepts any.
    """
    network = PUBLISHED_NETWORKS.get(name.lower())
    if network is None:
        raise InputError("network", name, f"must be one of {', '.join(PUBLISHED_NETWORKS)}")
    of = network.architecture["space"]
    if space is not None and of != space:
        raise InputError("network", name, f"is of the space {of}, not of {space}")
    return network
