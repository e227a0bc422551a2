"""Write reference.md, the options of `hytas search` and the files of a run, from the code."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from hytas.cli.options import records_by_panel
from hytas.cli.search import search
from hytas.data.findings import message, messages
from hytas.estimator.arguments import PARAMETERS, SHARED
from hytas.run.folder import ARTEFACTS
from hytas.settings import settings_of
from hytas.train import Recipe

PAGE = Path(__file__).with_name("reference.md")
HEAD = """# Reference

`docs/make_reference.py` writes this page from the code.

## Options of a search

Every option is also a key of the TOML file of `--config`: `--race-steps 60` is `race_steps = 60`.
The `config.json` of a run has the same keys.
`hytas COMMAND --help` shows the options of other commands.
"""
RECIPE = """## Recipe

The settings of `--recipe NAME=VALUE`, and of the table `[recipe]` of a TOML file.

| setting | usual value | meaning |
|---|---|---|
"""


ESTIMATOR = """## Parameters of HSIClassifier

`hytas.HSIClassifier` takes these settings of a run: {shared}. It also has these parameters:

| parameter | default | meaning |
|---|---|---|
"""
FILES = """## Files of a run

`--out` names the folder of a run. `manifest.json` has the size and the SHA-256 of its files. The
command of the run makes a deleted or damaged file again, with all that is made from it;
`config.json` and `evaluations.sqlite` cannot be made again. `fits/` holds what each training gave,
under the digest of all that decides it: a damaged or missing result is trained again. `seed-1/` and
`control/` hold further models of `--seeds` and the run of `--control`.

| file | what it holds | stage | made from | checked |
|---|---|---|---|---|
"""


FINDINGS = """## Findings

`hytas inspect`, a search and `hytas classify` say what they found in the input. With `--json`, a
finding has its code, its case, its severity (note, warning or error), where, and the facts in
braces. `--strict` refuses warnings. The cases of a code stand below it.

| code | what was found | what to do |
|---|---|---|
"""


def page() -> str:
    """Return the page."""
    context = click.Context(search, info_name="search", max_content_width=400)
    parts = [HEAD]
    for title, records in records_by_panel(search, context).items():
        rows = [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in records]
        parts.append("\n".join([f"### {title}\n", "| option | meaning |", "|---|---|", *rows, ""]))
    recipe = (
        f"| `{name}` | {one.default} | {_cell(one.facts.help)} |"
        for name, one in settings_of(Recipe).items()
    )
    own = (
        f"| `{name}` | {one.default} | {_cell(one.facts.help)} |"
        for name, one in PARAMETERS.items()
        if name not in SHARED
    )
    files = (
        f"| `{artefact.file}` | {artefact.holds} | {artefact.stage} | "
        f"{', '.join(f'`{ARTEFACTS[name].file}`' for name in artefact.made_from)} | "
        f"{'yes' if artefact.recorded else 'no'} |"
        for artefact in ARTEFACTS.values()
    )
    estimator = ESTIMATOR.format(shared=", ".join(f"`{name}`" for name in SHARED))
    findings = (
        f"| {'- ' * bool(case)}`{case or code}` | {_cell(message(code, 'rule', case))} | "
        f"{_cell(_hint(code, case))} |"
        for code, own in messages().items()
        for case in ("", *own.get("cases", ()))
    )
    parts += [f"{RECIPE}{_lines(recipe)}", f"{estimator}{_lines(own)}", f"{FILES}{_lines(files)}"]
    parts.append(f"{FINDINGS}{_lines(findings)}")
    return "\n".join(parts)


def _hint(code: str, case: str) -> str:
    """Return the hint of a code; that of a case if it has words of its own."""
    hint, own = message(code, "hint", case), message(code, "hint")
    return "" if case and hint == own else hint


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: written", file=sys.stderr)
