"""TF-TAS at 224 pixels: published networks among random ones, by four proxies.

    python benchmarks/images.py --out build/tf-tas --networks dss=200,naswot=200,snip=100,grasp=50
    python benchmarks/images.py --out build/tf-tas --plain 8
    python benchmarks/images.py --out build/tf-tas --memory

The random networks are of `autoformer-tiny`, with 5.4 to 6.5 million parameters; every choice of a
gene has equal chances. Six generated textures, one of each kind, are the images; their labels are
six of 1000 classes. A score is one line of a file in the folder; the same call goes on, and more
networks extend it. Measure memory in a process of its own for each proxy, as `--memory` does.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hytas._engine import Feasible
from hytas.data.images.load import TEXTURES, textures
from hytas.lab.benchmark.make import draw_architectures
from hytas.models import build_network
from hytas.models.layers import Attention
from hytas.proxies import Evaluator
from hytas.proxies.initial import DrawnPool, start_of
from hytas.spaces import open_space
from hytas.spaces.shape import ImageShape

SPACE, CLASSES, SIDE = "autoformer-tiny", 1000, 224
BAND = "5.4M..6.5M-params"
PROXIES = ("dss", "naswot", "snip", "grasp")
PUBLISHED: dict[str, tuple[str, str]] = {  # name -> heads and ratios of the layers; width 192
    "AutoFormer-T": ("3333333333433", "3.5 3.5 3 3.5 3 3 4 4 3.5 4 3.5 4 3.5"),
    "TF-TAS-T": ("4333344333433", "3.5 4 3.5 3.5 4 3.5 3.5 3.5 4 4 4 4 3.5"),
    "TF-TAS-T, as printed": ("4333344333433", "3.5 4 3.5 3.5 4 3.5 3.5 4 4 4 4 4 3.5"),
}


def published() -> list[dict[str, Any]]:
    """Return the published networks; AutoFormer-T has ratios that the space does not list."""
    return [
        {
            "space": SPACE,
            "depth": len(heads),
            "embed_dim": 192,
            "num_heads": [int(each) for each in heads],
            "mlp_ratio": [float(each) for each in ratios.split()],
        }
        for heads, ratios in PUBLISHED.values()
    ]


def shape() -> ImageShape:
    """Return the shape of ImageNet's images."""
    return ImageShape.of(SPACE, 3, CLASSES, SIDE)


def random_networks(count: int) -> list[dict[str, Any]]:
    """Draw distinct networks inside the band; fewer of them are a beginning of more."""
    space, budget = open_space(SPACE, BAND, offered=shape().variables())
    found = draw_architectures(Feasible(space, budget), count, 0)
    return [{"space": SPACE, **genes} for genes in found]


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return six standardised images (6, 224, 224, 3), and their labels."""
    images = textures(each=1, side=SIDE).read(np.arange(len(TEXTURES))).astype(np.float32)
    labels = np.random.default_rng(0).choice(CLASSES, len(images), replace=False)
    return (images - images.mean((0, 1, 2))) / images.std((0, 1, 2)), labels


def score(folder: Path, proxy: str, count: int) -> None:
    """Score the networks that the file of a proxy lacks."""
    path = folder / f"{proxy}.jsonl"
    done = len(path.read_text().splitlines()) if path.exists() else 0
    every = published() + random_networks(max(count, 1))[:count]
    evaluator = Evaluator(proxy, shape(), batch=batch())
    for number in range(done, len(every)):
        began = time.process_time()
        (found,) = evaluator.score([every[number]])
        line = {
            "number": number,
            "score": found["scores"][proxy],
            "wall": found["seconds"],
            "cpu": time.process_time() - began,
        }
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def report(folder: Path) -> None:
    """Print where the published networks stand among the random ones."""
    print("| proxy | random networks | median CPU s |", " | ".join(PUBLISHED), "|")
    print("|---|---|---|" + "---|" * len(PUBLISHED))
    for proxy in (name for name in PROXIES if (folder / f"{name}.jsonl").exists()):
        rows = [json.loads(line) for line in (folder / f"{proxy}.jsonl").read_text().splitlines()]
        scores = np.array([row["score"] for row in rows])
        others = scores[len(PUBLISHED) :]
        below = [f"{np.mean(others < value):.0%}" for value in scores[: len(PUBLISHED)]]
        seconds = np.median([row["cpu"] for row in rows])
        print(f"| {proxy} | {len(others)} | {seconds:.2f} |", " | ".join(below), "|")
    if (folder / "dss.jsonl").exists():
        _sizes(folder)


def _sizes(folder: Path) -> None:
    """Print what the scores have to do with size."""
    from hytas.search.ranks import spearman

    space, _ = open_space(SPACE, offered=shape().variables())
    for proxy in (name for name in PROXIES if (folder / f"{name}.jsonl").exists()):
        lines = (folder / f"{proxy}.jsonl").read_text().splitlines()[len(PUBLISHED) :]
        scores = [json.loads(line)["score"] for line in lines]
        drawn = random_networks(max(1, len(scores)))[: len(scores)]
        params = [space.cost(each)["params"] for each in drawn]
        product = [each["depth"] * each["embed_dim"] for each in drawn]
        for name, values in (("params", params), ("depth x embed_dim", product)):
            if (found := spearman(scores, values)) is not None:
                print(f"{proxy}: Spearman with {name} {found:+.2f}")


def plain_dss(network: nn.Module, _: tuple[Tensor, Tensor]) -> float:
    """Return DSS by TF-TAS's Algorithm 1, written out."""
    network(torch.ones(1, SIDE, SIDE, 3)).sum().backward()
    total = 0.0
    for block in network.modules():
        if isinstance(block, Attention):
            for layer in (block.qkv, block.proj):
                norms = [torch.linalg.matrix_norm(w, "nuc") for w in _pair(layer)]
                total += float((norms[0] * norms[1]).abs())
        elif hasattr(block, "fc1"):
            for layer in (block.fc1, block.fc2):
                weight, grad = _pair(layer)
                total += float((weight * grad).abs().sum())
    return total


def plain_snip(network: nn.Module, data: tuple[Tensor, Tensor]) -> float:
    """Return SNIP, written out."""
    F.cross_entropy(network(data[0]), data[1]).backward()
    linear = [each for each in network.modules() if isinstance(each, nn.Linear | nn.Conv2d)]
    return sum(float((weight * grad).abs().sum()) for weight, grad in map(_pair, linear))


def _pair(layer: Any) -> tuple[Tensor, Tensor]:
    assert layer.weight.grad is not None
    return layer.weight.detach(), layer.weight.grad


PLAIN: dict[str, Callable[..., float]] = {"dss": plain_dss, "snip": plain_snip}


def beside_plain(count: int) -> None:
    """Print CPU seconds a network, of `hytas` and of the plain loop, and how far scores differ."""
    torch.set_num_threads(1)
    networks, data = random_networks(count), batch()
    tensors = torch.from_numpy(data[0]), torch.from_numpy(data[1])
    for proxy, formula in PLAIN.items():
        evaluator = Evaluator(proxy, shape(), batch=data)
        pool = DrawnPool(0, torch.device("cpu"), torch.float32)
        ours, plain, apart = [], [], []
        for architecture in networks:
            began = time.process_time()
            value = evaluator.score([architecture])[0]["scores"][proxy]
            ours.append(time.process_time() - began)
            began = time.process_time()
            start = start_of(architecture, shape(), pool)
            network = build_network(architecture, shape()).eval()
            network.load_state_dict(start.values)
            expected = formula(network, tensors)
            plain.append(time.process_time() - began)
            apart.append(abs(value / expected - 1.0))
        print(
            f"{proxy}: {np.median(ours):.2f} s, plain loop {np.median(plain):.2f} s "
            f"({count} networks); scores differ by {max(apart):.1e} at most"
        )


def memory(proxy: str) -> None:
    """Print the peak of this process, before and after it scores TF-TAS-T."""
    torch.set_num_threads(1)
    data = batch()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (found,) = Evaluator(proxy, shape(), batch=data).score(published()[1:2])
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{proxy}: {before >> 10} MiB before, {after >> 10} MiB at the peak {found['reasons']}")


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--networks", default="", help="PROXY=COUNT, comma-separated.")
@click.option("--plain", type=int, default=0, help="Networks timed beside the plain loop.")
@click.option("--memory", "measured", is_flag=True, help="Peak memory, a process a proxy.")
def main(out: Path, networks: str, plain: int, measured: bool) -> None:
    """Run what was asked for, and print the table of what is there."""
    out.mkdir(parents=True, exist_ok=True)
    for proxy, _, count in (each.partition("=") for each in networks.split(",") if each):
        score(out, proxy, int(count))
    if plain:
        beside_plain(plain)
    if measured:
        for proxy in PROXIES:
            code = f"import images; images.memory({proxy!r})"
            subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)
    report(out)


if __name__ == "__main__":
    main()
