"""The networks of images against published counts, the engine's costs, and plain code."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from hytas._engine import Feasible, SearchSpace
from hytas.models import as_network, build_network, count_parameters
from hytas.models.counting import counted_cost
from hytas.models.positions import WindowAttention
from hytas.models.weight_sharing import full_sizes, slice_of
from hytas.spaces import open_space
from hytas.spaces.published import PUBLISHED_NETWORKS
from hytas.spaces.shape import DATA_OF, IMAGES, ImageShape

SPACES = [name for name, data in DATA_OF.items() if data == IMAGES]
IMAGENET = 224, 3, 1000


def shape_of(space: str, side: int, channels: int, classes: int) -> ImageShape:
    return ImageShape.of(space, channels, classes, side)


def drawn(space: str, shape: ImageShape, count: int) -> tuple[SearchSpace, list[dict[str, Any]]]:
    opened, _ = open_space(space, offered=shape.variables())
    genomes = Feasible(opened).sample(count, 3, "choices")
    return opened, [{"space": space, **genes} for genes in opened.unpack(genomes)]


def on_meta(architecture: dict[str, Any], shape: ImageShape) -> nn.Module:
    with torch.device("meta"):
        return build_network(architecture, shape).eval().requires_grad_(False)


def layers(text: str) -> list[float]:
    return [float(part) if "." in part else int(part) for part in text.split()]


def vit(space: str, embed: int, heads: str, ratios: str) -> dict[str, Any]:
    found = [int(each) for each in heads.split()]
    return {
        "space": space,
        "depth": len(found),
        "embed_dim": embed,
        "num_heads": found,
        "mlp_ratio": layers(ratios),
    }


@pytest.mark.parametrize("name", PUBLISHED_NETWORKS)
def test_published_networks_have_their_parameters(name: str) -> None:
    architecture, published, _ = PUBLISHED_NETWORKS[name]
    shape = shape_of(architecture["space"], *IMAGENET)
    assert count_parameters(on_meta(architecture, shape)) == published
    space = SearchSpace.builtin(architecture["space"])
    genes = {gene: value for gene, value in architecture.items() if gene != "space"}
    assert space.cost(genes)["params"] == published


def test_counts_of_the_papers() -> None:
    counts = {name: network.params for name, network in PUBLISHED_NETWORKS.items()}
    assert counts["autoformer-t"] == 5_867_944
    assert counts["autoformer-s"] == 22_891_432
    assert counts["autoformer-b"] == 53_691_688
    assert counts["tf-tas-ti"] == 6_200_776
    assert counts["tf-tas-s"] == 23_935_336
    assert counts["tf-tas-pit-ti"] == 4_732_120
    assert [counts[f"s3-{size}"] for size in "tsb"] == [28_328_674, 49_737_298, 71_125_762]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("side", "channels", "classes"), [IMAGENET, (37, 5, 7), (8, 1, 10)])
def test_costs_are_those_of_the_networks(space, side, channels, classes) -> None:
    shape = shape_of(space, side, channels, classes)
    opened, architectures = drawn(space, shape, 8 if side == 224 else 3)
    for place, architecture in enumerate(architectures):
        network = on_meta(architecture, shape)
        costs = opened.cost(architecture)
        assert costs["params"] == count_parameters(network), architecture
        initializers = as_network(network, "test").initializers()
        assert initializers.keys() == dict(network.named_parameters()).keys()
        if place < 2 and not space.startswith("autoformer"):
            assert costs["macs"] == counted_cost(architecture, shape, "macs")


def test_multiply_accumulates_of_a_vit_are_those_of_its_formula() -> None:
    shape = shape_of("autoformer-mini", 32, 3, 10)
    opened, architectures = drawn("autoformer-mini", shape, 3)
    for architecture in architectures:
        with torch.device("meta"):
            network = build_network({**architecture, "pooling": "class"}, shape).eval()
            network.stream.observer = lambda _: None  # so that the last layer computes all tokens
            with torch.no_grad(), FlopCounterMode(display=False) as counter:
                network(torch.empty(1, 32, 32, 3))
        assert counter.get_total_flops() == 2 * opened.cost(architecture)["macs"]


@pytest.mark.parametrize("space", SPACES)
def test_a_network_runs_with_slices_of_the_largest(space: str) -> None:
    shape = shape_of(space, 16, 2, 3)
    generator = torch.Generator().manual_seed(0)
    small = space in ("autoformer-mini", "pit-tiny")
    sizes = full_sizes(space, shape)
    _, architectures = drawn(space, shape, 12)
    full = {n: 0.1 * torch.randn(s, generator=generator) for n, s in sizes.items()} if small else {}
    images = torch.randn(2, 16, 16, 2, generator=generator)
    for architecture in architectures:
        network = on_meta(architecture, shape)
        for name, parameter in network.named_parameters():
            assert all(map(int.__le__, parameter.shape, sizes[name])), (architecture, name)
        if small:
            cut = {n: slice_of(n, full[n], p.shape) for n, p in network.named_parameters()}
            assert functional_call(network, cut, (images,)).isfinite().all()


def lively(architecture: dict[str, Any], shape: ImageShape) -> Any:
    """A network whose parameters are all large enough to change the logits."""
    network = build_network(architecture, shape).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return network.requires_grad_(False)


def plain_norm(norm: Any, values: Tensor) -> Tensor:
    centred = values - values.mean(-1, keepdim=True)
    spread = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / spread * norm.weight + norm.bias


def plain_block(block: Any, tokens: Tensor, attention: Any) -> Tensor:
    """A layer for one sample, tokens (T, E)."""
    tokens = tokens + attention(block.attention, plain_norm(block.norm1, tokens))
    hidden = F.gelu(F.linear(plain_norm(block.norm2, tokens), block.fc1.weight, block.fc1.bias))
    return tokens + F.linear(hidden, block.fc2.weight, block.fc2.bias)


def plain_attention(attention: Any, tokens: Tensor, pair: Any) -> Tensor:
    """Attention written token by token.

    `pair` says of (head, query, key): None if the key is not seen, else what is added to the
    logit, to the key and to the value.
    """
    dim, count = attention.head_dim, len(tokens)
    projected = F.linear(tokens, attention.qkv.weight, attention.qkv.bias)
    query, key, value = projected.view(count, 3, attention.heads, dim).unbind(1)
    rows = []
    for i in range(count):
        joined = []
        for h in range(attention.heads):
            seen = [(j, pair(h, i, j)) for j in range(count)]
            seen = [(j, extra) for j, extra in seen if extra is not None]
            logits = torch.stack(
                [query[i, h] @ (key[j, h] + k) * dim**-0.5 + b for j, (b, k, _) in seen]
            )
            weights = torch.exp(logits) / torch.exp(logits).sum()
            moved = torch.stack([value[j, h] + v for j, (_, _, v) in seen])
            joined.append(weights @ moved)
        rows.append(torch.cat(joined))
    return F.linear(torch.stack(rows), attention.proj.weight, attention.proj.bias)


def plain_patches(embed: Any, image: Tensor) -> Tensor:
    """Tokens (T, E) of an image (H, W, C), patch by patch."""
    weight, bias = embed.project.weight, embed.project.bias
    side, step = embed.project.kernel_size[0], embed.project.stride[0]
    places = range(0, image.shape[0] - side + 1, step)
    found = []
    for row in places:
        for column in places:
            patch = image[row : row + side, column : column + side].permute(2, 0, 1)
            found.append((weight * patch).sum((1, 2, 3)) + bias)
    return torch.stack(found)


@pytest.mark.parametrize("pooling", ["class", "mean"])
@pytest.mark.parametrize("relative", ["yes", "no"])
def test_vit_gives_the_logits_of_plain_code(pooling: str, relative: str) -> None:
    shape = ImageShape(2, 3, 6, 2)
    genes = vit("autoformer-mini", 8, "1 2", "2 1")
    network = lively({**genes, "pooling": pooling, "relative": relative}, shape)
    image = torch.randn(6, 6, 2, generator=torch.Generator().manual_seed(2))

    def attention(module: Any, tokens: Tensor) -> Tensor:
        places = module.places

        def pair(_: int, query: int, key: int) -> tuple[Any, Any, Any]:
            if places is None:
                return 0.0, 0.0, 0.0
            rows = columns = 0
            if query and key:
                (r, c), (s, d) = divmod(query - 1, 3), divmod(key - 1, 3)
                rows, columns = s - r + places.reach + 1, d - c + places.reach + 1
            return (
                0.0,
                places.key_rows[rows] + places.key_columns[columns],
                places.value_rows[rows] + places.value_columns[columns],
            )

        return plain_attention(module, tokens, pair)

    stream = network.stream
    tokens = torch.cat([stream.class_token[0], plain_patches(network.patch_embed, image)])
    tokens = tokens + stream.position[0]
    for block in stream.blocks:
        tokens = plain_block(block, tokens, attention)
    tokens = plain_norm(network.norm, tokens)
    read = tokens[0] if pooling == "class" else tokens[1:].mean(0)
    expected = F.linear(read, network.head.weight, network.head.bias)
    torch.testing.assert_close(network(image[None])[0], expected, rtol=1e-4, atol=1e-5)


def test_pit_gives_the_logits_of_plain_code() -> None:
    shape = ImageShape(1, 3, 8, 4, 2)
    genes = {"space": "pit-tiny", "base_dim": 4, "depth": [1, 1, 2], "num_heads": [4, 2, 4]}
    network = lively({**genes, "mlp_ratio": 2}, shape)
    image = torch.randn(8, 8, 1, generator=torch.Generator().manual_seed(2))

    def attention(module: Any, tokens: Tensor) -> Tensor:
        return plain_attention(module, tokens, lambda *_: (0.0, 0.0, 0.0))

    def pooled(pool: Any, tokens: Tensor) -> Tensor:
        side, weight = pool.side, pool.near.weight
        groups, wide = pool.near.groups, len(weight)
        laid = F.pad(tokens[1:].T.reshape(-1, side, side), (1, 1, 1, 1))
        found = []
        for row in range(0, side, 2):
            for column in range(0, side, 2):
                near = laid[:, row : row + 3, column : column + 3]
                each = near.view(groups, -1, 3, 3).repeat_interleave(wide // groups, 0)
                found.append((weight * each).sum((1, 2, 3)) + pool.near.bias)
        first = F.linear(tokens[:1], pool.embed_class.weight, pool.embed_class.bias)
        return torch.cat([first, torch.stack(found)])

    entry = network.entry
    embedded = plain_patches(network.patch_embed, image) + entry.position[0]
    tokens = torch.cat([entry.class_token[0], embedded])
    for stage, blocks in enumerate(network.stages):
        tokens = tokens if stage == 0 else pooled(network.pools[stage - 1], tokens)
        for block in blocks:
            tokens = plain_block(block, tokens, attention)
    read = plain_norm(network.norm, tokens[0])
    expected = F.linear(read, network.head.weight, network.head.bias)
    torch.testing.assert_close(network(image[None])[0], expected, rtol=1e-4, atol=1e-4)


def plain_windows(module: WindowAttention, tokens: Tensor) -> Tensor:
    side, window, shift = module.side, module.window, module.shift

    def pair(head: int, query: int, key: int) -> tuple[Any, Any, Any] | None:
        (r, c), (s, d) = divmod(query, side), divmod(key, side)
        if any((a - shift) // window != (b - shift) // window for a, b in ((r, s), (c, d))):
            return None
        return module.window_bias[head, r - s + window - 1, c - d + window - 1], 0.0, 0.0

    return plain_attention(module, tokens, pair)


@pytest.mark.parametrize(
    ("side", "window", "shifted"),
    [(4, 2, False), (4, 2, True), (5, 3, True), (5, 2, False), (3, 7, True)],
)
def test_windows_attend_as_plain_code(side: int, window: int, shifted: bool) -> None:
    torch.manual_seed(0)
    module = WindowAttention(6, 2, 4, side, window, shifted).requires_grad_(False)
    module.window_bias.normal_()
    tokens = torch.randn(2, side * side, 6)
    expected = torch.stack([plain_windows(module, each) for each in tokens])
    torch.testing.assert_close(module(tokens), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(module(tokens, slice(1, 3)), expected[:, 1:3], rtol=1e-4, atol=1e-5)


def test_swin_gives_the_logits_of_plain_code() -> None:
    shape = ImageShape(2, 3, 6, 1)
    genes = {"space": "s3", "embed_dim": 6, "window": [2, 2, 2, 2]}
    for stage, depth in enumerate([2, 1, 1, 1], start=1):
        genes |= {f"num_heads_{stage}": [1] * depth, f"mlp_ratio_{stage}": [2] * depth}
    network = lively(genes, shape)
    image = torch.randn(6, 6, 2, generator=torch.Generator().manual_seed(2))

    def merged(merge: Any, tokens: Tensor) -> Tensor:
        side = merge.side
        grid = torch.zeros(side + side % 2, side + side % 2, tokens.shape[1])
        grid[:side, :side] = tokens.view(side, side, -1)
        found = [
            torch.cat([grid[r, c], grid[r + 1, c], grid[r, c + 1], grid[r + 1, c + 1]])
            for r in range(0, side, 2)
            for c in range(0, side, 2)
        ]
        return F.linear(plain_norm(merge.norm, torch.stack(found)), merge.embed.weight)

    tokens = plain_norm(network.embed_norm, plain_patches(network.patch_embed, image))
    for stage, blocks in enumerate(network.stages):
        tokens = tokens if stage == 0 else merged(network.merges[stage - 1], tokens)
        for block in blocks:
            tokens = plain_block(block, tokens, plain_windows)
    read = plain_norm(network.norm, tokens).mean(0)
    expected = F.linear(read, network.head.weight, network.head.bias)
    torch.testing.assert_close(network(image[None])[0], expected, rtol=1e-4, atol=1e-4)
