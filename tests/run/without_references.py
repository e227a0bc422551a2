"""`run_pipeline` without reference methods: their fits take half the time of a small run."""

from functools import partial

import hytas.run

run_pipeline = partial(hytas.run.run_pipeline, references=False)
