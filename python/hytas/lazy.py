"""Imports on first use, so that `import hytas` is fast and optional packages may be missing."""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hytas.errors import InputError


def lazy(package: str, file: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: it imports a name when the name is first used.

    It reads the source of the package, so hytas is installed with its sources, outside archives.

    Args:
        file: source of the package. What it imports for type checkers, in its block of
            `TYPE_CHECKING`, are the names.
    """
    blocks = [node for node in ast.parse(Path(file).read_bytes()).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = {name.name: node.module or "" for node in imports for name in node.names}

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return attribute


def library(module: str, argument: str, purpose: str) -> Any:
    """Return a module of another package, imported now.

    Args:
        module: its name, such as "rasterio.warp".
        argument: of the user's, which needs the package, for the message.
        purpose: of the package, such as "a GeoTIFF".
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            argument, rule=f"{purpose} needs the package {package}", hint=f"pip install {package}"
        ) from None
