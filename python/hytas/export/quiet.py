"""Suppress the internal messages of libraries."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

_TALKATIVE = ("torch.onnx", "torch.export", "torch._export", "onnxscript", "onnx_ir", "root")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep messages about internals of torch and onnxscript off the user's terminal."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
