"""How a supernet is trained: one value, written to every run that trains one."""

from dataclasses import asdict, dataclass
from typing import Any

from hytas.settings import OneOf, check_settings, setting

METHODS = ("uniform", "sandwich")
UNIFORM = ("choices", "architectures")


@dataclass(frozen=True)
class SupernetSettings:
    """Which subnets train in a step."""

    method: str = setting(
        METHODS[0],
        "Subnets of a step: one drawn subnet (uniform; AutoFormer, Algorithm 1); or the largest "
        "and the smallest of 1000 drawn ones and two more, their gradients added (sandwich; S3, "
        "Algorithm 1).",
        rule=OneOf(METHODS),
    )
    uniform: str = setting(
        UNIFORM[0],
        "Draw every architecture with the same probability, or every choice of a gene.",
        rule=OneOf(UNIFORM),
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)
