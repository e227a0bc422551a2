"""The manifest of a folder: size and SHA-256 of each file when it was last written."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.files import parse_json, write_text

NAME = "manifest.json"


class Manifest:
    """The expected files of a folder. One process at a time may change it.

    A file is forgotten before it is written again, and recorded afterwards. So after a kill
    between the two, no complete file looks damaged.

    Attributes:
        damaged: whether the stored manifest was damaged; it then counts as empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / NAME
        self.damaged = False
        self._entries: dict[str, dict[str, Any]] = {}
        if self.path.is_file():
            try:
                self._entries = _checked(parse_json(self.path.read_bytes(), self.path))
            except InputError:
                self.damaged = True

    def __contains__(self, path: Path) -> bool:
        return path.name in self._entries

    def names(self) -> list[str]:
        """Return the names of the recorded files."""
        return sorted(self._entries)

    def fault(self, path: Path) -> str | None:
        """Return the fault of a recorded file; None if it has none, or was never recorded."""
        entry = self._entries.get(path.name)
        if entry is None:
            return None
        if not path.is_file():
            return "missing"
        facts = _describe(path)
        if facts["bytes"] != entry["bytes"]:
            return f"damaged ({facts['bytes']} bytes; {entry['bytes']} were written)"
        if facts["sha256"] != entry["sha256"]:
            return "damaged (its SHA-256 is not that of what was written)"
        return None

    def faults(self) -> dict[str, str]:
        """Return name -> fault for all recorded files that have one."""
        by_name = {name: self.fault(self._folder / name) for name in self.names()}
        return {name: fault for name, fault in by_name.items() if fault is not None}

    def record(self, paths: Iterable[Path]) -> None:
        """Store the present state of files; missing files are left out."""
        entries = {path.name: _describe(path) for path in paths if path.is_file()}
        if any(self._entries.get(name) != entry for name, entry in entries.items()):
            self._write({**self._entries, **entries})

    def forget(self, paths: Iterable[Path]) -> None:
        """Remove the entries of files that will be written again, or may be missing."""
        names = {path.name for path in paths}
        if names & set(self._entries):
            kept = {name: entry for name, entry in self._entries.items() if name not in names}
            self._write(kept)

    def _write(self, entries: Mapping[str, dict[str, Any]]) -> None:
        files = dict(sorted(entries.items()))
        text = json.dumps({"sha256": _digest(files), "files": files}, indent=1)
        write_text(self.path, text + "\n")
        self._entries = files


def _digest(files: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _checked(values: Any) -> dict[str, dict[str, Any]]:
    """Return the entries of a manifest, after a check of its own checksum and of each entry."""
    files = values.get("files") if isinstance(values, dict) else None
    if not isinstance(files, dict) or values.get("sha256") != _digest(files):
        raise InputError("manifest", rule="damaged")
    for name, entry in files.items():
        valid = isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}
        if not valid or Path(name).name != name:
            raise InputError("manifest", rule="damaged")
    return files


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}
