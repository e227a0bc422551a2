"""A short, deterministic part of the fuzzing of all that reads files; `make fuzz` is the long."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import fuzz_judge
import pytest
from fuzz_judge import Judge
from fuzz_targets import TARGETS
from run_fuzz import inputs, judged

SHORT = 12


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """One worker for all targets."""
    with Judge() as shared:
        yield shared


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_inputs_are_read_or_refused(target: str, judge: Judge, tmp_path: Path) -> None:
    whole = len(TARGETS[target].corpus())
    for number, _, verdict in islice(judged(judge, target, 0, tmp_path), whole + SHORT):
        assert not verdict.is_failure, (target, number, verdict)


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_seed_gives_the_same_inputs(target: str) -> None:
    first = list(islice(inputs(target, 3), 12))
    assert first == list(islice(inputs(target, 3), 12))
    assert first[6:] != list(islice(inputs(target, 4), 12))[6:]


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("_abort", "crash"),
        ("_spin", "slow"),
        ("_allocate", "large"),
        ("_raise", "raised"),
        ("_refuse", "refused"),
    ],
)
def test_the_judge_notices(
    target: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_judge, "SECONDS", 0.5)
    monkeypatch.setattr(fuzz_judge, "MEGABYTES", 50)
    with Judge("fuzz_bad_targets") as judge:
        assert judge(target, tmp_path).kind == kind
