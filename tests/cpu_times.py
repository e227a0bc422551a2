"""A plug-in that writes how much CPU time each file of tests takes, with its processes.

`make durations` writes `tests/durations.tsv` with it. Wall time says little on a shared machine.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TICK = os.sysconf("SC_CLK_TCK")
_LAST = [0.0]
_FILES: Counter[str] = Counter()


def seconds() -> float:
    """CPU seconds of this process and of all its children, those that have ended too."""
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            process = int(folder.name)
            children.setdefault(int(fields[1]), []).append(process)
            spent[process] = sum(map(int, fields[11:15])) / _TICK
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += spent.get(process, 0.0)
        waiting += children.get(process, [])
    return total


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", type=Path, help="write CPU seconds of each file here")


def pytest_sessionstart() -> None:
    _LAST[0] = seconds()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Give each report the CPU time since the one before it in this process."""
    outcome: Any = yield
    now = seconds()
    report = outcome.get_result()
    report.user_properties = [*report.user_properties, ("cpu_seconds", now - _LAST[0])]
    _LAST[0] = now


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _FILES[report.nodeid.partition("::")[0]] += dict(report.user_properties)["cpu_seconds"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--cpu-times")
    if path is None or hasattr(session.config, "workerinput"):
        return
    rows = [f"{spent:.1f}\t{file}" for file, spent in _FILES.most_common()]
    path.write_text("\n".join([f"{sum(_FILES.values()):.1f}\tall", *rows, ""]))
