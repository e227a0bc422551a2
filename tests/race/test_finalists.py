"""Which candidates race."""

from dataclasses import replace

import numpy as np

from hytas.race import diverse, size_classes
from hytas.search import Evaluation


def evaluation(number: int, **genes: object) -> Evaluation:
    return Evaluation(number, 0, {"space": "s", **genes}, {}, {}, {}, 0.0)


def test_finalists_are_of_every_kind_and_width() -> None:
    ranked = [
        evaluation(number, tokens=tokens, embed_dim=width, heads=[heads])
        for number, (tokens, width, heads) in enumerate(
            [("band", 64, 2), ("band", 64, 4), ("band", 48, 4), ("pixel", 64, 2), ("pixel", 64, 4)]
        )
    ]
    assert [item.id for item in diverse(ranked, 2)] == [0, 3]
    assert [item.id for item in diverse(ranked, 3)] == [0, 2, 3]
    assert [item.id for item in diverse(ranked, 9)] == [0, 1, 2, 3, 4]


def test_values_and_pairs_of_values_have_their_share() -> None:
    ranked = [
        evaluation(place, embed_dim=place, tokens=tokens, patch=patch)
        for place, (tokens, patch) in enumerate(
            [("band", 7)] * 5 + [("band", 5)] + [("pixel", 7)] + [("pixel", 5)]
        )
    ]
    assert [found.id for found in diverse(ranked, 2)] == [0, 7]
    # Band tokens with patch 7 come first, and again when each other pair has one.
    assert [found.id for found in diverse(ranked, 3)] == [0, 1, 7]
    assert [found.id for found in diverse(ranked, 5)] == [0, 1, 5, 6, 7]
    assert [found.id for found in diverse(ranked, 7)] == [0, 1, 2, 3, 5, 6, 7]


def test_genes_that_do_nothing_and_depths_have_no_share() -> None:
    rows = [("none", 0), ("attention", 0), ("attention", 1), ("attention", 2), ("none", 2)]
    ranked = [
        evaluation(place, tokens="pixel", patch=7, pixel_mixer=mixer, pixel_depth=depth)
        for place, (mixer, depth) in enumerate(rows)
    ]
    # Without a layer there is no mixer; after the first, "attention" and "none" come once each.
    assert [found.id for found in diverse(ranked, 3)] == [0, 2, 4]


def sized(number: int, params: int, **genes: object) -> Evaluation:
    return replace(evaluation(number, **genes), costs={"params": params})


def test_known_architectures_race() -> None:
    ranked = [sized(place, 1000 - place, tokens="pixel", width=place) for place in range(20)]
    known = [{"space": "s", "tokens": "pixel", "width": 17}]
    assert 17 not in {one.id for one in diverse(ranked, 4)}
    assert 17 in {one.id for one in diverse(ranked, 4, known=known)}
    assert [one.id for one in diverse(ranked, 1, portfolio=True, known=known)] == [17]


def test_finalists_are_of_every_size_however_good_the_proxy_finds_large_ones() -> None:
    sizes = [1000 - 8 * place for place in range(100)] + [90, 80, 70]
    ranked = [sized(place, size, width=place) for place, size in enumerate(sizes)]
    chosen = [size_classes(sizes)[one.id] for one in diverse(ranked, 8)]
    assert chosen == sorted(chosen)
    assert np.bincount(chosen).tolist() == [5, 1, 1, 1]
    # A class that the budget does not reach leaves its places to the others.
    some = [size_classes(sizes)[one.id] for one in diverse(ranked[:100], 8)]
    assert np.bincount(some).tolist() == [6, 1, 1]


def test_kinds_that_won_before_have_a_third_of_the_places() -> None:
    """The best candidate of each, with the largest patches; the others are of many kinds."""
    kinds = [("attention", "no"), ("none", "yes"), ("conv5", "yes"), ("conv3", "yes")]
    ranked = [
        sized(
            100 * place + 10 * patch + at,
            1000 - at,
            tokens="pixel",
            pixel_mixer=mixer,
            pixel_gate=gate,
            pooling="mean",
            patch=patch,
            pixel_depth=1,
            embed_dim=80 - at,
        )
        for at in range(2)
        for patch in (1, 3, 5, 7)
        for place, (mixer, gate) in enumerate(kinds)
    ]
    first = {370, 270, 170, 350, 250, 150}  # conv3, conv5 and none: with 7 x 7 and 5 x 5 pixels
    assert first <= {one.id for one in diverse(ranked, 18, portfolio=True)}
    # Of few finalists, the first of the portfolio.
    assert {370, 270} <= {one.id for one in diverse(ranked, 6, portfolio=True)}
    # One of more layers and better rank does not take such a place.
    deep = replace(ranked[-1], id=999, architecture={**ranked[-1].architecture, "pixel_depth": 2})
    assert 370 in {one.id for one in diverse([deep, *ranked], 6, portfolio=True)}
    # A list of patches, one a layer, is of no kind of the portfolio.
    listed = [replace(one, architecture={**one.architecture, "patch": [7]}) for one in ranked]
    assert len(diverse(listed, 6, portfolio=True)) == 6
    # A candidate of a smaller class does not take such a place.
    small = [replace(one, costs={"params": 400}) if one.id == 370 else one for one in ranked]
    assert 371 in {one.id for one in diverse(small, 6, portfolio=True)}


def test_smaller_finalists_are_of_kinds_that_won_before() -> None:
    """What wins with a smaller budget also races with a larger one."""
    ranked = [
        sized(
            number,
            params,
            tokens="pixel",
            pixel_mixer=mixer,
            pixel_gate=gate,
            pooling="mean",
            patch=7,
            pixel_depth=1,
            embed_dim=number,
        )
        for number, (params, mixer, gate) in enumerate(
            (params, mixer, gate)
            for params in (1000, 300, 200, 50)
            for gate in ("no", "yes")
            for mixer in ("attention", "none", "conv5", "conv3")
        )
    ]

    def small(portfolio: bool, count: int = 8) -> list[tuple[str, str]]:
        chosen = diverse(ranked, count, portfolio=portfolio)
        genes = [one.architecture for one in chosen if one.costs["params"] <= 500]
        return [(one["pixel_mixer"], one["pixel_gate"]) for one in genes]

    assert small(portfolio=True) == [("conv3", "yes")] * 3
    assert small(portfolio=True, count=6) == [("conv3", "yes")] * 3  # of a quick run
    assert len(set(small(portfolio=False))) == 3
    for count in range(1, 7):  # few finalists begin with the largest size
        assert len(small(portfolio=True, count=count)) == min(3, count - 1)
