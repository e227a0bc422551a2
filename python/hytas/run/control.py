"""What a search in an evolved space must be compared with."""

EVOLVED = "Evolved from "
"""The first words of what the file of an evolved space says of itself."""


def control_of(about: str) -> str:
    """Return what a user should know of an evolved space; "" for another space.

    Args:
        about: what the space says of itself.
    """
    if not about.startswith(EVOLVED):
        return ""
    origin = about.removeprefix(EVOLVED).partition(" for ")[0]
    return (
        f"The space was evolved from {origin}. By its own measure it is better; whole searches in "
        "evolved spaces gained nothing in our measurements (docs/evolving.md). The fair control is "
        f"the same search in {origin}, which makes as many trainings of the same length: compare "
        "both on one page of `hytas report`."
    )
