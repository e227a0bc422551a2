"""Run one setting of `deploy.bench` with torch eager and an untrained network of the card."""

import json
import sys
from pathlib import Path

import torch

from hytas.data import Preprocessing
from hytas.deploy import DeployedModel
from hytas.deploy.bench import BenchSetting, example, print_times
from hytas.errors import InputError
from hytas.models import SensorModel, build_network
from hytas.models.counting import counted_cost
from hytas.models.table import input_shape


def main(argument: str) -> None:
    """Measure one setting in torch eager, and print the result.

    The time does not depend on the values of the weights, so the network is untrained.
    """
    setting = BenchSetting(**json.loads(argument))
    torch.set_num_threads(setting.threads)
    deployed = DeployedModel.load(setting.model, "cpu", threads=1)
    card = deployed.card
    preprocessing = Preprocessing.from_dict(card.preprocessing)
    shape = input_shape(card)
    params, file = counted_cost(card.architecture, shape, "params"), Path(setting.model).stat()
    if params > file.st_size:  # an int8 model has a byte for each
        raise InputError("model", setting.model, "is too small for the network of its metadata")
    network = build_network(card.architecture, shape)
    model = SensorModel(network, preprocessing, card.temperature).eval()
    device = "cuda" if setting.provider == "cuda" else "cpu"
    model.to(device)
    raw = example(deployed, (setting.batch, card.patch_size, card.patch_size, card.bands))
    patches = torch.from_numpy(raw)

    def call() -> None:
        with torch.inference_mode():
            model(patches.to(device)).cpu()

    print_times(call, setting.batch, setting.seconds)


if __name__ == "__main__":
    main(sys.argv[1])
