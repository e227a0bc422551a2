"""Compare the time of networks, exported as they would be used."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hytas.deploy import DeployedModel
from hytas.deploy.bench import example, fastest
from hytas.export.onnx_file import to_onnx
from hytas.model_card import ModelCard
from hytas.models import SensorModel


def time_models(
    models: Sequence[tuple[SensorModel, ModelCard]],
    *,
    threads: int = 1,
    batch: int = 1,
    seconds: float = 0.3,
    progress: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Return the milliseconds of a call of each model in onnxruntime, the fastest of its calls.

    The models are measured in turn, so that a busy moment slows them all. On one thread it is the
    processor time, which other programs do not add to. The time does not depend on the values of
    the weights.

    Args:
        progress: called with the number of exported models and of all models.
    """
    calls: list[Callable[[], Any]] = []
    for model, card in models:
        content = to_onnx(model, card).SerializeToString()
        deployed = DeployedModel.from_bytes(
            content, "finalist", "cpu", threads=threads, one_call=True
        )
        side = card.patch_size
        patches = example(deployed, (batch, side, side, card.bands))
        calls.append(partial(deployed.run, patches))
        if progress is not None:
            progress(len(calls), len(models))
    return fastest(calls, seconds, time.process_time if threads == 1 else time.perf_counter)
