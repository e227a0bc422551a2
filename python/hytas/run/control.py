"""What a search in an evolved space must be compared with."""

EVOLVED = "Evolved from "
"""The first words of what the file of an evolved space says of itself."""


def note_of_evolved(about: str, control: str | None) -> str:
    """Return what a user should know of an evolved space; "" for another space.

    Args:
        control: the space of the control, if the run does it.
    """
    if not about.startswith(EVOLVED):
        return ""
    origin = about.removeprefix(EVOLVED).partition(" for ")[0]
    note = (
        f"The space was evolved from {origin}. By its own measure it is better; whole searches in "
        "evolved spaces gained nothing in our measurements (docs/evolving.md)."
    )
    if control is not None:
        return note
    return (
        f"{note} The fair control is the same search in {origin}, with as many trainings of the "
        "same length: `control` does it in the same run, and reports both."
    )
