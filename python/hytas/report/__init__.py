"""Reports of runs and of analyses: values in, one HTML page out that needs no network."""

from hytas.report.facts import Candidates, Figure, Finalist, Grid, RunFacts, Section
from hytas.report.html import render_sections, write_sections
from hytas.report.page import render, write_report
from hytas.report.pixels import ROLES, Pixels, view_pixels
from hytas.report.samples import Samples, choose_samples

__all__ = [
    "ROLES",
    "Candidates",
    "Figure",
    "Finalist",
    "Grid",
    "Pixels",
    "RunFacts",
    "Samples",
    "Section",
    "choose_samples",
    "render",
    "render_sections",
    "view_pixels",
    "write_report",
    "write_sections",
]
