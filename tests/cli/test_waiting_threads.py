"""Commands let torch's threads sleep early while they wait, or as the user's environment says."""

import os
import re
import subprocess

import pytest

from commands import command
from hytas.cli.main import SPIN_COUNT


def spin_count(**environment: str) -> str:
    """What libgomp says it took, in a process of `hytas` that imports torch."""
    clean = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    done = subprocess.run(
        command("doctor"),
        capture_output=True,
        text=True,
        check=False,
        env={**clean, "OMP_DISPLAY_ENV": "verbose", **environment},
    )
    found = re.search(r"GOMP_SPINCOUNT = '([^']+)'", done.stderr)
    if found is None:
        pytest.skip("this torch does not run on libgomp")
    return found.group(1)


def test_threads_sleep_early_unless_told_otherwise() -> None:
    assert spin_count() == SPIN_COUNT
    assert spin_count(GOMP_SPINCOUNT="77") == "77"
    assert spin_count(OMP_WAIT_POLICY="active") != SPIN_COUNT
