"""Continuous targets: figures, closed-form fits, missing values, the network as it ships."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from hytas.data import load_scene
from hytas.data.targets import checked_targets
from hytas.errors import InputError
from hytas.metrics import value_figures, value_report, within_chance
from hytas.models.regression import (
    FITTED,
    STRENGTHS,
    derivative,
    inner_folds,
    pls_matrices,
    within_one_error,
)
from hytas.spaces.costs import linear_costs
from hytas.spaces.shape import InputShape
from hytas.tasks import Values, task_of
from hytas.tasks.values import conformal_widths
from hytas.types import Array

RANDOM = np.random.default_rng(0)
SPECTRA = RANDOM.normal(size=(90, 30)).cumsum(axis=1)
VALUES = np.stack([SPECTRA[:, 3] - SPECTRA[:, 9], np.tanh(SPECTRA[:, 20] / 3)], axis=1)


def solved(fit: str, values: Array, groups: Array | None = None) -> torch.nn.Module:
    network = FITTED[fit](SPECTRA.shape[1], values.shape[1], fit)
    network.solve(patches(SPECTRA[:60]), torch.from_numpy(np.float32(values[:60])), groups)
    return network


def patches(spectra: Array) -> torch.Tensor:
    return torch.from_numpy(np.float32(spectra))[:, None, None]


def r2_of_rest(network: torch.nn.Module, values: Array) -> Array:
    with torch.no_grad():
        predicted = network(patches(SPECTRA[60:])).numpy()
    return r2_score(values[60:], predicted, multioutput="raw_values")


@pytest.mark.parametrize(("fit", "least"), [("ridge", 0.999), ("pls", 0.95), ("kernel", 0.5)])
def test_fits_learn_a_matrix_and_cost_what_they_say(fit: str, least: float) -> None:
    network = solved(fit, VALUES)
    assert r2_of_rest(network, VALUES)[0] > least
    shape = InputShape(30, 2, 1, 3)
    assert linear_costs(fit, shape)["params"] == sum(one.numel() for one in network.parameters())


def test_kernel_learns_what_no_matrix_can() -> None:
    latent = RANDOM.normal(size=(90, 2))
    spectra = latent @ RANDOM.normal(size=(2, 30)) + 0.01 * RANDOM.normal(size=(90, 30))
    bent, errors = np.float32(latent[:, :1] ** 2), {}
    for fit in ("ridge", "kernel"):
        network = FITTED[fit](30, 1, fit)
        network.solve(patches(spectra[:60]), torch.from_numpy(bent[:60]))
        with torch.no_grad():
            errors[fit] = float(((network(patches(spectra[60:])).numpy() - bent[60:]) ** 2).mean())
    assert errors["kernel"] < 0.3 * errors["ridge"]


def test_a_missing_target_leaves_the_others_as_they_are() -> None:
    holes = VALUES.copy()
    holes[:20, 1] = np.nan
    whole, partly = solved("ridge", VALUES), solved("ridge", holes)
    assert_allclose(whole.head.weight[0].detach(), partly.head.weight[0].detach(), rtol=1e-5)
    task = Values(("a", "b"), ("", "")).fitted(holes)
    aims = torch.from_numpy(task.coded(holes))
    logits = torch.zeros(90, 2, requires_grad=True)
    task.loss(logits, task.aims(aims), None, 0.0).backward()
    assert not logits.grad[:20, 1].any()
    assert logits.grad[:20, 0].any()
    assert np.isfinite(task.merits(np.zeros((90, 2)), task.coded(holes))).all()


def test_folds_keep_groups_whole_and_one_error_prefers_the_first() -> None:
    groups = np.repeat(np.arange(12), 5)
    for held_out in inner_folds(60, groups):
        assert not set(groups[held_out]) & set(groups[~held_out])
    assert within_one_error(np.array([[2.0, 3.0], [1.1, 2.9], [1.0, 2.9]])) == 0
    assert len(STRENGTHS) > 20


def test_derivative_is_that_of_scipy() -> None:
    from scipy.signal import savgol_filter

    for order in (1, 2):
        matrix = derivative(30, order)
        assert matrix is not None
        expected = savgol_filter(SPECTRA, 11, 2, deriv=order, axis=1, mode="nearest")
        assert_allclose(SPECTRA @ matrix.T, expected, atol=1e-8)


def test_figures() -> None:
    truth, given = VALUES[:, 0], VALUES[:, 0] + RANDOM.normal(size=90) * 0.1 + 0.05
    found = value_figures(truth, given)
    assert found["R2"] == pytest.approx(r2_score(truth, given))
    assert found["RMSE"] == pytest.approx(float(np.sqrt(((given - truth) ** 2).mean())))
    assert found["RPD"] == pytest.approx(truth.std(ddof=1) / found["RMSE"])
    exact = value_figures(truth, truth)
    assert (exact["CCC"], exact["bias"], exact["RPIQ"]) == (pytest.approx(1.0), 0.0, None)
    table = value_report(VALUES, VALUES + 0.1, ("a", "b"), groups=np.repeat(np.arange(9), 10))
    low, high = table["per_target"]["a"]["intervals"]["R2"]
    assert low <= table["per_target"]["a"]["R2"] <= high


def test_intervals_hold_their_share() -> None:
    gaps = np.abs(RANDOM.normal(size=(4000, 1)))
    widths = conformal_widths(gaps[:2000])
    for level in (0.5, 0.8, 0.9):
        assert abs((gaps[2000:] <= widths[f"{level:g}"][0]).mean() - level) < 0.03
    assert conformal_widths(gaps[:5])["0.99"] == [None]


@pytest.mark.parametrize(
    ("values", "fractions", "argument"),
    [
        ([[1.0], [1.0]], False, "target_column"),
        ([[1.0], [np.inf]], False, "target_column"),
        ([[0.2, 0.2], [0.5, 0.5]], True, "fractions"),
    ],
)
def test_refused_targets(values: list[list[float]], fractions: bool, argument: str) -> None:
    names = [f"t{at}" for at in range(len(values[0]))]
    with pytest.raises(InputError) as refused:
        checked_targets("target_column", names, np.array(values), fractions=fractions)
    assert refused.value.argument == argument


def test_a_table_of_values(tmp_path: Path) -> None:
    rows = ["carbon,clay,field," + ",".join(f"{900 + 10 * at}" for at in range(4))]
    rows += [f"{0.1 * at},{'' if at == 2 else at},f{at // 3},1,2,3,{at}" for at in range(12)]
    (tmp_path / "soils.csv").write_text("\n".join(rows))
    scene = load_scene(
        tmp_path / "soils.csv",
        target_column=("carbon", "clay"),
        units=("%",) * 2,
        group_column="field",
    )
    assert scene.continuous is not None
    assert scene.continuous.names == ("carbon", "clay")
    assert np.isnan(scene.targets(np.array([2]))[0, 1])
    assert scene.groups is not None
    assert scene.groups.max() == 4
    task = task_of(scene).fitted(scene.targets(np.arange(12)))
    assert_allclose(
        task.decoded(task.coded(scene.targets(np.arange(2)))), [[0, 0], [0.1, 1]], atol=1e-6
    )
    other = replace(scene.continuous, units=("", ""))
    assert scene.with_targets(other).fingerprint != scene.fingerprint


def test_ridge_is_that_of_scikit_learn() -> None:
    """At one strength, on spectra as they are: the dual form gives the primal one's matrix."""
    from hytas.models.regression import Floats, ridge_matrix

    centred: Floats = SPECTRA - SPECTRA.mean(axis=0)
    wanted = VALUES[:, 0] - VALUES[:, 0].mean()
    own = ridge_matrix(centred, wanted, 16)
    strength = STRENGTHS[16] * len(wanted) * SPECTRA.shape[1]
    expected = Ridge(strength, fit_intercept=False).fit(centred, wanted).coef_
    assert_allclose(own, expected, rtol=1e-5, atol=1e-8)


def test_pls_is_that_of_scikit_learn_and_stands_a_lower_rank() -> None:
    matrices = pls_matrices(SPECTRA, VALUES[:, 0])
    for components in (1, 4):
        machine = PLSRegression(components, scale=False).fit(SPECTRA, VALUES[:, 0])
        assert_allclose(matrices[components - 1], machine.coef_[0], rtol=1e-6, atol=1e-9)
    thin = pls_matrices(SPECTRA[:, :2] @ np.ones((2, 6)), VALUES[:, 0])
    assert np.isfinite(thin).all()
    assert (thin[-1] == thin[-2]).all()


def test_another_instrument_gets_a_slope_and_a_bias() -> None:
    task = Values(("a", "b"), ("", "")).fitted(VALUES)
    other = VALUES * [2.0, 1.0] + [3.0, -1.0]
    other[4:, 1] = np.nan  # too few for a slope
    changed = task.recalibrated(VALUES, other)
    given = changed.decoded(task.coded(VALUES))
    assert_allclose(given[:, 0], other[:, 0], atol=1e-5)
    assert_allclose(given[:, 1], VALUES[:, 1] - 1.0, atol=1e-5)
    assert changed.high[0] == pytest.approx(max(VALUES[:, 0].max(), other[:, 0].max()))


def test_preparations_within_chance_of_the_least_error_are_averaged() -> None:
    noise = np.random.default_rng(0).normal(size=(3, 50))
    assert within_chance([noise[0] + 5, noise[1], noise[2] + 0.1]) == [False, True, True]
    assert within_chance([noise[1] + 1e-3, noise[1]]) == [False, True]  # always a little worse


def test_fractions_sum_to_one_in_networks_means_and_models() -> None:
    shares = np.random.default_rng(0).dirichlet([1, 2, 3], 50)
    task = Values(("soil", "green", "dry"), ("", "", ""), fractions=True).fitted(shares)
    logits = [np.log(shares).astype(np.float32) + shift for shift in (0.0, 5.0)]
    assert task.decoded(task.predicted(logits[1])) == pytest.approx(shares, abs=1e-6)
    assert task.merits(task.predicted(logits[0]), task.coded(shares)) == pytest.approx(1.0)
    mean = task.mean(logits)
    read_out = task.read_out()
    assert read_out is not None
    assert read_out(torch.from_numpy(mean)).numpy() == pytest.approx(shares, abs=1e-5)
    wanted = torch.from_numpy(task.coded(shares))
    assert task.loss(torch.from_numpy(logits[0]), wanted, None, 0.0) == pytest.approx(0, abs=1e-9)
    spectra = shares @ np.random.default_rng(1).uniform(size=(3, 20))
    for fit in task.fits:
        network = FITTED[fit](20, 3, fit)
        network.solve(patches(spectra), wanted)
        with torch.no_grad():
            given = read_out(network(patches(spectra))).numpy()
        assert given == pytest.approx(shares, abs=0.1), fit
        cost = linear_costs(fit, InputShape(20, 3, 1, 3))["params"]
        assert cost == sum(one.numel() for one in network.parameters())
