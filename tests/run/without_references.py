"""`run_pipeline` without reference methods: their fits take half the time of a small run."""

from functools import partial

import hytas.job

run_pipeline = partial(hytas.job.run_pipeline, references=False)
