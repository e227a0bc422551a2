"""The table of products: one file a mission, one line of registration here."""

from collections.abc import Callable
from typing import NamedTuple

from hytas.data.products import dlr, emit, neon, pace, prisma
from hytas.data.record import Contents


class Product(NamedTuple):
    """A product: a test of a file's contents, and their interpretation."""

    matches: Callable[[Contents], bool]
    refine: Callable[[Contents], Contents]


PRODUCTS = (
    Product(emit.matches, emit.refine),
    Product(prisma.matches, prisma.refine),
    Product(pace.matches, pace.refine),
    Product(neon.matches, neon.refine),
    Product(dlr.matches, dlr.refine),
)


def refined(contents: Contents) -> Contents:
    """Return the contents of a file as those of the product that it is, if it is one."""
    for product in PRODUCTS:
        if product.matches(contents):
            return product.refine(contents)
    return contents
