"""Which networks a model averages, decided on records of held-out pixels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_candidate import CONFIG, trained

from hytas.data import Scene, load_scene
from hytas.decide.decisions import Conditions
from hytas.decide.members import choose_members, with_members
from hytas.decide.records import HeldOut
from hytas.metrics import log_mean
from hytas.results import NETWORK
from hytas.run.folder import read_json
from hytas.run.weights import load_weights
from hytas.spaces.names import FITS, VALUE_FITS
from hytas.tasks import Values

CLASSES = 3
EMPTY = np.zeros(0, np.int64)


def logits(targets: np.ndarray[Any, Any], right: float, seed: int) -> np.ndarray[Any, Any]:
    """Logits (n, C) of a network that has a share of the pixels right, and is sure of all."""
    generator = np.random.default_rng(seed)
    wrong = generator.random(len(targets)) > right
    predicted = (targets + wrong * generator.integers(1, CLASSES, len(targets))) % CLASSES
    return 7 * np.eye(CLASSES, dtype=np.float32)[predicted]


def record(pixels: int, network: float, linear: Sequence[float]) -> HeldOut:
    """Return a record of a table, whose pixels have no neighbours."""
    targets = np.arange(pixels) % CLASSES
    others = [logits(targets, right, 7 + number) for number, right in enumerate(linear)]
    return HeldOut(
        EMPTY,
        np.arange(pixels),
        targets,
        EMPTY,
        EMPTY,
        EMPTY,
        logits(targets, network, 1),
        np.zeros((0, CLASSES), np.float32),
        unlabelled_logits=np.zeros((0, CLASSES), np.float32),
        linear=np.stack(others) if others else np.zeros((0, 0, 1), np.float32),
    )


def chosen(held_out: HeldOut, fits: Any = lambda _: True) -> Any:
    return choose_members([held_out], None, Conditions(), FITS, fits)


def test_the_mean_ships_where_no_member_leads_beyond_chance() -> None:
    choice = chosen(record(60, 0.7, (0.7, 0.7, 0.7)))
    assert choice.members == (NETWORK, *FITS)
    assert choice.pixels == 60
    assert set(choice.losses) == {"network", "network+lda+softmax+rbf"}
    assert choice.describe().startswith("the model is the mean of network + lda + softmax + rbf; ")


def test_the_network_ships_alone_where_it_leads_beyond_chance() -> None:
    choice = chosen(record(600, 0.95, (0.4, 0.4, 0.4)))
    assert choice.members == (NETWORK,)
    line = choice.describe()
    assert line.startswith("network alone; loss of 600 validation pixels: network ")
    assert line.count(", ") == 1  # the mean of all is the other figure


def test_held_out_pixels_choose_no_mean_with_fewer() -> None:
    assert chosen(record(600, 0.9, (0.95, 0.0, 0.0))).members == (NETWORK,)
    assert chosen(record(600, 0.9, (0.95, 0.8, 0.8))).members == (NETWORK, *FITS)


def test_linear_networks_never_ship_without_the_network() -> None:
    assert chosen(record(600, 0.4, (0.95, 0.95, 0.95))).members == (NETWORK, *FITS)


def test_members_that_do_not_fit_the_budget_are_left_out() -> None:
    assert chosen(record(60, 0.7, (0.7, 0.7, 0.7)), lambda _: False).members == (NETWORK,)
    without = chosen(record(60, 0.7, (0.7, 0.7, 0.7)), lambda members: NETWORK not in members)
    assert without.members == (NETWORK,)
    assert chosen(record(60, 0.7, (0.7, 0.7, 0.7)), lambda members: len(members) < 3).members == (
        NETWORK,
        "lda",
    )


@pytest.mark.parametrize(("pixels", "linear"), [(9, (0.7, 0.7, 0.7)), (60, ())])
def test_with_few_pixels_or_without_linear_networks_the_network_ships(
    pixels: int, linear: Sequence[float]
) -> None:
    choice = chosen(record(pixels, 0.7, linear))
    assert choice.members == (NETWORK,)
    assert choice.reason


def test_the_record_of_a_mean_has_its_logits() -> None:
    whole = record(30, 0.7, (0.8, 0.9, 0.7))
    mean = whole.mean((NETWORK, "softmax"))
    np.testing.assert_array_equal(mean.logits, log_mean([whole.logits, whole.linear[1]]))
    assert whole.mean((NETWORK,)) is whole
    np.testing.assert_array_equal(mean.targets, whole.targets)


@pytest.mark.parametrize(
    ("errors", "members"),
    [
        ((5, 5, 0, 5), ("pls",)),
        ((1, -1, 5, 5), (NETWORK, "ridge")),
        ((2, 5, -1, -1), (NETWORK, "pls", "kernel")),
        ((3, 2, -1, -4), (NETWORK, *VALUE_FITS)),
        ((0.2, 0.2, 0, 0.2), (NETWORK, *VALUE_FITS)),  # by chance
    ],
)
def test_the_mean_of_values_ships_where_fewer_are_not_better_beyond_chance(
    errors: tuple[float, ...], members: tuple[str, ...]
) -> None:
    """Each method has an error of its own, which a mean cancels, and one that all have."""
    targets = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    network, *linear = (1.5 * targets + np.float32(error) for error in errors)
    held_out = HeldOut(
        EMPTY,
        np.arange(12),
        targets,
        EMPTY,
        EMPTY,
        EMPTY,
        network,
        network[:0],
        unlabelled_logits=network[:0],
        linear=np.stack(linear),
        task=Values(("a",), ("",), (0.0,), (1.0,), (-1.0,), (1.0,)),
    )
    choice = choose_members(
        [held_out], None, Conditions(has_probabilities=False), VALUE_FITS, lambda _: True
    )
    assert choice.members == members


def test_the_model_leaves_out_what_was_left_out(tmp_path: Path) -> None:
    """After two epochs a network is worse than what is fitted in closed form."""
    latent = np.random.default_rng(0).normal(size=(90, 3))
    spectra = latent @ np.random.default_rng(1).normal(size=(3, 24))
    table = np.column_stack([latent[:, 0], spectra + 0.01 * latent[::-1, :1]])
    names = ["carbon", *map(str, range(400, 640, 10))]
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header=",".join(names), comments="")
    scene = load_scene(tmp_path / "t.csv", target_column=["carbon"])
    config = replace(CONFIG, task="values", train_per_class=60, budget="20K-params")
    folder = trained(replace(config, space="hytas-wide"), scene, tmp_path / "run")
    model = load_weights(folder.weights)
    members = model.training["mean"]["members"]
    assert NETWORK not in members
    assert model.card.architecture == with_members(read_json(folder.architecture), members)
    assert not any("stream" in name for name, _ in model.network.named_modules())


def test_a_network_of_images_has_no_members(scene: Scene, tmp_path: Path) -> None:
    """What is fitted to spectra takes another input than a patch as an image."""
    config = replace(CONFIG, space="autoformer-mini", budget="30K-params", patch_size=5)
    folder = trained(config, scene, tmp_path / "run")
    assert load_weights(folder.weights).training["mean"]["members"] == [NETWORK]
