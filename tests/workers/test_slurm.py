"""Slurm, played by two scripts that stand for its commands."""

import sys
from pathlib import Path

import pytest

from hytas.workers import open_workers

from tasks import length_of  # isort: skip

pytest.importorskip("submitit", reason="needs submitit: pip install 'hytas[slurm]'")

SBATCH = """#!/bin/sh
cp "$1" array.sh
( sleep 1  # submitit writes the calls once it knows the number of the job
  for task in 0 1 2; do
    SLURM_JOB_ID=4$task SLURM_ARRAY_JOB_ID=12 SLURM_ARRAY_TASK_ID=$task SLURM_PROCID=0 \\
      SLURM_LOCALID=0 SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 sh "$1"
  done ) > tasks.log 2>&1 &
echo Submitted batch job 12
"""
SRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do
  case "$1" in --output|--error) shift 2 ;; *) shift ;; esac
done
exec "$@"
"""


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_calls_are_one_job_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("scancel", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{':'.join(sys.path)}")
    with open_workers("slurm:partition=gpu,cpus=2,time=5,jobs=2,folder=calls") as workers:
        shared = workers.share([1, 2, 3])
        found = list(workers.run(length_of, ((shared, more) for more in range(3)), 3))
    assert found == [3, 4, 5]
    script = (tmp_path / "array.sh").read_text()
    for line in ("array=0-2%2", "partition=gpu", "cpus-per-task=2", "time=5"):
        assert f"#SBATCH --{line}\n" in script
