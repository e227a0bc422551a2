"""Write the numbers of a run as TensorBoard's event files, into `tensorboard/` of its folder."""

from collections.abc import Mapping
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from hytas.lab.numbers import Numbers


class TensorBoard(Numbers):
    """Writes scalars, and the settings as a table."""

    def open(self) -> None:
        self._writer: Any = SummaryWriter(str(self.folder / "tensorboard"))
        rows = [f"| {name} | {value} |" for name, value in self.settings.items()]
        self._writer.add_text("settings", "\n".join(["| setting | value |", "|---|---|", *rows]))

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self, *, ended: bool) -> None:
        self._writer.close()


listener = TensorBoard
