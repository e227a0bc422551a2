"""The tasks of a suite: a TOML file each, which names data, split and budget."""

import gzip
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, Self

from hytas.data import LabelledData, SplitSettings
from hytas.data.synthetic import synthetic_scene
from hytas.errors import InputError, one_line
from hytas.files import atomic_write
from hytas.run.config import RunConfig
from hytas.settings import as_tuple

GENERATED = "generated"
"""Table of a task whose scene is made, not read: the arguments of `synthetic_scene`."""
FACTS = ("about", "sensor")
GROUPS = ("data", "split", "search", "race", "final")
"""Tables of a task, as in a file of settings."""
FILES = ("data", "labels")
"""Settings whose files a task names from its own folder."""


@dataclass(frozen=True)
class SuiteTask:
    """A task of a suite.

    Attributes:
        name: of its file, without the suffix.
        about: what is classified.
        sensor: tasks of one sensor are left out together where rules are compared.
        config: of a run; its data are the paths of files.
        generated: arguments of `hytas.data.synthetic.synthetic_scene`; None for files.
    """

    name: str
    about: str
    sensor: str
    config: RunConfig
    generated: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file of a task.

        Raises:
            InputError: it is none.
        """
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError("tasks", path, f"cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise InputError("tasks", path, f"is no TOML ({error})") from None
        unknown = tables.keys() - {*FACTS, *GROUPS, GENERATED}
        texts = [name for name in FACTS if not isinstance(tables.get(name), str)]
        others = tables.keys() - set(FACTS) - unknown
        wrong = dict.fromkeys(sorted(unknown), "no table of a task")
        wrong |= dict.fromkeys(texts, "a text is needed")
        wrong |= {
            name: "a table is needed" for name in others if not isinstance(tables[name], dict)
        }
        if wrong:
            rules = (f"{name}: {rule}" for name, rule in wrong.items())
            raise InputError("tasks", path, ", ".join(rules))
        values = {k: v for group in GROUPS for k, v in tables.get(group, {}).items()}
        split = {name: values.pop(name) for name in tables.get("split", {})}
        for name in FILES:
            if name in values:
                values[name] = str((path.parent / values[name]).resolve())
        generated = tables.get(GENERATED)
        try:
            config = RunConfig(**{"effort": "quick", **values}, split=SplitSettings(**split))
            if generated is not None:
                signature(synthetic_scene).bind(**generated)
        except TypeError as error:  # an unknown name
            raise InputError("tasks", path, one_line(error)) from None
        return cls(path.stem, tables["about"], tables["sensor"], config, generated)

    @property
    def lacks(self) -> str:
        """The first file that is not there; or ""."""
        if self.generated is not None:
            return ""
        files = [name for name in FILES if getattr(self.config, name) is not None]
        paths = (path for name in files for path in as_tuple(getattr(self.config, name)))
        return next((path for path in paths if not Path(path).exists()), "")

    def load(self, folder: Path) -> LabelledData:
        """Read or make the labelled data.

        Args:
            folder: receives what is unpacked from a .gz file.

        Raises:
            InputError: files are missing, or are no labelled data.
        """
        if self.generated is not None:
            return synthetic_scene(**self.generated)
        data = Path(str(self.config.data))
        if data.suffix != ".gz":
            return self.config.load_scene()
        folder.mkdir(parents=True, exist_ok=True)
        with (
            atomic_write(folder / data.stem) as path,
            gzip.open(data) as packed,
            path.open("wb") as file,
        ):
            shutil.copyfileobj(packed, file)
        return replace(self.config, data=str(folder / data.stem)).load_scene()
