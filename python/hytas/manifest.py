"""The files of a folder as they were written last: size and SHA-256 of each, in one file."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.files import parse_json, write_text

NAME = "manifest.json"
_BLOCK = 2**20


class Manifest:
    """What a folder should hold. One process at a time may change it.

    A file is forgotten before it is written again, and recorded afterwards: whatever kills the
    process between, no whole file is taken for a damaged one.

    Attributes:
        damaged: whether what was found cannot be trusted; it was then taken as empty.
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
        """The files recorded, by name."""
        return sorted(self._entries)

    def fault(self, path: Path) -> str | None:
        """What is wrong with a file that was recorded; None if nothing is, or it never was."""
        entry = self._entries.get(path.name)
        if entry is None:
            return None
        if not path.is_file():
            return "missing"
        found = _describe(path)
        if found["bytes"] != entry["bytes"]:
            return f"damaged ({found['bytes']} bytes, {entry['bytes']} were written)"
        if found["sha256"] != entry["sha256"]:
            return "damaged (its SHA-256 is not that of what was written)"
        return None

    def faults(self) -> dict[str, str]:
        """What is wrong with which of the files recorded."""
        found = {name: self.fault(self._folder / name) for name in self.names()}
        return {name: fault for name, fault in found.items() if fault is not None}

    def record(self, paths: Iterable[Path]) -> None:
        """Keep the present state of files; those that are not there are left out.

        Raises:
            OSError: the manifest cannot be written.
        """
        entries = {path.name: _describe(path) for path in paths if path.is_file()}
        if any(self._entries.get(name) != entry for name, entry in entries.items()):
            self._write({**self._entries, **entries})

    def forget(self, paths: Iterable[Path]) -> None:
        """Know nothing more of files that are going to be written, or need not be there.

        Raises:
            OSError: the manifest cannot be written.
        """
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
    """The entries of a manifest whose own checksum is right.

    Raises:
        InputError: it is not.
    """
    files = values.get("files") if isinstance(values, dict) else None
    if not isinstance(files, dict) or values.get("sha256") != _digest(files):
        raise InputError("manifest: damaged")
    return files


def _describe(path: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}
