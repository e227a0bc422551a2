"""The torture at its smallest: one job, one kill, one fault of each kind, two processes at once."""

import numpy as np
import pytest

from hytas.train.fit import Fitted
from hytas.train.loop import TrainingResult
from hytas.train.state import Epoch
from torture import JOBS, Torture, fault_points, what_is_there

SCORE = JOBS[-1]


@pytest.fixture(scope="module")
def torture(tmp_path_factory: pytest.TempPathFactory) -> Torture:
    return Torture(
        tmp_path_factory.mktemp("torture") / "work", seed=0, preload="hytas.proxies.evaluator"
    )


@pytest.mark.slow
def test_a_killed_job_ends_as_if_it_had_not_been(torture: Torture) -> None:
    torture.kill(SCORE, most=2)
    assert torture.failures == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["fsync:1", "rename:1", "write:500"])
def test_a_fault_is_told_and_leaves_nothing_wrong(torture: Torture, point: str) -> None:
    torture.fault(SCORE, point)
    assert torture.failures == []


@pytest.mark.slow
def test_two_processes_on_one_folder(torture: Torture) -> None:
    torture.twice(SCORE)
    assert torture.failures == []


def test_a_difference_is_found(torture: Torture) -> None:
    out = torture.folder / "made up"
    out.mkdir()
    (out / "a.csv").write_text("score,seconds\n1,2\n")
    before = what_is_there(out)
    (out / "a.csv").write_text("score,seconds\n1,3\n")
    assert what_is_there(out) == before  # seconds differ from run to run
    (out / "a.csv").write_text("score,seconds\n2,2\n")
    assert what_is_there(out) != before


def test_a_difference_of_fits_is_found(torture: Torture) -> None:
    out = torture.folder / "of fits" / "fits"
    out.mkdir(parents=True)
    found = []
    for logit, loss, seconds in (
        (1.0, 2.0, 3.0),
        (1.0, 2.0, 4.0),
        (1.0, 2.5, 3.0),
        (1.5, 2.0, 3.0),
    ):
        epoch = Epoch(1, 1, loss, None, None, None, seconds)
        logits = {"held": np.full((1, 2), logit)}
        fitted = Fitted(TrainingResult((epoch,), 1, False), logits, seconds=seconds)
        np.savez(out / "key.npz", **fitted.arrays())
        found.append(what_is_there(out.parent))
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert found[0] != found[3]


def test_fault_points_are_of_every_kind(torture: Torture) -> None:
    kinds = {point.split(":")[0] for point in fault_points(6, torture.random)}
    assert kinds == {"fsync", "rename", "write"}
