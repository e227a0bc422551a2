"""Refusals of the estimator name arguments of Python."""

from hytas.errors import InputError
from hytas.estimator.arguments import python_arguments
from refusals import refuses


def test_rows_of_a_cube_get_a_hint() -> None:
    rule = "is too large; .*hytas.BlockSplit.samples"
    with refuses("patch_size", 9, rule), python_arguments(rows=True):
        raise InputError("patch_size", 9, "is too large")
    with refuses("budget", "x", "needs a unit; $"), python_arguments(rows=True):
        raise InputError("budget", "x", "needs a unit")
