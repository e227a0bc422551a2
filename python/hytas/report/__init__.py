"""Reports of runs and of analyses: values in, one HTML page out that needs no network."""

from hytas.report.facts import Candidates, FactTable, Figure, Finalist, RunFacts, Section
from hytas.report.html import render_sections, write_sections
from hytas.report.page import render, write_report
from hytas.report.pixels import ROLES, ReportPixels, view_pixels
from hytas.report.samples import ReportImages, choose_samples

__all__ = [
    "ROLES",
    "Candidates",
    "FactTable",
    "Figure",
    "Finalist",
    "ReportImages",
    "ReportPixels",
    "RunFacts",
    "Section",
    "choose_samples",
    "render",
    "render_sections",
    "view_pixels",
    "write_report",
    "write_sections",
]
