"""Which candidates race."""

from dataclasses import replace

import numpy as np

from hytas.race import diverse, relatives, size_classes, size_of
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


def test_finalists_are_of_every_size_however_good_the_proxy_finds_large_ones() -> None:
    sizes = [1000 - 8 * place for place in range(100)] + [90, 80, 70]
    ranked = [sized(place, size, width=place) for place, size in enumerate(sizes)]
    chosen = [size_classes(sizes)[one.id] for one in diverse(ranked, 8)]
    assert chosen == sorted(chosen)
    assert np.bincount(chosen).tolist() == [5, 1, 1, 1]
    # A class that the budget does not reach leaves its places to the others.
    some = [size_classes(sizes)[one.id] for one in diverse(ranked[:100], 8)]
    assert np.bincount(some).tolist() == [6, 1, 1]


def test_finalists_of_the_largest_sizes_alone() -> None:
    ranked = [sized(place, 900 - 100 * place, patch=place) for place in range(9)]
    assert [one.id for one in diverse(ranked, 4, (1,))] == [0, 1, 2, 3]
    # Where there are fewer large ones, smaller ones follow.
    assert [one.id for one in diverse(ranked, 6, (1,))] == [0, 1, 2, 3, 4, 5]


KINDS = [(mixer, gate, patch) for mixer in ("conv3", "none") for gate in "ny" for patch in (5, 7)]


def test_relatives_differ_from_a_leader_in_one_gene() -> None:
    """The first leader gives the first relative, the second one the second."""
    ranked = [
        sized(place, 1000 - place, mixer=mixer, gate=gate, patch=patch, embed_dim=80)
        for place, (mixer, gate, patch) in enumerate(KINDS)
    ]
    leaders = [ranked[3], ranked[4]]  # (conv3, y, 7) and (none, n, 5)
    found = relatives(leaders, {3, 4}, ranked, 4)
    # (conv3, n, 7), (conv3, n, 5), (conv3, y, 5), (none, n, 7): one gene from the leader whose turn
    # it is, the best rank first.
    assert [one.id for one in found] == [1, 0, 2, 5]


def test_of_the_kind_of_a_leader_there_are_relatives_of_every_size() -> None:
    sizes = (1000, 400, 200, 50)
    ranked = [
        sized(10 * place + at, size - place, mixer=mixer, gate=gate, patch=patch)
        for place, (mixer, gate, patch) in enumerate(KINDS)
        for at, size in enumerate(sizes)
    ]
    found = relatives([ranked[0]], {0}, ranked, 8)
    number = dict(
        zip((one.id for one in ranked), size_classes(list(map(size_of, ranked))), strict=True)
    )
    assert sorted(number[one.id] for one in found[:6]) == [0, 0, 0, 1, 2, 3]
    # The smaller ones are of the leader's kind: it has no other relative that is nearer.
    assert [one.id for one in found if number[one.id]] == [
        1,
        2,
        3,
        *[each.id for each in found[6:]],
    ]


def test_without_relatives_other_candidates_follow_by_rank() -> None:
    ranked = [evaluation(place, embed_dim=10 + place) for place in range(6)]
    assert [one.id for one in relatives([ranked[1]], {0, 1}, ranked, 3)] == [2, 3, 4]
    assert [one.id for one in relatives([], {0, 1}, ranked, 2)] == [2, 3]
    assert [one.id for one in relatives([ranked[0]], set(range(6)), ranked, 2)] == []
