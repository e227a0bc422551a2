"""True sizes of a table's networks: parameters as a budget counts them, with fusion."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hytas.proxies import no_pass
from hytas.spaces.costs import cost
from hytas.spaces.names import PAPER_SPACE, space_of
from hytas.spaces.shape import InputShape
from hytas.types import Floats

# Bands, classes and band group of the published scenes (HyTAS, supplementary tables 3-7).
SIZED_SCENES = {
    "indian": InputShape(200, 16, 7, 3),
    "houston": InputShape(144, 15, 7, 3),
    "pavia": InputShape(103, 9, 7, 7),
    "ksc": InputShape(176, 13, 7, 3),
    "salinas": InputShape(204, 16, 7, 3),
}
# The released code has this number of fusions at every depth, and `params_with_caf` counts them.
RELEASED_FUSIONS = 8


@dataclass(frozen=True, eq=False)
class Size:
    """Parameters (n,) of the exported networks, and the source of these figures.

    macs: multiply-accumulates (n,) of one patch; None if the scene's shape is not known.
    """

    params: Floats
    source: str
    macs: Floats | None = None


def scene_of(table: str) -> str | None:
    """Return the published scene at the start of a table's name, or None."""
    return next((scene for scene in SIZED_SCENES if table.lower().startswith(scene)), None)


def find_size(
    name: str,
    architectures: Sequence[Mapping[str, Any]],
    counts: Mapping[str, Floats],
    shape: InputShape | None,
) -> Size | None:
    """Return the true parameter counts of a table, or None if they are not known.

    The sources are, in this order: the given shape; the columns `params` (without fusion) and
    `params_with_caf` of the published tables, which reveal the number of tokens; the name of a
    published scene at the start of the table's name; the column `params` of `hytas score`.

    Args:
        counts: the columns `params` and `params_with_caf`, if the table has them.
        shape: bands, classes and patch of the scene, if the user gives them.
    """
    scene = scene_of(name)
    usual = shape or (None if scene is None else SIZED_SCENES[scene])
    macs = None if usual is None else _each(no_pass.macs, architectures, usual)
    counts = {key: values for key, values in counts.items() if np.isfinite(values).any()}
    fusions = counts["params_with_caf"] - counts["params"] if len(counts) == 2 else np.empty(0)
    paper = all(space_of(item) == PAPER_SPACE for item in architectures)
    if paper and shape is None and np.isfinite(fusions).any():
        fusion = np.nanmedian(fusions) / RELEASED_FUSIONS
        fused = np.array([max(0, len(item["num_heads"]) - 2) for item in architectures])
        source = "columns params and params_with_caf"
        return Size(counts["params"] + fused * fusion, source, macs)
    if usual is not None:
        source = "the shape given" if shape is not None else f"the shape of {scene}"
        return Size(_each(no_pass.params, architectures, usual), f"genes and {source}", macs)
    if "params" not in counts:
        return None
    reference = paper and _is_reference(counts["params"], architectures)
    left_out = ", without fusion" if reference else ""
    return Size(counts["params"], f"column params{left_out}")


def _is_reference(params: Floats, architectures: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a column counts like the released code, which leaves fusion out.

    Then the difference to our count is a multiple of the width plus a constant. With fusion it
    would depend on the depth.
    """
    shape = InputShape(bands=1, classes=1)
    reference = np.array([cost(item, shape, "reference_params") for item in architectures])
    width = np.array([float(item["embed_dim"]) for item in architectures])
    finite = np.isfinite(params)
    terms = np.stack([width, np.ones_like(width)], axis=1)[finite]
    if len(np.unique(width[finite])) < 3:
        return False
    rest = (params - reference)[finite]
    solution = np.linalg.lstsq(terms, rest, rcond=None)[0]
    return bool(np.abs(terms @ solution - rest).max() < 0.5)


def _each(
    cost: Callable[[Mapping[str, Any], InputShape, int], float],
    architectures: Sequence[Mapping[str, Any]],
    shape: InputShape,
) -> Floats:
    return np.array([cost(item, shape, 0) for item in architectures])
