"""The table of products: what a file means beyond its format. Plug-ins fill it.

The products of hytas lie in `hytas.missions`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hytas.data.record import Contents
from hytas.plugins import fill, load_shipped


class Product(NamedTuple):
    """A product, as `hytas.plugins.product` takes it."""

    matches: Callable[[Contents], bool]
    refine: Callable[[Contents], Contents]
    image_of: Callable[[Path], Path] | None = None


PRODUCTS: dict[str, Product] = {}
fill("product", PRODUCTS, lambda name, entry: Product(*entry))


def _latest_first() -> Iterator[Product]:
    load_shipped()
    return reversed(PRODUCTS.values())


def image_of(path: Path) -> Path:
    """Return the image of a product, given another file of it; any other path as it is."""
    for product in _latest_first():
        if product.image_of is not None:
            path = product.image_of(path)
    return path


def as_product(contents: Contents) -> Contents:
    """Return the contents of a file as those of the product that it is, if it is one."""
    for product in _latest_first():
        if product.matches(contents):
            return product.refine(contents)
    return contents
