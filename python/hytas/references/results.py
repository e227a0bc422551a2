"""Keep the result of each fit in a JSON file, so that a stopped run can go on."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.files import file_lock, write_text


class ReferenceResults:
    """The accuracy report of each (method, seed).

    Several processes may share a file: each also writes the results of the others.

    Args:
        path: JSON file, which is replaced after every fit; None keeps nothing.
        setting: everything that decides a fit besides method and seed, JSON-ready.

    Raises:
        InputError: the file holds something else, or results of another setting.
        OSError: the file cannot be written.
    """

    def __init__(self, path: str | Path | None, setting: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.setting = json.loads(json.dumps(setting))
        self.runs: list[dict[str, Any]] = []
        self._write()  # fail before the first fit if the file cannot be written

    def get(self, method: str, seed: int) -> dict[str, Any] | None:
        """Return the result of a method and seed, or None."""
        for run in self.runs:
            if run["method"] == method and run["seed"] == seed:
                return run
        return None

    def fits(self, method: str, seed: int) -> Path | None:
        """Return the folder from which the fit of a method and seed resumes; None without a file.

        It is removed once the result is there.
        """
        if self.path is None:
            return None
        setting = hashlib.sha256(json.dumps(self.setting, sort_keys=True).encode()).hexdigest()
        return self.path.with_name(f"{self.path.name}.{method}-{seed}-{setting[:8]}.fits")

    def add(self, run: dict[str, Any]) -> None:
        """Keep a result: `method`, `seed`, `test` (accuracy report), `seconds`, `details`."""
        self.runs.append(run)
        self._write()
        if (fits := self.fits(run["method"], run["seed"])) is not None:
            shutil.rmtree(fits, ignore_errors=True)

    def _write(self) -> None:
        if self.path is None:
            return
        with file_lock(self.path.parent):
            if self.path.exists():
                theirs = self._read(self.path)
                stored = {(run["method"], run["seed"]) for run in theirs}
                mine = [run for run in self.runs if (run["method"], run["seed"]) not in stored]
                self.runs = [*theirs, *mine]
            content = {"hytas": "references", "setting": self.setting, "runs": self.runs}
            write_text(self.path, json.dumps(content, indent=1, allow_nan=False) + "\n")

    def _read(self, path: Path) -> list[dict[str, Any]]:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            setting, runs = dict(content["setting"]), list(content["runs"])
            for run in runs:
                run["method"], run["seed"], run["test"]["OA"]
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "out", path, "holds no results of reference methods", hint="name another file"
            ) from None
        differing = [
            f"{name.replace('_', ' ')} {self.setting.get(name)} (there {setting.get(name)})"
            for name in self.setting
            if self.setting.get(name) != setting.get(name)
        ]
        if differing:
            rule = f"belongs to another setting: {'; '.join(differing)}"
            hint = "name another file or repeat its settings"
            raise InputError("out", path, rule, hint)
        return runs
