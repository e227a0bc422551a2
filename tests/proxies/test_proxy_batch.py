"""Networks of one kind as one padded batch, against each of them alone."""

import math

import pytest
import torch
from small_networks import SMALL, WIDE

from hytas.models.table import NETWORKS, free_genes
from hytas.proxies import PROXIES, Evaluator, Proxy, evaluator
from hytas.proxies.probe import TooLargeError
from hytas.spaces.shape import ImageShape

ALL = [
    *(name for name, proxy in PROXIES.items() if proxy.observes),
    *("logsynflow:domain=absolute", "logsynflow:sign=weights"),
    *("dss:layers=all:sign=released", "dss:sign=weights"),
    "synflow:terms=absolute:sign=weights",
]
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}

IMAGES = [
    {"space": "autoformer-mini", "depth": 2, "embed_dim": 32, "num_heads": [2, 3]},
    {"space": "pit-tiny", "base_dim": 16, "depth": [1, 1, 1], "num_heads": [1, 2, 2]},
    {
        "space": "s3",
        "embed_dim": 32,
        "window": [2, 2, 2, 2],
        **{f"depth_{n}": 1 for n in range(1, 5)},
    },
]
IMAGES[0] |= {"mlp_ratio": [2, 1]}
IMAGES[1] |= {"mlp_ratio": 2}
for stage in range(1, 5):
    IMAGES[2] |= {f"num_heads_{stage}": [stage], f"mlp_ratio_{stage}": [2]}


def others(architecture: dict) -> list[dict]:
    """Two architectures of the same kind: a narrow and shallow one, a broad and deep one."""
    found = []
    for size in (0, 1):
        made = dict(architecture)
        for gene in free_genes(architecture, labelled=True):
            value = architecture[gene]
            if "depth" in gene:
                made[gene] = (3, 4)[size] if value else 0
            elif gene == "embed_dim":
                made[gene] = (24, 48)[size]
            elif gene == "band_width" and architecture["tokens"] != "pixel":
                made[gene] = (3, 7)[size]
            elif gene == "mlp_ratio" and not isinstance(value, list):
                made[gene] = (1, 3)[size]
        for gene, value in made.items():
            if isinstance(value, list) and gene in free_genes(architecture, labelled=True):
                depth = {"band_mlp": "band_depth", "pixel_mlp": "pixel_depth"}.get(gene, "depth")
                layers = made.get(depth, len(value))
                layers = layers if isinstance(layers, int) else len(value)
                made[gene] = [(1, 2)[size] + layer % 2 for layer in range(layers)]
        found.append(made)
    return found


def setting_of(architecture, wide_shape, wide_batch):
    if architecture["space"].startswith("hytas"):
        return wide_shape, wide_batch
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(4, 16, 16, 3, generator=generator)
    return ImageShape(3, 4, 16, 4, 2), (images, torch.tensor([0, 1, 2, 3]))


@pytest.mark.parametrize(
    ("number", "precision"),
    [*((number, "float64") for number in range(12)), *((n, "float32") for n in (3, 8, 9, 10, 11))],
)
def test_every_proxy_of_a_batch_is_that_of_each_network(
    number, precision, wide_shape, wide_batch
) -> None:
    architecture = [*WIDE, SMALL[0], *IMAGES][number]
    shape, batch = setting_of(architecture, wide_shape, wide_batch)
    networks = [architecture, *others(architecture)]
    init = "own" if number % 3 == 0 else "pool"
    scorer = Evaluator(ALL, shape, batch=batch, seed=3, precision=precision, init=init)
    together = scorer.measure(networks, scorer.specs, scorer.setting)
    for one, values in zip(networks, together, strict=True):
        (alone,) = scorer.score_batch([one])
        # The formula of logsynflow has no value where a gradient is below -1.
        assert alone["reasons"].keys() <= {"logsynflow", "logsynflow:sign=weights"}
        for name, value in alone["scores"].items():
            close = pytest.approx(value, rel=TOLERANCE[precision], nan_ok=True)
            assert values[name] == close, name


def test_networks_of_every_family_are_compared() -> None:
    compared = {each["space"] for each in (*WIDE, SMALL[0], *IMAGES)}
    families = {space.partition("-")[0] for space in NETWORKS}
    assert families == {space.partition("-")[0] for space in compared}


def test_a_proxy_that_adds_up_all_networks_scores_them_one_by_one(wide_shape, monkeypatch) -> None:
    def of_all(layer):
        return (layer.grad * layer.weight).abs().sum()[None]

    monkeypatch.setitem(PROXIES, "of all", Proxy(of_all, "ones"))
    networks = [WIDE[0], *others(WIDE[0])]
    scorer = Evaluator("of all", wide_shape)
    together = [each["scores"] for each in scorer.score_batch(networks)]
    assert together == [scorer.score_batch([each])[0]["scores"] for each in networks]
    assert len({scores["of all"] for scores in together}) == 3


def test_band_tokens_of_small_patches_join_those_of_large_ones(wide_shape, monkeypatch) -> None:
    monkeypatch.setattr(evaluator, "LEAST_BATCH", {"cpu": 2})
    networks = [{**WIDE[0], "patch": side} for side in (1, 3, 5)]
    scorer = Evaluator("dss,synflow", wide_shape, precision="float64")
    assert scorer.batches(networks) == [[0, 1, 2]]
    for one, found in zip(networks, scorer.score(networks), strict=True):
        (alone,) = scorer.score_batch([one])
        assert found["scores"] == pytest.approx(alone["scores"], rel=1e-10)


def test_only_networks_of_a_kind_run_together(wide_shape, wide_batch, monkeypatch) -> None:
    monkeypatch.setattr(evaluator, "LEAST_BATCH", {"cpu": 2})
    broken = {**WIDE[0], "embed_dim": None}
    networks = [WIDE[0], WIDE[1], broken, *others(WIDE[0]), {**WIDE[0], "pooling": "mean"}]
    scorer = Evaluator("snip", wide_shape, batch=wide_batch)
    assert scorer.batches(networks) == [[0, 3, 4], [1], [2], [5]]
    results = scorer.score(networks)
    assert [bool(result["reasons"]) for result in results] == [n == 2 for n in range(6)]
    # One after another where that is as quick.
    monkeypatch.setattr(evaluator, "LEAST_BATCH", {})
    assert scorer.batches(networks) == [[n] for n in range(6)]


@pytest.mark.parametrize(
    ("error", "sizes"),
    [
        (TooLargeError(), [4, 2, 1, 1, 2, 1, 1]),
        (torch.OutOfMemoryError("CUDA out of memory"), [4, 2, 1, 1, 2, 1, 1]),
        (RuntimeError("vmap: no such rule"), [4, 1, 1, 1, 1]),
    ],
)
def test_a_batch_that_does_not_fit_is_halved(error, sizes, wide_shape, monkeypatch) -> None:
    networks = [WIDE[0]] * 4
    expected = Evaluator("dss", wide_shape).score(networks)
    score_networks, met = evaluator.score_networks, []

    def short_of_memory(start, specs, setting):
        met.append(start.count)
        if start.count > 1:
            raise error
        return score_networks(start, specs, setting)

    monkeypatch.setattr(evaluator, "score_networks", short_of_memory)
    found = Evaluator("dss", wide_shape).score_batch(networks)
    assert met == sizes
    assert [each["scores"] for each in found] == [each["scores"] for each in expected]


def test_a_batch_keeps_to_the_memory_of_activations(wide_shape, wide_batch, monkeypatch) -> None:
    monkeypatch.setattr(evaluator, "LEAST_BATCH", {"cpu": 2})
    monkeypatch.setattr(evaluator, "activation_memory", lambda device: 1)
    scorer = Evaluator("snip", wide_shape, batch=wide_batch)
    assert scorer.batches([WIDE[0]] * 3) == [[0], [1], [2]]
    with pytest.raises(TooLargeError):
        scorer.measure([WIDE[0]] * 3, scorer.specs, scorer.setting)
    assert all(math.isfinite(each["scores"]["snip"]) for each in scorer.score_batch([WIDE[0]] * 3))
