"""Spaces made from others: the same genes, with other values."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hytas.errors import InputError
from hytas.files import parse_json
from hytas.spaces.opening import space_text


def with_values(space: str, values: Mapping[str, Sequence[Any]], about: str = "") -> str:
    """Return the text of a space file: a space with other values of some genes.

    The gene's weights in a draw over choices are kept for values that it had.

    Args:
        space: name of a built-in space, or path of a space file.
        values: gene -> all values that it shall have.
        about: takes the place of the space's description, if there is one.
    """
    parsed = parse_json(space_text(space), space)
    genes = {gene["name"]: gene for gene in parsed["genes"]}
    for name, wanted in values.items():
        if name not in genes:
            raise InputError("space", space, f"has no gene {name!r}")
        gene = genes[name]
        weights = dict(zip(map(json.dumps, gene["values"]), gene.pop("weights", []), strict=False))
        kept = [weights.get(json.dumps(value)) for value in wanted]
        gene["values"] = list(wanted)
        if weights and all(weight is not None for weight in kept):
            gene["weights"] = kept
    if about:
        parsed["about"] = about
    return json.dumps(parsed, indent=1) + "\n"
