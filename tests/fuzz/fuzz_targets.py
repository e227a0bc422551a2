"""What is fuzzed: one function and one line of TARGETS each.

A target has three parts.

- `corpus()` returns whole inputs, each a `Sample`: the bytes of its files by name, the first file
  being the one that is opened. It is made by code, at most once a process, and is deterministic.
  A folder (a run) is a sample of several files.
- `look(path)` does with the first file what a user's command would; the other files of the sample
  lie beside it, so that a target of run folders takes `path.parent`. It may return anything, or
  raise `InputError` or `OSError`. All else is a failure: see fuzz_judge.py.
- `finish(sample, rng)` makes a file of what was damaged, where a format packs or checks its bytes
  (a zip, a checksum); most targets need none.

The target "onboard" is there only if the variable HYTAS_ONBOARD names the built program.

To add a target, write `corpus` and `look` in a module of their own, and one line in TARGETS. The
short test in test_fuzz.py, `run_fuzz.py` and `make fuzz` take it from there.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import fuzz_engine
import fuzz_models
import fuzz_onboard
import fuzz_report
import fuzz_runs
import fuzz_scenes
from fuzz_mutator import Sample


def _as_it_is(sample: Sample, rng: Random) -> Sample:
    return sample


class Target(NamedTuple):
    """A target: whole inputs, what is done with one, and how damaged parts become a file."""

    corpus: Callable[[], list[Sample]]
    look: Callable[[Path], object]
    finish: Callable[[Sample, Random], Sample] = _as_it_is


TARGETS = {
    **{
        kind: Target(partial(fuzz_scenes.layout, kind), fuzz_scenes.look_at_layout)
        for kind in fuzz_scenes.KINDS
    },
    "products": Target(fuzz_scenes.products, fuzz_scenes.look),
    "product-metadata": Target(fuzz_scenes.product_metadata, fuzz_scenes.look),
    "vector-labels": Target(fuzz_scenes.vector_labels, fuzz_scenes.look_at_vector_labels),
    "label-pictures": Target(fuzz_scenes.label_pictures, fuzz_scenes.look_at_picture),
    "model": Target(fuzz_models.corpus, fuzz_models.run),
    "model-sealed": Target(fuzz_models.corpus, fuzz_models.run, fuzz_models.sealed),
    "run-folder": Target(fuzz_runs.folders, fuzz_runs.look, fuzz_runs.recorded),
    "store": Target(fuzz_runs.stores, fuzz_runs.look_at_store),
    "pixels": Target(fuzz_report.pixels, fuzz_report.look, fuzz_scenes.zip_members),
    "states": Target(fuzz_engine.states, fuzz_engine.look_at_state, fuzz_engine.checked),
    "texts": Target(fuzz_engine.texts, fuzz_engine.look_at_text),
}
if fuzz_onboard.PROGRAM is not None:
    TARGETS["onboard"] = Target(fuzz_onboard.corpus, fuzz_onboard.look, fuzz_onboard.finish)
