"""Proxies as the user writes them, and combinations of them."""

import numpy as np
import pytest

from hytas.errors import InputError
from hytas.proxies import base_proxies, fitness, parse_proxies, rank_mean


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("snip", ["snip"]),
        (" snip , dss,snip", ["snip", "dss"]),
        ("dss:sign=none:parts=log", ["dss:parts=log"]),
        ("dss:parts=log:sign=weights", ["dss:parts=log:sign=weights"]),
        ("rank-mean(snip, dss:parts=log),params", ["rank-mean(snip,dss:parts=log)", "params"]),
        ("dss : sign = weights", ["dss:sign=weights"]),
    ],
)
def test_canonical_text(text, canonical) -> None:
    specs = parse_proxies(text)
    assert [str(spec) for spec in specs] == canonical
    assert parse_proxies([str(spec) for spec in specs]) == specs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "name at least one of"),
        ("snpi", "proxy='snpi': unknown; did you mean snip?"),
        ("grad-norm", "did you mean grad_norm?"),
        ("qwertz", "unknown; choose from grad_norm"),
        ("snip:sign=on", "snip has no option 'sign'; its options are parts"),
        ("params:parts=log", "it has no options"),
        ("dss:sign=yes", "sign must be one of none, weights, released"),
        ("dss:layers=all:parts=log", "parts=log reads attention and MLP alone"),
        ("rank-mean(snip", "parentheses do not match"),
        ("rank-mean(snip)", "combine two or more"),
        ("rank-man(snip,dss)", "did you mean rank-mean?"),
        ("rank-mean(snip,dss)x", "nothing may follow"),
        ("rank-mean(snip,snip)", "two or more different plain proxies"),
        ("rank-mean", "say of which, such as rank-mean(snip,dss)"),
        ("(snip,dss)", "a combination has a name, such as rank-mean(snip,dss)"),
        ("dss:sign=weights:sign=none", "sign is given twice"),
        ("synflow:parts=log", "these terms have both signs; add terms=absolute"),
        ("logsynflow:parts=log", "add domain=absolute"),
    ],
)
def test_what_is_wrong_is_said(text, message) -> None:
    with pytest.raises(InputError) as caught:
        parse_proxies(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_combination_gives_way_to_its_members() -> None:
    specs = parse_proxies("rank-mean(snip,dss),dss,params")
    assert [str(spec) for spec in base_proxies(specs)] == ["snip", "dss", "params"]


def test_ranks() -> None:
    values = [3.0, np.nan, 1.0, 3.0]
    np.testing.assert_allclose(rank_mean([values]), [0.875, np.nan, 0.5, 0.875])
    np.testing.assert_allclose(rank_mean([[1, 2, 3, 4], [4, 3, 2, 1]]), [0.625] * 4)


def test_rank_mean_depends_on_the_set_alone() -> None:
    (spec,) = parse_proxies("rank-mean(snip,dss)")
    random = np.random.default_rng(0)
    scores = [{"snip": float(a), "dss": float(b)} for a, b in random.normal(size=(9, 2))]
    order = random.permutation(9)
    shuffled = fitness(spec, [scores[place] for place in order])
    np.testing.assert_array_equal(shuffled, fitness(spec, scores)[order])
    assert np.isnan(fitness(spec, [*scores, {"snip": 1.0, "dss": float("nan")}])[-1])
