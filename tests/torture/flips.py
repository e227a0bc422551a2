"""Flip one bit of a file of a run and use the run: no label may change without a word.

    python tests/torture/flips.py [--flips 1000] [--seed 0]

Each flip is of one file in a fresh copy of a run. What follows is what a command does with that
file: `classify` with the model, `export` with the weights, `search` with the rest. It must refuse
the file, make it again, or end with the labels of the whole run. The exit status is 1 if not.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from hytas.deploy import DeployedModel, classify_scene
from hytas.errors import InputError
from hytas.job import choose, export_run, run_pipeline, train_winner
from hytas.run import RunConfig
from hytas.run.context import open_run
from hytas.run.progress import Report
from hytas.run.stages import begin
from hytas.run.weights import load_weights
from hytas.train import Recipe, loop
from small import strips

CONFIG = RunConfig(
    budget="40K..70K-params",
    space="hytas",
    proxy="params",
    population=4,
    generations=2,
    finalists=2,
    race_steps=4,
    recipe=Recipe(epochs=6),
    validation_fraction=0.3,
)


class Told(Report):
    """A report that knows whether damage was told."""

    def __init__(self) -> None:
        self.damage = False

    def line(self, text: str) -> None:
        self.damage |= any(word in text for word in ("damaged", "missing", "begins again"))


@dataclass(frozen=True)
class Target:
    """A file whose bits are flipped.

    Attributes:
        file: in the run's folder.
        run: the finished run, or one that was stopped; the folder is copied for each flip.
        use: what a command does with the copy; returns what must stay the same.
        share: of the flips.
    """

    file: str
    run: Path
    use: Callable[[Path, Told], Any]
    share: int


def one_of(run: Path, pattern: str) -> str:
    """Return the path, inside a run, of a file that matches a pattern."""
    return str(sorted(run.glob(pattern))[0].relative_to(run))


class Flips:
    """Runs of one scene, finished and stopped, and what is done with a copy of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scene = folder, strips(noise=0.3)
        finished, training = folder / "finished", folder / "training"
        run_pipeline(CONFIG, self.scene, finished, device="cpu")
        self._stop(training)
        self.targets = (
            Target("model.onnx", finished, self.classified, 40),
            Target("weights.safetensors", finished, self.exported, 15),
            Target("manifest.json", finished, self.searched, 9),
            Target("architecture.json", finished, self.searched, 9),
            Target("evaluations.sqlite", finished, self.searched, 6),
            Target("split.npz", finished, self.searched, 3),
            Target("config.json", finished, self.searched, 3),
            Target(one_of(finished, "fits/*.npz"), finished, self.searched, 3),
            Target(one_of(training, "fits/*.part"), training, self.trained, 6),
            Target(one_of(training, "fits/*.npz"), training, self.trained, 3),
        )

    def _stop(self, out: Path) -> None:
        """A run that was stopped in its final training after some epochs."""
        told: list[object] = []

        class Stopping(Report):
            def line(self, text: str) -> None:
                told.append(text)

            def epoch(self, epoch: Any) -> None:
                if epoch.epoch == 4:
                    raise KeyboardInterrupt

        seconds, loop.CHECKPOINT_SECONDS = loop.CHECKPOINT_SECONDS, 0.0
        try:
            with (
                suppress(KeyboardInterrupt),
                open_run(out, CONFIG, self.scene, "cpu", Stopping()) as run,
            ):
                choose(run)
                train_winner(run)
                raise RuntimeError(f"not stopped; it said {told}")
        finally:
            loop.CHECKPOINT_SECONDS = seconds

    def classified(self, run: Path, told: Told) -> Any:
        """The map that the run's model makes."""
        model = DeployedModel.load(run / "model.onnx", "cpu", threads=1)
        return classify_scene(model, self.scene.cube).labels.tolist()

    def exported(self, run: Path, told: Told) -> Any:
        """The map of the model after `hytas export`."""
        export_run(CONFIG, self.scene, run, force=True, report=told)
        return self.classified(run, told)

    def searched(self, run: Path, told: Told) -> Any:
        """The map of the model after the same search once more."""
        run_pipeline(CONFIG, self.scene, run, device="cpu", report=told)
        return self.classified(run, told)

    def trained(self, run: Path, told: Told) -> Any:
        """The weights and the temperature of a training that goes on."""
        with open_run(run, CONFIG, self.scene, "cpu", told) as opened:
            begin(opened, [])
            choose(opened)
            train_winner(opened)
        model = load_weights(run / "weights.safetensors")
        tensors = {name: value.tolist() for name, value in model.network.state_dict().items()}
        return model.card.temperature, tensors

    def use(self, target: Target, place: int | None) -> tuple[str, Any]:
        """Use a copy of the target's run with the bit at `place` flipped, if any."""
        run, told = self.folder / "copy", Told()
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(target.run, run)
        if place is not None:
            content = bytearray((run / target.file).read_bytes())
            content[place // 8] ^= 1 << place % 8
            (run / target.file).write_bytes(content)
        try:
            outcome = target.use(run, told)
        except (InputError, OSError) as error:
            return ("refused" if "\n" not in str(error) else "refused in two lines"), None
        return ("said" if told.damage else "as before"), outcome


def main() -> int:
    """Flip, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="flips") as folder:
        flips = Flips(Path(folder))
        total = sum(target.share for target in flips.targets)
        for target in flips.targets:
            random = Random(f"{options.seed} {target.run.name} {target.file}")
            _, expected = flips.use(target, None)
            found: Counter[str] = Counter()
            for _ in range(max(1, options.flips * target.share // total)):
                place = random.randrange(8 * (target.run / target.file).stat().st_size)
                kind, outcome = flips.use(target, place)
                if kind in ("said", "as before") and outcome != expected:
                    kind = "made otherwise and said" if kind == "said" else "CHANGED SILENTLY"
                if kind in ("CHANGED SILENTLY", "refused in two lines"):
                    wrong += 1
                    print(f"{target.run.name}/{target.file} bit {place}: {kind}", flush=True)
                found[kind] += 1
            counts = ", ".join(f"{count} {kind}" for kind, count in sorted(found.items()))
            print(f"{target.run.name}/{target.file}: {counts}", flush=True)
    print(f"{wrong} of {options.flips} flips went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
