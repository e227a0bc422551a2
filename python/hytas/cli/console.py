"""The display of commands that keep no `run.log`."""

from hytas.run.display import Display


class Console(Display):
    """A display that also prints details."""

    def line(self, text: str) -> None:
        """Print a detail on a line of its own."""
        self.notice(text)
