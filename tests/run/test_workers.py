"""Processes that train side by side."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, time
from hytas.run import workers

workers._workers = lambda context, trials: 2
workers._sendable = lambda context: None

def idle(message):
    print(os.getpid(), flush=True)
    time.sleep(120)

# Messages longer than a pipe holds: half of one waits in it when the parent goes.
jobs = lambda _: ((bytes(10**6),) for _ in range(8))
list(workers.side_by_side(None, idle, 8, jobs))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent_however_it_ends(how) -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert len({parent.stdout.readline() for _ in range(2)}) == 2
        parent.send_signal(how)
        # The output ends when the last process that holds it has.
        parent.communicate(timeout=30)
        assert parent.returncode == -how
