"""How a supernet is trained: one value, written to every run that trains one."""

from dataclasses import asdict, dataclass
from typing import Any

from hytas.errors import InputError

METHODS = ("uniform", "sandwich")
UNIFORM = ("choices", "architectures")


@dataclass(frozen=True)
class SupernetSettings:
    """Which subnets train in a step.

    Attributes:
        method: "uniform", one drawn subnet a step (AutoFormer, Algorithm 1); "sandwich", the
            largest, the smallest and two drawn ones, their gradients added (S3, Algorithm 1).
        uniform: what all are equally likely: "choices" of each gene, or "architectures".
        soft_labels: with "sandwich", the other subnets learn the probabilities of the largest one
            (Yu et al., BigNAS, ECCV 2020).
    """

    method: str = "uniform"
    uniform: str = "choices"
    soft_labels: bool = False

    def __post_init__(self) -> None:
        for name, known in (("method", METHODS), ("uniform", UNIFORM)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"supernet {name} {getattr(self, name)!r}: must be one of {', '.join(known)}"
                )
        if self.soft_labels and self.method != "sandwich":
            raise InputError(
                "supernet soft labels: are those of the largest subnet; they need the method "
                "sandwich"
            )

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)
