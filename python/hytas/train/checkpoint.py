"""Keep the state of training in one safetensors file, which is complete or absent."""

from dataclasses import asdict
from pathlib import Path

import torch

from hytas.errors import InputError, one_line
from hytas.tensors import read_tensors, write_tensors
from hytas.train.state import Epoch, TrainingState


def save_checkpoint(path: Path, state: TrainingState) -> None:
    """Write weights, averages, optimiser moments and history of `state` to `path`."""
    tensors = {
        f"{part}.{name}": tensor
        for part in ("network", "average", "best")
        for name, tensor in getattr(state, part).state_dict().items()
    }
    moments = state.optimizer.state_dict()["state"]
    for index, values in moments.items():
        for name, tensor in values.items():
            tensors[f"optimizer.{index}.{name}"] = torch.as_tensor(tensor)
    facts = {
        "history": [asdict(epoch) for epoch in state.history],
        "best_epoch": state.best_epoch,
    }
    write_tensors(path, tensors, facts)


def load_checkpoint(path: Path, state: TrainingState) -> None:
    """Restore `state` from a file that `save_checkpoint` wrote.

    Raises:
        InputError: the file is damaged, or is not a checkpoint of this network.
    """
    parts: dict[str, dict[str, torch.Tensor]] = {}
    facts, tensors = read_tensors(path)
    try:
        for key, tensor in tensors.items():
            part, name = key.split(".", 1)
            parts.setdefault(part, {})[name] = tensor
        for part in ("network", "average", "best"):
            getattr(state, part).load_state_dict(parts[part])
        history, best_epoch = [Epoch(**epoch) for epoch in facts["history"]], facts["best_epoch"]
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: not a checkpoint of this network ({one_line(error)})") from None
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in parts.get("optimizer", {}).items():
        index, name = key.split(".", 1)
        moments.setdefault(int(index), {})[name] = tensor
    groups = state.optimizer.state_dict()["param_groups"]
    state.optimizer.load_state_dict({"state": moments, "param_groups": groups})
    state.history, state.best_epoch = history, best_epoch
