"""Which candidates race."""

from hytas.race import diverse
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


def test_every_value_of_a_gene_that_is_no_size_has_its_share() -> None:
    ranked = [
        evaluation(place, embed_dim=place, tokens=tokens, patch=patch)
        for place, (tokens, patch) in enumerate(
            [("band", 7)] * 5 + [("band", 5)] + [("pixel", 7)] + [("pixel", 5)]
        )
    ]
    assert [found.id for found in diverse(ranked, 2)] == [0, 7]
    # Of eight, six are band tokens and six of patch 7: two of four have another value.
    assert [found.id for found in diverse(ranked, 4)] == [0, 1, 2, 7]
    assert [found.id for found in diverse(ranked, 6)] == [0, 1, 2, 3, 5, 7]
