"""Candidates ranked among those of their kind."""

import numpy as np

from hytas.search.ranks import network_kind, rank_in_kinds


def genes(tokens: str, depth: int, width: int) -> dict[str, object]:
    return {"space": "s", "tokens": tokens, "depth": depth, "embed_dim": width, "mlp": [1] * depth}


def test_a_kind_is_labels_and_depths() -> None:
    assert network_kind(genes("a", 1, 8)) == network_kind(genes("a", 1, 64))
    assert network_kind(genes("a", 1, 8)) != network_kind(genes("b", 1, 8))
    assert network_kind(genes("a", 1, 8)) != network_kind(genes("a", 2, 8))
    assert network_kind(genes("a", 1, 8), depths=False) == network_kind(
        genes("a", 2, 8), depths=False
    )
    assert network_kind(genes("a", 1, 8), depths=False) != network_kind(
        genes("b", 1, 8), depths=False
    )
    # Genes of layers that are not there say nothing.
    absent = {"band_depth": 0, "band_mixer": "conv3"}
    assert network_kind(genes("a", 1, 8) | absent) == network_kind(
        genes("a", 1, 8) | {"band_depth": 0}
    )


def test_scores_of_other_kinds_change_no_rank() -> None:
    architectures = [genes("a", 1, 8)] * 3 + [genes("b", 1, 8)] * 2 + [genes("c", 1, 8)]
    values = np.array([1.0, 3.0, 2.0, 1000.0, np.nan, -5.0])
    kinds = [network_kind(each) for each in architectures]
    shares = rank_in_kinds(values, kinds)
    np.testing.assert_allclose(shares, [1 / 6, 5 / 6, 1 / 2, 1 / 2, np.nan, 1 / 2])
    values[3] = -1000.0
    np.testing.assert_array_equal(rank_in_kinds(values, kinds), shares)


def test_equal_scores_have_equal_ranks() -> None:
    shares = rank_in_kinds(np.array([2.0, 2.0, 1.0]), ["a"] * 3)
    np.testing.assert_allclose(shares, [2 / 3, 2 / 3, 1 / 6])


def test_without_scores_there_are_no_ranks() -> None:
    assert np.isnan(rank_in_kinds(np.full(2, np.nan), ["a", "b"])).all()
    assert rank_in_kinds(np.empty(0), []).shape == (0,)
