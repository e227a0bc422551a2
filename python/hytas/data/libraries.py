"""Import the field's libraries when they are needed, and name the one that is missing."""

from importlib import import_module
from typing import Any

from hytas.errors import InputError


def library(module: str, argument: str, purpose: str, package: str = "") -> Any:
    """Return a module of another package, imported now.

    Args:
        module: its name, such as "rasterio.warp".
        argument: what the user named that needs it, for the message.
        purpose: what needs it, such as "a GeoTIFF".
        package: its name for pip, if it is another one.

    Raises:
        InputError: the package is not installed, as where hytas only classifies arrays.
    """
    try:
        return import_module(module)
    except ImportError:
        package = package or module.partition(".")[0]
        raise InputError(
            argument, rule=f"{purpose} needs the package {package}", hint=f"pip install {package}"
        ) from None
