"""A small task that says what a worker is, before work is given to it."""

import functools
import platform
import socket
from collections.abc import Iterable
from importlib.metadata import version

from hytas.errors import InputError

Facts = dict[str, str]


def facts_here() -> Facts:
    """Return what must be alike on the driver and its workers, and the host's name."""
    python = ".".join(platform.python_version_tuple()[:2])
    versions = {name: _version(name) for name in ("hytas", "torch")}
    return {"host": socket.gethostname(), "python": python, **versions}


_version = functools.cache(version)


def check_facts(found: Iterable[Facts], engine: str, driver: Facts | None = None) -> None:
    """Refuse workers of another version.

    Args:
        found: of the workers.
        engine: what they belong to, for the message.
        driver: what they must have; None is what is here.

    Raises:
        InputError: naming the host, the package and both versions.
    """
    driver = driver or facts_here()
    for facts in found:
        for name in ("hytas", "torch", "python"):
            if facts[name] != driver[name]:
                raise InputError(
                    "workers",
                    engine,
                    f"{facts['host']} has {name} {facts[name]}, and the machine of the command has "
                    f"{driver[name]}",
                    hint="both must have the same",
                )
