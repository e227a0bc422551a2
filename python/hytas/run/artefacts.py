"""The table of a run's files: which stage writes a file, what it is made from, and what it holds.

`RunFolder` declares one `Artefact` a file. Resume, repair, the manifest, clean-up and the list in
the documentation read this table. Integrity has one rule: a file is written whole, its digest is in
the manifest, and a stage whose file is missing or differs runs again.
"""

from pathlib import Path
from typing import Any, Self, overload

AGAIN, REFUSED, FORGOTTEN = "made again", "refused", "forgotten"


class Artefact:
    """A file of a run's folder; as an attribute of a folder it is the file's path.

    Attributes:
        stage: the stage that writes it; "" if the run writes it when it opens the folder.
        made_from: names of the files that it is made from; it is made again when they are.
        listed: whether the summary of a run lists it for the user.
        optional: whether the stage writes it only where the run asks for it.
    """

    def __init__(
        self,
        file: str,
        holds: str,
        stage: str = "",
        made_from: tuple[str, ...] = (),
        *,
        repair: str = AGAIN,
        listed: bool = True,
        recorded: bool = True,
        optional: bool = False,
    ) -> None:
        self.file, self.holds, self.stage, self.made_from = file, holds, stage, made_from
        self.repair, self.optional = repair, optional
        self.listed, self.recorded = listed, recorded

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, folder: None, owner: type) -> Self: ...

    @overload
    def __get__(self, folder: Any, owner: type) -> Path: ...

    def __get__(self, folder: Any, owner: type) -> Self | Path:
        return self if folder is None else folder.path / self.file

    def path(self, folder: Path) -> Path:
        """Return its path in a folder."""
        return folder / self.file


def artefacts_of(owner: type) -> dict[str, Artefact]:
    """Return name -> artefact of a class that declares them, in their order."""
    return {name: each for name, each in vars(owner).items() if isinstance(each, Artefact)}
