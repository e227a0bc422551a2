"""The files of a run's scenes: several scenes are lists of files, one scene is a text."""

from hytas.data.several import Files
from hytas.errors import InputError
from hytas.settings import Listed, listed

FIELDS = ("data", "labels", "test_data", "test_labels")
"""Settings of a run that name them."""


def paired(data: Listed, labels: Listed, kind: str = "") -> list[Files]:
    """Return the file of each scene with that of its labels, or None.

    Args:
        data: files of scenes.
        labels: files of their labels, in the same order; or none at all.
        kind: what the names of the settings begin with: "" or "test_".

    Raises:
        InputError: the lists differ in length.
    """
    scenes, maps = listed(data), listed(labels)
    if maps and len(maps) != len(scenes):
        number = "1 scene" if len(scenes) == 1 else f"{len(scenes)} scenes"
        hint = f"give one for each `{kind}data`, in the same order"
        raise InputError(f"{kind}labels", rule=f"{len(maps)} given for {number}", hint=hint)
    return list(zip(scenes, maps or (None,) * len(scenes), strict=True))
