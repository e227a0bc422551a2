"""The scenes of the HyTAS paper by name, downloaded once into a cache.

The splits follow tables 3 to 7 of its supplement. If a file with the fixed maps can be downloaded,
these maps are used. Otherwise the same number of pixels of each class is drawn at random.
"""

import hashlib
import json
import os
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.files import atomic_write, file_lock, write_text

NOTES = "checksums.json"
"""File of the cache with the checksums of files at their first download or extraction."""


@dataclass(frozen=True)
class RemoteFile:
    """A file to download.

    Attributes:
        name: in the cache.
        urls: its addresses, in the order to try.
        checksum: "sha256:..." or "git:..." (git's SHA-1 of the content). None is unknown: the
            checksum of the first download is stored and must not change afterwards.
        member: path inside a zip archive; addresses and checksum are then those of the archive.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str | None = None
    member: str | None = None


@dataclass(frozen=True)
class NamedScene:
    """A scene of the paper, as `scenes.toml` describes it.

    Attributes:
        classes: names, in the order of a single label map.
        files: to download: the cube, and the label map, or the training and the test map. A single
            file holds all of these.
        layouts: file names to look for in a folder of the user, each a tuple like `files`.
        train_counts: training pixels of each class, in the order of the label map; None if the
            files hold fixed maps.
    """

    classes: tuple[str, ...]
    files: tuple[RemoteFile, ...]
    layouts: tuple[tuple[str, ...], ...]
    train_counts: tuple[int, ...] | None = None


SCENES: dict[str, NamedScene] = {}
PUBLISHED_SCENES: dict[tuple[int, ...], tuple[str, ...]] = {}
"""Labelled pixels of each class of a published label map, in the order of the ids -> the names."""


def _read_table() -> None:
    table = tomllib.loads(Path(__file__).with_name("scenes.toml").read_text(encoding="utf-8"))
    for name, facts in table.items():
        classes, counts = tuple(facts["classes"]), facts.get("train_counts")
        SCENES[name] = NamedScene(
            classes,
            tuple(RemoteFile(**{**file, "urls": tuple(file["urls"])}) for file in facts["files"]),
            tuple(map(tuple, facts["layouts"])),
            None if counts is None else tuple(counts),
        )
        for one in facts["counts"]:
            order = one.get("order", range(len(classes)))
            PUBLISHED_SCENES[tuple(one["pixels"])] = tuple(classes[place] for place in order)


_read_table()


def locate(name: str, data_dir: str | Path | None = None) -> list[Path]:
    """Return the files of a scene, from a folder or from the cache; download missing ones.

    Args:
        data_dir: a folder that holds the files; nothing is downloaded then.

    Returns:
        The file of the cube. If that does not hold the labels, also the file of the label map, or
        of the training and the test map.
    """
    if name not in SCENES:
        raise InputError("data", name, f"is not one of the scenes {', '.join(SCENES)}")
    if data_dir is not None:
        return _find(name, SCENES[name], Path(data_dir))
    return [fetch(file) for file in SCENES[name].files]


def cache_folder() -> Path:
    """Return the folder of downloads: HYTAS_CACHE, or the user's cache folder."""
    if "HYTAS_CACHE" in os.environ:
        return Path(os.environ["HYTAS_CACHE"])
    return Path(_pooch().os_cache("hytas"))


def fetch(file: RemoteFile) -> Path:
    """Return a file of the cache, after a check; download it first if it is missing."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    archive = file.urls[0].rsplit("/", 1)[1] if file.member else file.name
    path = folder / archive
    fresh = not path.exists()
    if fresh:
        _download(file.urls, folder, archive)
    _check(path, file.checksum, fresh)
    if file.member is None:
        return path
    target = folder / file.name
    if not target.exists():
        _extract(path, file.member, target)
        _note(target, digest(target, "sha256"))
    _check(target, None, fresh=False)
    return target


def _pooch() -> Any:
    try:
        return import_module("pooch")
    except ImportError:
        rule = "downloading scenes needs the package pooch"
        hint = "pip install pooch, or name a folder with your copy by `data_dir`"
        raise InputError("data", rule=rule, hint=hint) from None


def _download(urls: Sequence[str], folder: Path, name: str) -> None:
    pooch = _pooch()
    pooch.get_logger().setLevel("ERROR")  # otherwise it prints the checksum of every file
    reasons = []
    for url in urls:
        try:
            pooch.retrieve(url, known_hash=None, fname=name, path=folder)
        except (OSError, ValueError) as error:  # errors of requests are OSErrors
            reasons.append(f"{url} ({' '.join(str(error).split())[:120]})")
        else:
            return
    rule = f"could not be downloaded from {' or '.join(reasons)}"
    raise InputError("data", name, rule, "put a copy into a folder and name it with `data_dir`")


def _noted(notes: Path) -> dict[str, str]:
    try:
        return dict(json.loads(notes.read_text())) if notes.exists() else {}
    except (TypeError, ValueError):
        raise InputError(
            "data", notes, "is damaged", "remove it, and the checksums are stored again"
        ) from None


def _note(path: Path, checksum: str) -> None:
    notes = path.parent / NOTES
    with file_lock(path.parent):
        write_text(notes, json.dumps(_noted(notes) | {path.name: checksum}, indent=2) + "\n")


def _check(path: Path, checksum: str | None, fresh: bool) -> None:
    wanted = checksum or _noted(path.parent / NOTES).get(path.name)
    actual = digest(path, "sha256" if wanted is None else wanted.split(":")[0])
    if wanted is None:
        _note(path, actual)
    elif actual != wanted:
        if fresh:  # a bad download is removed; a file that the user put there stays
            path.unlink()
        rule = f"does not match its checksum: it has {actual}, must be {wanted}"
        hint = "remove it to download it again, or name a folder with your copy by `data_dir`"
        raise InputError("data", path, rule, hint)


def digest(path: Path, method: str) -> str:
    """Return "sha256:..." of a file, or "git:...", which is git's SHA-1 of its content."""

    def git() -> Any:
        return hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)

    with path.open("rb") as file:
        state = hashlib.file_digest(file, method if method == "sha256" else git)
    return f"{method}:{state.hexdigest()}"


def _extract(archive: Path, member: str, target: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as opened, atomic_write(target) as temporary:
            temporary.write_bytes(opened.read(member))
    except (KeyError, zipfile.BadZipFile) as error:
        raise InputError("data", archive, f"holds no {member} ({error})") from error


def _find(name: str, entry: NamedScene, folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError("data_dir", folder, "no such folder")
    for layout in entry.layouts:
        paths = [folder / file for file in layout]
        if all(path.is_file() for path in paths):
            return paths
    wanted = ", or ".join(" and ".join(layout) for layout in entry.layouts)
    raise InputError("data_dir", folder, f"does not hold {name}", f"looked for {wanted}")
