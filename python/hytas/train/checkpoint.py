"""Keep the state of training in one safetensors file, which is complete or absent."""

from dataclasses import asdict
from pathlib import Path

import torch

from hytas.errors import InputError, one_line
from hytas.tensors import read_tensors, write_tensors
from hytas.train.learner import Learner
from hytas.train.state import Epoch, Moments, TrainingState

PARTS = ("weights", "average", "best", "buffers")
MOMENTS = ("mean", "square", "steps")


def save_checkpoint(path: Path, state: TrainingState) -> None:
    """Write weights, averages, buffers, optimiser moments and history of `state` to `path`."""
    tensors = {
        f"{part}.{name}": tensor for part in PARTS for name, tensor in getattr(state, part).items()
    }
    for name, moments in state.moments.items():
        for part in MOMENTS:
            tensors[f"{part}.{name}"] = getattr(moments, part)
    facts = {"history": [asdict(epoch) for epoch in state.history], "best_epoch": state.best_epoch}
    write_tensors(path, tensors, facts)


def load_checkpoint(path: Path, state: TrainingState, learner: Learner) -> None:
    """Bring `state` and the weights of its learner to where `save_checkpoint` left them."""
    facts, tensors = read_tensors(path)
    parts: dict[str, dict[str, torch.Tensor]] = {part: {} for part in (*PARTS, *MOMENTS)}
    try:
        for key, tensor in tensors.items():
            part, name = key.split(".", 1)
            own = state.weights.get(name)
            parts[part][name] = tensor if own is None or part == "steps" else tensor.to(own.device)
        learner.take(parts["weights"] | parts["buffers"])
        history, best_epoch = [Epoch(**epoch) for epoch in facts["history"]], facts["best_epoch"]
        moments = {name: Moments(*(parts[m][name] for m in MOMENTS)) for name in learner.weights}
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise InputError(
            path, rule=f"not a checkpoint of this network ({one_line(error)})"
        ) from None
    state.weights, state.moments = learner.weights, moments
    state.average, state.best = parts["average"], parts["best"]
    state.history, state.best_epoch = history, best_epoch
