"""Refuse an architecture that no network can be built of."""

from collections.abc import Mapping
from typing import Any

from hytas.errors import InputError
from hytas.plugins import brought_by
from hytas.spaces import space_of
from hytas.spaces.checks import check_genes


def check_architecture(architecture: Mapping[str, Any]) -> None:
    """Refuse an architecture that no network can be built of.

    Raises:
        InputError: its space has no network; or, in a space of `hytas.spaces.checks.FREE`, a gene
            is missing or genes contradict each other.
    """
    from hytas.models.table import NETWORKS

    if (space := space_of(architecture)) not in NETWORKS:
        hint = brought_by("network", space)
        raise InputError("architecture space", space, f"not one of {', '.join(NETWORKS)}", hint)
    check_genes(architecture)
