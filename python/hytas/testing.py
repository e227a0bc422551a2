"""Checks of a plug-in's parts, for its own tests: what hytas relies on, and does not look at again.

Each check takes what a decorator of `hytas.plugins` registered, and raises an `InputError` that
names the part and the broken rule. They take seconds, on data that they make themselves.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hytas._engine import Feasible
from hytas.data import open_cube, open_file
from hytas.data.products import PRODUCTS, Product
from hytas.data.record import Contents
from hytas.errors import InputError
from hytas.models import InputShape, as_network, build_network, count_parameters
from hytas.models.table import NETWORKS
from hytas.plugins import load_shipped
from hytas.proxies import PROXIES, Evaluator
from hytas.search import Evaluation, EvaluationStore, SearchWatch, StrategySettings, search
from hytas.search.strategies import STRATEGIES
from hytas.spaces import open_space
from hytas.spaces.keys import architecture_key
from hytas.spaces.shape import DATA_OF, IMAGES, ImageShape, Shape

__all__ = ["check_network", "check_product", "check_proxy", "check_strategy"]

SCENE, PICTURES = InputShape(bands=24, classes=5), ImageShape(3, 5, 32)
CLOSE = 1e-4
"""Largest relative difference of two computations of one value, in float32."""
DRAWN = 3
"""Architectures that a network or a proxy is tried on."""


def check_network(space: str, *, shape: Shape | None = None) -> None:
    """Check the networks of a space: a few of its architectures are built, run and derived.

    Args:
        space: name of the space.
        shape: of patches or images; None is a usual one.

    Raises:
        InputError: logits are not (N, classes), depend on other patches of the batch, on chance in
            eval mode or on the global generator; a parameter gets no gradient; a network does not
            derive from `hytas.models.Network`; the space counts other parameters than it has.
    """
    require = _rules("network", space)
    require(space in NETWORKS, "is registered by no plug-in")
    shape = shape or _shape_of(space)
    opened, architectures = _drawn(space, shape)
    for architecture in architectures:
        network, again = (as_network(build_network(architecture, shape), space) for _ in range(2))
        require(_same(network.state_dict(), again.state_dict()), "has other weights each time")
        patches, labels = _batch(shape)
        before = {name: value.clone() for name, value in network.state_dict().items()}
        network.eval()
        with torch.no_grad():
            logits, repeated = network(patches), network(patches)
            alone = torch.cat([network(one[None]) for one in patches])
        right = (len(patches), shape.classes)
        require(tuple(logits.shape) == right, f"gives logits {tuple(logits.shape)}, not {right}")
        require(bool(logits.isfinite().all()), "gives logits that are not finite")
        require(torch.equal(logits, repeated), "gives other logits each time in eval mode")
        rule = "gives a patch other logits where others are in its batch"
        require(torch.allclose(logits, alone, rtol=CLOSE, atol=CLOSE), rule)
        require(_same(network.state_dict(), before), "changes its weights in eval mode")
        if not network.closed_form:
            network.train()
            nn.functional.cross_entropy(network(patches), labels).backward()  # type: ignore[no-untyped-call]
            lost = [name for name, one in network.named_parameters() if one.grad is None]
            require(not lost, f"has parameters without a gradient: {', '.join(lost[:3])}")
        if "params" in opened.cost_names:
            counted, stated = count_parameters(network), opened.cost(architecture)["params"]
            require(counted == stated, f"has {counted} parameters, and its space counts {stated}")


def check_proxy(name: str, *, space: str = "hytas") -> None:
    """Check a proxy: its scores of a few architectures.

    Args:
        space: whose networks it scores.

    Raises:
        InputError: it has no docstring, gives no number, another number the second time or where
            others are scored, or changes the network or the patches.
    """
    require = _rules("proxy", name)
    require(name in PROXIES, "is registered by no plug-in")
    require(bool((PROXIES[name].function.__doc__ or "").strip()), "has no docstring")
    shape = _shape_of(space)
    _, architectures = _drawn(space, shape)
    patches, labels = (one.numpy() for one in _batch(shape))

    def scored(chosen: Sequence[Mapping[str, Any]], seed: int = 0) -> list[float]:
        batch = patches.copy(), labels.copy()
        scores = Evaluator(name, shape, batch=batch, seed=seed).score(chosen)
        for one in scores:
            require(
                not one["reasons"], f"gives no number: {next(iter(one['reasons'].values()), '')}"
            )
        require(np.array_equal(batch[0], patches), "changes the patches")
        return [one["scores"][name] for one in scores]

    together = scored(architectures)
    require(scored(architectures) == together, "gives another score the second time")
    for architecture, score in zip(architectures, together, strict=True):
        (alone,) = scored([architecture])
        close = math.isclose(alone, score, rel_tol=CLOSE, abs_tol=1e-12)
        require(close, f"scores {alone:g} alone, and {score:g} where others are scored")
    if PROXIES[name].pass_name == "network":
        network = build_network(architectures[0], shape).eval()
        before = {key: value.clone() for key, value in network.state_dict().items()}
        PROXIES[name].function(network, *_batch(shape))
        require(_same(network.state_dict(), before), "changes the weights of the network")


def check_strategy(name: str, *, space: str = "hytas", budget: str = "1M-params") -> None:
    """Check a strategy: a search of a few rounds, stopped and resumed, and one of failed scores.

    Args:
        space, budget: that it searches.

    Raises:
        InputError: it asks for what is no architecture, for other candidates after a stop or with
            the same seed, for the same ones with another seed, or fails where scores are NaN.
    """
    require = _rules("strategy", name)
    require(name in STRATEGIES, "is registered by no plug-in")
    shape = _shape_of(space)
    opened, bounds = open_space(space, budget, offered=shape.variables())

    def asked(path: Path, *, most: int = 16, seed: int = 0, fails: bool = False) -> list[str]:
        scores = _Scores(fails)
        with EvaluationStore(path) as store:
            search(
                Feasible(opened, bounds),
                scores,
                lambda items: [item.scores["score"] for item in items],
                StrategySettings(name, population=4, generations=4, seed=seed, chunk=1),
                store,
                watch=SearchWatch(until=lambda: scores.count >= most),
                train=_trained,
            )
            return [architecture_key(item.architecture) for item in store.evaluations()]

    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.sqlite" for number in range(4)]
        whole = asked(paths[0])
        first = asked(paths[1], most=6)
        require(first == whole[: len(first)], "asks for other candidates with the same seed")
        require(asked(paths[1]) == whole, "asks for other candidates after a stop")
        require(asked(paths[2], seed=1) != whole, "asks for the same candidates by any seed")
        try:
            asked(paths[3], fails=True)
        except Exception as error:
            raise InputError("strategy", name, f"fails where scores are NaN: {error}") from error


def check_product(path: str | Path) -> None:
    """Check a product by a file of it: its cube is read whole and in parts.

    Raises:
        InputError: no product matches the file, its cube is read in other ways by rows, or its
            wavelengths are not one a band, finite and positive.
    """
    require = _rules("product", str(path))
    require(bool(_matching(path)), "is matched by no product")
    cube = open_cube(path)
    whole = np.asarray(cube[:])
    require(whole.ndim == 3, f"has a cube of {whole.ndim} axes, not rows, columns and bands")
    rows = np.concatenate([np.asarray(cube[row : row + 1]) for row in range(len(whole))])
    require(np.array_equal(whole, rows, equal_nan=True), "is read in other ways by rows")
    waves = cube.wavelengths
    if waves is not None:
        one_each = len(waves) == whole.shape[2] and bool((np.asarray(waves) > 0).all())
        require(one_each, "has wavelengths that are not one a band, finite and positive")


def _matching(path: str | Path) -> list[str]:
    """Return the names of the products that read a file."""
    load_shipped()
    registered, names = dict(PRODUCTS), list[str]()

    def recording(name: str, product: Product) -> Product:
        def refine(contents: Contents) -> Contents:
            names.append(name)
            return product.refine(contents)

        return product._replace(refine=refine)

    PRODUCTS.update({name: recording(name, one) for name, one in registered.items()})
    try:
        open_file(path)
    finally:
        PRODUCTS.update(registered)
    return names


def _rules(kind: str, name: str) -> Callable[[bool, str], None]:
    def require(holds: bool, rule: str) -> None:
        if not holds:
            raise InputError(kind, name, rule)

    return require


def _shape_of(space: str) -> Shape:
    return PICTURES if DATA_OF.get(space) == IMAGES else SCENE


def _drawn(space: str, shape: Shape) -> tuple[Any, list[dict[str, Any]]]:
    opened, bounds = open_space(space, offered=shape.variables())
    genomes = Feasible(opened, bounds).sample(DRAWN, 0)
    return opened, opened.unpack(genomes)


def _batch(shape: Shape) -> tuple[Tensor, Tensor]:
    """Return scaled patches (classes, P, P, bands) and a label each."""
    generator = torch.Generator().manual_seed(0)
    patches = torch.randn(shape.classes, shape.side, shape.side, shape.bands, generator=generator)
    return patches, torch.arange(shape.classes)


def _same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class _Scores:
    """Scores architectures by their keys; or fails at every second one."""

    def __init__(self, fails: bool) -> None:
        self._fails, self.count = fails, 0

    def score(self, architectures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [self._one(architecture) for architecture in architectures]

    def _one(self, architecture: Mapping[str, Any]) -> dict[str, Any]:
        self.count += 1
        failed = self._fails and self.count % 2 == 0
        value = math.nan if failed else float(sum(map(ord, architecture_key(architecture))))
        reasons = {"score": "fails, to see what follows"} if failed else {}
        return {"scores": {"score": value}, "reasons": reasons, "seconds": 0.0}


def _trained(asked: Sequence[tuple[Evaluation, int]]) -> list[dict[str, float]]:
    """Pretend to train; a candidate without a score fails."""
    return [
        {"steps": float(steps), "seconds": 0.0}
        | ({} if math.isnan(value) else {"accuracy": value % 97 / 97, "probability": 0.5})
        for item, steps in asked
        for value in [item.scores["score"]]
    ]
