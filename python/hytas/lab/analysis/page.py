"""The page of an analysis: all sections about some tables."""

import json
from collections.abc import Sequence
from pathlib import Path

from hytas.files import write_text
from hytas.lab.analysis.sections import SECTIONS, measure_section, show_section
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.tables import RankingTable
from hytas.report import write_sections

TITLE = "Trained networks: what ranks them"


def write_analysis(
    out: Path,
    tables: Sequence[RankingTable],
    settings: AnalysisSettings,
    names: Sequence[str] = tuple(SECTIONS),
    *,
    json_path: Path | None = None,
    log: Log = lambda _: None,
) -> None:
    """Measure tables section by section, and write one HTML page about them.

    Args:
        out: of the page; replaced as a whole.
        json_path: file for all figures; None writes none.
    """
    measured = {name: measure_section(name, tables, settings, log) for name in names}
    sections = [show_section(name, values) for name, values in measured.items()]
    about = [_about(table) for table in tables]
    about.append(
        f"Repetitions: resamples of an interval {settings.resamples}, fits of each predictor "
        f"{settings.fits}; seed {settings.seed}."
    )
    write_sections(out, TITLE, about, sections)
    if json_path is not None:
        write_text(json_path, json.dumps(measured, indent=1) + "\n")


def _about(table: RankingTable) -> str:
    accuracy = sorted(table.accuracy.tolist())
    text = (
        f"{table.name}: {len(table)} networks, accuracy {accuracy[0]:.3f} to {accuracy[-1]:.3f}, "
        f"median {accuracy[len(accuracy) // 2]:.3f}."
    )
    if table.size is not None:
        text += f" Sizes come from {table.size.source}."
    return " ".join([text, *(f"{note[0].upper()}{note[1:]}." for note in table.notes)])
