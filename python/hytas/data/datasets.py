"""The scenes of the HyTAS paper by name, downloaded once into a cache.

The splits follow tables 3 to 7 of its supplement. If a file with the fixed maps can be downloaded,
these maps are used. Otherwise the same number of pixels of each class is drawn at random.
"""

import hashlib
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hytas.errors import InputError, library


@dataclass(frozen=True)
class RemoteFile:
    """A file to download.

    Attributes:
        name: in the cache.
        urls: its addresses, in the order to try.
        checksum: "sha256:..." or "git:..." (git's SHA-1 of the content); None if unknown.
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
    try:
        return [fetch(file) for file in SCENES[name].files]
    except InputError as error:
        raise error.hinted("or name the folder of your copies with `data_dir`") from None


def cache_folder() -> Path:
    """Return the folder of downloads: HYTAS_CACHE, or the user's cache folder."""
    return Path(_cache({}, {}).path)


def cached(file: RemoteFile) -> Path:
    """Return where `fetch` puts a file."""
    if file.member is None:
        return cache_folder() / file.name
    return cache_folder() / f"{_download_name(file)}.unzip" / file.member


def fetch(file: RemoteFile) -> Path:
    """Return a file of the cache, after a check; download it first if it is missing or damaged."""
    name, checksum = _download_name(file), file.checksum or ""
    processor = _checked_by_git(checksum) if checksum.startswith("git:") else None
    if file.member is not None:
        processor = _pooch().Unzip(members=[file.member])
    registry = {name: None if checksum.startswith("git:") else file.checksum}
    reasons = []
    for url in file.urls:
        try:
            _cache(registry, {name: url}).fetch(name, processor)
        except (OSError, ValueError, zipfile.BadZipFile) as error:  # of requests: OSErrors
            reasons.append(f"{url} ({_reason(error)})")
        else:
            if not (path := cached(file)).exists():
                raise InputError("data", cache_folder() / name, f"holds no {file.member}")
            return path
    rule = f"could not be downloaded from {' or '.join(reasons)}"
    raise InputError(name, rule=rule, hint=f"put a copy into {cache_folder()}")


def _reason(error: Exception) -> str:
    if type(error).__name__ == "ConnectionError":  # of requests, which nests three errors
        return "no connection"
    return " ".join(str(error).split())[:300]


def _pooch() -> Any:
    return library("pooch", "data", "a scene by name")


def _cache(registry: dict[str, str | None], urls: dict[str, str]) -> Any:
    pooch = _pooch()
    pooch.get_logger().setLevel("ERROR")
    folder = pooch.os_cache("hytas")
    return pooch.create(folder, base_url="", env="HYTAS_CACHE", registry=registry, urls=urls)


def _download_name(file: RemoteFile) -> str:
    return file.name if file.member is None else file.urls[0].rsplit("/", 1)[1]


def _checked_by_git(checksum: str) -> Callable[[str, str, Any], str]:
    """Return a processor of pooch, which knows no checksums of git."""

    def check(path: str, action: str, cache: Any) -> str:
        file = Path(path)
        content = file.read_bytes()
        start = f"blob {len(content)}\0".encode()
        digest = hashlib.sha1(start + content, usedforsecurity=False).hexdigest()
        if f"git:{digest}" == checksum:
            return path
        file.unlink()
        if action == "fetch":  # a damaged file is downloaded again, as by pooch
            return str(cache.fetch(file.name, check))
        raise ValueError(f"its checksum is git:{digest}, must be {checksum}")

    return check


def _find(name: str, entry: NamedScene, folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError("data_dir", folder, "no such folder")
    for layout in entry.layouts:
        paths = [folder / file for file in layout]
        if all(path.is_file() for path in paths):
            return paths
    wanted = ", or ".join(" and ".join(layout) for layout in entry.layouts)
    raise InputError("data_dir", folder, f"does not hold {name}", f"looked for {wanted}")
