"""Log the numbers of a run to the server or the folder that MLflow's own variables name."""

import os
import time
from collections.abc import Mapping

from hytas.files import write_text
from hytas.lab.numbers import Numbers

USUAL = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # which asks the internet
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # 7 retries and 120 s: a dead server stops for minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""Variables of MLflow that hytas sets, unless they are set."""
for variable, value in USUAL.items():
    os.environ.setdefault(variable, value)

from mlflow.entities import Metric, Param  # noqa: E402 # it reads the variables
from mlflow.tracking import MlflowClient  # noqa: E402


class MLflow(Numbers):
    """Logs metrics and parameters; a run that was stopped goes on in the same MLflow run."""

    def open(self) -> None:
        self._client, id_file = MlflowClient(), self.folder / ".mlflow-run"
        if id_file.exists():
            self._run = id_file.read_text(encoding="utf-8")
            self._client.update_run(self._run, "RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "hytas")
        known = self._client.get_experiment_by_name(name)
        experiment = known.experiment_id if known else self._client.create_experiment(name)
        run = self._client.create_run(experiment, run_name=self.folder.resolve().name)
        self._run = run.info.run_id
        params = [Param(name, value[:500]) for name, value in self.settings.items()]
        self._client.log_batch(self._run, params=params)
        write_text(id_file, self._run)

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        metrics = [Metric(name, value, now, step) for name, value in numbers.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def close(self, *, ended: bool) -> None:
        self._client.set_terminated(self._run, "FINISHED" if ended else "KILLED")


listener = MLflow
