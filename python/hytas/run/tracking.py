"""Write the events of a run for TensorBoard or MLflow."""

import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hytas.errors import InputError, one_line
from hytas.files import write_text
from hytas.race import RaceProgress, RungEnd
from hytas.results import short_title
from hytas.run.config import RunConfig
from hytas.run.progress import EVENTS, Report
from hytas.run.weights import TRAINING
from hytas.search import SearchProgress
from hytas.settings import settings_of
from hytas.tensors import read_facts
from hytas.train import Epoch

FOLDER = "tensorboard"
"""Of the event files, in the folder of the run."""
RUN_ID = ".mlflow-run"
"""File in the folder of the run with the id of its MLflow run."""
MLFLOW_USUAL = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # which asks the internet
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # 7 retries and 120 s: a dead server stops for minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""Variables of MLflow that hytas sets, unless they are set."""
UNKNOWN_RUN = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "INVALID_STATE")
"""Errors of MLflow for a run that does not exist, or was deleted."""


class Tracker(ABC):
    """Writes numbers by name and step.

    Attributes:
        hint: what to do if the tracker cannot be opened; or "".
        note: what a user should know after the tracker was opened; or "".
    """

    hint = ""
    note = ""

    @staticmethod
    @abstractmethod
    def place(folder: Path) -> str:
        """Return where a tracker of a run's folder writes."""

    @abstractmethod
    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers; `step` orders those of one name."""

    def close(self, *, ended: bool) -> None:  # noqa: B027 # not all have something to end
        """End; `ended` is whether the run did not fail."""


class TensorBoard(Tracker):
    """Writes event files into `tensorboard/` of the run."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(self.place(folder))
        if not any(folder.glob(f"{FOLDER}/*.0")):
            rows = [f"| {name} | {value} |" for name, value in _settings(config).items()]
            table = "\n".join(["| setting | value |", "|---|---|", *rows])
            self._writer.add_text("settings", table)

    @staticmethod
    def place(folder: Path) -> str:
        return str(folder / FOLDER)

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self, *, ended: bool) -> None:
        self._writer.close()


class MLflow(Tracker):
    """Logs to the server or the folder that MLflow's own variables name.

    They are `MLFLOW_TRACKING_URI` and `MLFLOW_EXPERIMENT_NAME`. A run that was stopped goes on in
    the same MLflow run; if the server does not know it, a new one begins.
    """

    hint = "MLFLOW_TRACKING_URI is to name a server that runs"

    def __init__(self, folder: Path, config: RunConfig) -> None:
        for name, value in MLFLOW_USUAL.items():
            os.environ.setdefault(name, value)
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        self._client, self._metric = MlflowClient(), Metric
        id_file = folder / RUN_ID
        run = self._known(id_file) if id_file.exists() else None
        if run is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "hytas")
            experiment = self._client.get_experiment_by_name(name)
            if experiment is None:
                number = self._client.create_experiment(name)
            else:
                number = experiment.experiment_id
            run = self._client.create_run(number, run_name=folder.resolve().name)
            write_text(id_file, run.info.run_id)
        self._run = run.info.run_id
        if not run.data.params:  # a stop came before they were logged
            settings = [Param(name, value[:500]) for name, value in _settings(config).items()]
            self._client.log_batch(self._run, params=settings)

    def _known(self, path: Path) -> Any:
        """Return the run that a file names, as a running one; None if the server has none."""
        from mlflow.exceptions import MlflowException

        run_id = path.read_text(encoding="utf-8", errors="replace").strip()
        try:
            if run_id:
                run = self._client.get_run(run_id)
                self._client.update_run(run_id, "RUNNING")
                return run
        except MlflowException as error:
            if error.error_code not in UNKNOWN_RUN:
                raise
        self.note = f"a new MLflow run: {self.place(path.parent)} has no run {run_id!r}"
        return None

    @staticmethod
    def place(folder: Path) -> str:
        import mlflow

        return str(mlflow.get_tracking_uri())

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        metrics = [self._metric(name, value, now, step) for name, value in numbers.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def close(self, *, ended: bool) -> None:
        self._client.set_terminated(self._run, "FINISHED" if ended else "KILLED")


TRACKERS: dict[str, Any] = {"tensorboard": TensorBoard, "mlflow": MLflow}
"""Name in the setting `track` -> class."""


class Tracked(Report):
    """Passes all events on, and writes their numbers until the tracker fails.

    Args:
        recorded: epochs of the trainings that an earlier process did, in their order.
    """

    def __init__(
        self, report: Report, name: str, tracker: Tracker, recorded: Sequence[int]
    ) -> None:
        self._name, self._tracker, self._failed = name, tracker, False
        self._recorded, self._loss = recorded, "train"
        self._before, self._last = 0, 0
        for name in EVENTS:
            if name not in vars(Tracked):
                setattr(self, name, getattr(report, name))
        self._report = report

    def reference(self, title: str, accuracy: float, pixels: int) -> None:
        self._write(0, {f"reference/{short_title(title)}": accuracy})
        self._report.reference(title, accuracy, pixels)

    def search(self, progress: SearchProgress) -> None:
        """Write the best score by the number of candidates."""
        numbers = {"search/best": progress.best, "search/generation": progress.generation}
        self._write(progress.evaluated, numbers)
        self._report.search(progress)

    def training(self, progress: RaceProgress) -> None:
        """Write the figures of the training by the optimiser steps of the race."""
        figures = {} if progress.ended is None else progress.ended.figures
        numbers = {f"race/{name}": value for name, value in figures.items()}
        if progress.best is not None:
            numbers["race/best"] = progress.best[1]
        self._write(progress.steps, numbers)
        self._report.training(progress)

    def rung(self, rung: RungEnd) -> None:
        """Write the best of the rung by its number."""
        first = rung.rows[0]
        numbers = {"rung/finalists": len(rung.rows), "rung/score": first.score}
        if first.accuracy is not None:
            numbers["rung/accuracy"] = first.accuracy
        self._write(rung.rung, numbers)
        self._report.rung(rung)

    def stage(self, name: str) -> None:
        """Take epochs in the race for those of a supernet, which has its own steps."""
        loss = "supernet" if name == "race" else "train"
        if loss != self._loss:
            self._loss, self._last = loss, 0
        self._report.stage(name)

    def epoch(self, epoch: Epoch) -> None:
        """Write the loss; epochs of self-training follow those of the first training."""
        if self._last == 0:  # it goes on with the last recorded training, or begins another one
            done = self._recorded if epoch.epoch == 1 else self._recorded[:-1]
            self._before = sum(done)
        elif epoch.epoch <= self._last:
            self._before += self._last
        self._last = epoch.epoch
        numbers = {f"{self._loss}/loss": epoch.loss}
        if epoch.validation_oa is not None:
            numbers[f"{self._loss}/validation_OA"] = epoch.validation_oa
        self._write(self._before + epoch.epoch, numbers)
        self._report.epoch(epoch)

    def end(self, figures: Mapping[str, float]) -> None:
        self._write(0, figures)
        self._report.end(figures)

    def close(self, *, ended: bool) -> None:
        """Close the tracker; `ended` is whether the run did not fail."""
        self._guarded(lambda: self._tracker.close(ended=ended))

    def _write(self, step: int, numbers: Mapping[str, float]) -> None:
        finite = {name: float(value) for name, value in numbers.items() if value == value}
        if finite and not self._failed:
            self._guarded(lambda: self._tracker.write(step, finite))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Call `work`; an error must not end a run of hours, so it is only reported, once."""
        try:
            work()
        except Exception as error:  # trackers raise errors of many libraries
            if not self._failed:
                self._report.notice(
                    f"track {self._name}: {_public(one_line(error))}; nothing more is written to it"
                )
            self._failed = True


@contextmanager
def tracked(report: Report, config: RunConfig, folder: Path) -> Iterator[Report]:
    """Yield a report that also writes for the trackers of the configuration."""
    opened: list[Tracked] = []
    ended = False
    try:
        for name in config.track:
            tracker = _open(name, config, folder)
            if tracker.note:
                report.notice(_public(tracker.note))
            report = Tracked(report, name, tracker, recorded_epochs(folder))
            opened.append(report)
        yield report
        ended = True
    finally:
        for each in opened:
            each.close(ended=ended)


def recorded_epochs(folder: Path) -> list[int]:
    """Return the epochs of each final training and self-training that a run's folder records.

    The last one is that of the training that a stop ended.
    """
    folders = [folder, *sorted(folder.glob("seed-*"))]
    weights = [one / "weights.safetensors" for one in folders]
    ended = [_facts(path).get(TRAINING, {}) for path in weights if path.exists()]
    histories = [
        one.get("history", ())
        for training in ended
        for one in (training, *training.get("self_training_rounds", ()))
    ]
    for path in weights:
        if not path.exists():
            rounds = sorted(path.parent.glob("checkpoint-self-training-*.safetensors"))
            checkpoints = [path.parent / "checkpoint.safetensors", *rounds]
            histories += [_facts(one).get("history", ()) for one in checkpoints if one.exists()]
    return [len(history) for history in histories]


def _facts(path: Path) -> dict[str, Any]:
    try:
        return read_facts(path)
    except (InputError, OSError):  # damaged: its training is done again
        return {}


def check_installed(config: RunConfig) -> None:
    """Refuse a tracker whose package is not there."""
    for name in config.track:
        if find_spec(name) is None:
            raise InputError("track", name, "is not installed", "pip install 'hytas[track]'")


def _open(name: str, config: RunConfig, folder: Path) -> Tracker:
    kind = TRACKERS[name]
    try:
        tracker: Tracker = kind(folder, config)
    except Exception as error:  # trackers raise errors of many libraries
        rule = f"cannot be reached at {_public(kind.place(folder))} ({_public(one_line(error))})"
        raise InputError("track", name, rule, kind.hint) from None
    return tracker


def _public(text: str) -> str:
    """Return a text without the passwords of URIs."""
    return re.sub(r"//[^/@\s]*@", "//", text)


def _settings(config: RunConfig) -> dict[str, str]:
    named = {name: getattr(config, name) for name in settings_of(RunConfig)}
    return {name: str(value) for name, value in named.items() if value not in (None, (), [])}
