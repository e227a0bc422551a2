"""A report that keeps what a run tells."""

from hytas.run.progress import Report


class Told(Report):
    """Keeps the lines of a run, its notices, which are lines too, and the names of its stages."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.notices: list[str] = []
        self.stages: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def notice(self, text: str) -> None:
        self.notices.append(text)
        self.line(text)

    def stage(self, name: str) -> None:
        self.stages.append(name)
