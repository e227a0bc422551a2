"""Let one call of the file system fail in this process: the fault point.

`fsync:3` lets the third fsync fail, `rename:2` the second rename, `write:20000` every write beyond
20,000 bytes of a file. Only this process fails, and only once for fsync and rename.
"""

import errno
import os
import resource
import signal
from collections.abc import Callable
from typing import Any


def failing(call: Callable[..., Any], at: int) -> Callable[..., Any]:
    """`call`, but for the call number `at`, which says that the disk is broken."""
    count = 0

    def counted(*arguments: Any, **given: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return call(*arguments, **given)

    return counted


def inject(point: str) -> None:
    """Make one fault point of this process fail."""
    kind, number = point.split(":")
    if kind == "fsync":
        os.fsync = failing(os.fsync, int(number))
    elif kind == "rename":
        os.replace = failing(os.replace, int(number))
    elif kind == "write":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(number), resource.RLIM_INFINITY))
    else:
        raise SystemExit(f"fault point {point!r}: must be fsync:N, rename:N or write:BYTES")
