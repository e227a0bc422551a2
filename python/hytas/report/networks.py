"""Small drawings of networks: one bar a layer, instead of a list of genes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hytas.spaces.genes import active, describe_kind, gene_text, is_depth

_BAR, _GAP, _TALL = 9, 3, 30
_MOST_RATIO = 4.0
_PATCH = 3.2
"""Side of a pixel of the patch, in units of the drawing."""


@dataclass(frozen=True)
class Drawing:
    """A network as bars.

    Attributes:
        width: of the drawing; its height is `HEIGHT`.
        patch: side of the square that stands for the patch; 0 without one.
        bars: (x, y, width, height, class) of each layer.
        label: kind of the network in a few words.
    """

    width: float
    patch: float
    bars: Sequence[tuple[float, float, float, float, str]]
    label: str
    genes: str


HEIGHT = 2 * _TALL + 6


def draw_network(architecture: Mapping[str, Any]) -> Drawing:
    """Draw a network: the patch as a square, then a bar for each layer.

    The height of a bar is the layer's MLP ratio, its class the mixer. Streams that work in parallel
    are two rows; streams in series follow each other.

    Args:
        architecture: genes, as values or as texts ("3-4" for a list).
    """
    genes = active({name: _value(name, value) for name, value in architecture.items()})
    patch = genes.get("patch", 0)
    side = _PATCH * patch if isinstance(patch, int) else 0.0
    rows = [row for row in _streams(genes) if row]
    if genes.get("tokens") != "parallel":
        rows = [[bar for row in rows for bar in row]]
    start = side + 10 if side else 0.0
    bars = []
    for number, row in enumerate(rows):
        foot = (number + 1) * (HEIGHT / len(rows)) - 1
        tall = _TALL if len(rows) > 1 else 2 * _TALL
        for place, (ratio, kind) in enumerate(row):
            height = round(tall * (0.25 + 0.75 * min(1.0, ratio / _MOST_RATIO)), 1)
            x = round(start + place * (_BAR + _GAP), 1)
            bars.append((x, round(foot - height, 1), float(_BAR), height, kind))
    width = max((bar[0] + _BAR for bar in bars), default=start) + 2
    text = ", ".join(
        f"{name} {gene_text(value)}" for name, value in genes.items() if name != "space"
    )
    return Drawing(round(width, 1), round(side, 1), bars, _label(genes), text)


def _label(genes: Mapping[str, Any]) -> str:
    try:
        return describe_kind(genes)
    except (KeyError, TypeError, ValueError):  # genes of a space that this version does not know
        return ""


def _streams(genes: Mapping[str, Any]) -> list[list[tuple[float, str]]]:
    if "tokens" in genes:
        return [_stream(genes, name) for name in ("band", "pixel")]
    depths = [name for name in genes if is_depth(name)]
    return [
        _layers(genes[name], genes.get(name.replace("depth", "mlp_ratio")), "attention")
        for name in depths
    ]


def _stream(genes: Mapping[str, Any], name: str) -> list[tuple[float, str]]:
    gated = " gated" if genes.get(f"{name}_gate") == "yes" else ""
    kind = f"{genes.get(f'{name}_mixer')}{gated}"
    return _layers(genes.get(f"{name}_depth", 0), genes.get(f"{name}_mlp"), kind)


def _layers(depth: Any, ratios: Any, kind: str) -> list[tuple[float, str]]:
    count = sum(depth) if isinstance(depth, list) else depth
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= 99:
        return []
    listed = ratios if isinstance(ratios, list) else [ratios]
    numbers = [float(one) if isinstance(one, int | float) else 2.0 for one in listed] or [2.0]
    return [(numbers[min(place, len(numbers) - 1)], kind) for place in range(count)]


def _value(name: str, value: Any) -> Any:
    """Return a gene as a value; texts of lists have hyphens."""
    if not isinstance(value, str):
        return value
    parts = value.split("-")
    numbers = [_number(part) for part in parts]
    if any(number is None for number in numbers):
        return [] if value == "none" and name.endswith(("_mlp", "mlp_ratio")) else value
    return numbers if len(numbers) > 1 or name.endswith("_mlp") else numbers[0]


def _number(text: str) -> float | int | None:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return None
