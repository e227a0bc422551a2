"""Which command did which stage of a run, when, and how long it took: `times.json`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.run.folder import read_json, write_json


def read_times(path: Path) -> dict[str, dict[str, Any]]:
    """Stage -> "seconds", "ended" (UTC) and "command" ("" from Python); empty without a file.

    A file that is damaged counts as none: nothing is decided by it.
    """
    try:
        values = read_json(path)
    except (InputError, OSError):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, dict)}


def keep_time(path: Path, stage: str, seconds: float, command: str) -> None:
    """Keep what the last work on a stage took; that of a stage that was stopped is not in it.

    Raises:
        OSError: the file cannot be written.
    """
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    entry = {"seconds": round(seconds, 2), "ended": ended, "command": command}
    write_json(path, {**read_times(path), stage: entry})
