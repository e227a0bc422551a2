"""The report of runs: values in, one HTML page out that a browser opens without a network."""

from hytas.report.facts import Candidates, Finalist, Layer, RunFacts
from hytas.report.page import render, write_report
from hytas.report.pixels import ROLES, Pixels, view_pixels

__all__ = [
    "ROLES",
    "Candidates",
    "Finalist",
    "Layer",
    "Pixels",
    "RunFacts",
    "render",
    "view_pixels",
    "write_report",
]
