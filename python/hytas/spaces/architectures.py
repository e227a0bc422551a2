"""Read architectures from a CSV or a JSON file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hytas.errors import InputError, reason_of
from hytas.files import read_csv
from hytas.spaces.checks import PAPER_GENES, check_genes
from hytas.spaces.genes import gene_names, genes_only, needed_genes
from hytas.spaces.names import PAPER_SPACE, space_of

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")


def read_architectures(path: str | Path, space: str | None = None) -> list[dict[str, Any]]:
    """Return the architectures of a CSV file or of JSON.

    A CSV file has a column for each gene; values are JSON, or plain text. JSON is one architecture
    a line, a list, or one alone, such as a run's architecture.json. The key or the column "space"
    names the space. Other entries of a file are ignored.

    Args:
        space: of architectures that name none; None is the space `hytas`.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(path, rule="is neither CSV nor JSON lines: it is not UTF-8 text") from None
    is_json = text.lstrip().startswith(("{", "[")) or path.suffix.lower() in JSON_SUFFIXES
    rows = _json_rows(path, text, space) if is_json else _csv_rows(path, text, space)
    if not rows:
        raise InputError(path, rule="holds no architecture")
    return rows


def _json_rows(path: Path, text: str, space: str | None = None) -> list[dict[str, Any]]:
    """Read one architecture a line; or one alone, or a list of them, over several lines."""
    try:
        whole = json.loads(text)
    except RecursionError:
        raise InputError(path, rule="is nested too deeply for architectures") from None
    except ValueError:
        lines = enumerate(text.split("\n"), start=1)  # other ends of lines may stand in a text
        return [
            _checked(f"{path}, line {number}", lambda line=line: json.loads(line), space)
            for number, line in lines
            if line.strip()
        ]
    if not isinstance(whole, list):
        return [_checked(f"{path}, line 1", lambda: whole, space)]
    return [
        _checked(f"{path}, architecture {number}", lambda one=one: one, space)
        for number, one in enumerate(whole, start=1)
    ]


def _csv_rows(path: Path, text: str, space: str | None) -> list[dict[str, Any]]:
    columns, lines = _read_lines(path, text, space)
    needed, names = _needed(lines), _genes_of(lines)
    missing = [name for name in needed if name not in columns]
    if missing:
        rule = f"has no column {missing[0]}"
        hint = f"needed are {', '.join(needed)}, with commas between them"
        raise InputError(path, rule=rule, hint=hint)
    twice = [name for name in names if columns.count(name) > 1]
    if twice:
        raise InputError(path, rule=f"has more than one column {twice[0]}")
    rows = []
    for number, row in lines:

        def genes(row: dict[Any, str] = row) -> dict[str, Any]:
            if None in row or None in row.values():
                raise InputError("must have as many fields as columns")
            space = space_of({name: text for name, text in row.items() if text})
            if space != PAPER_SPACE:
                return {"space": space, **genes_of_fields(space, row)}
            return one_width(
                {name: read_gene(name, row[name]) for name in PAPER_GENES if row.get(name)}
            )

        rows.append(_checked(f"{path}, line {number}", genes))
    return rows


_Lines = list[tuple[int, dict[str, str]]]


def _read_lines(path: Path, text: str, space: str | None) -> tuple[list[str], _Lines]:
    """Return columns and lines of a CSV file; those that name no space are of the given one."""
    columns, lines = read_csv(path, text, skipinitialspace=True)
    for _, row in lines if space else ():
        row["space"] = row.get("space") or str(space)
    return columns, lines


def _genes_of(lines: _Lines) -> list[str]:
    spaces = {str(row.get("space") or PAPER_SPACE) for _, row in lines}
    genes = dict.fromkeys(gene for space in sorted(spaces) for gene in gene_names(space))
    return list(genes) or list(PAPER_GENES)


def _needed(lines: _Lines) -> list[str]:
    """Return the genes that the columns must have; the lists may imply the depth."""
    if any(row.get("space") not in (None, "", PAPER_SPACE) for _, row in lines):
        return []  # each row is checked by itself
    return [name for name in PAPER_GENES if name != "depth"]


def genes_of_fields(space: str, row: Mapping[str, str]) -> dict[str, Any]:
    """Return the genes of a space in a row; an empty field is a gene that it lacks."""
    names = gene_names(space)
    if not names:
        raise InputError("space", space, "is not known to hytas")
    if missing := [name for name in needed_genes(space) if name not in row]:
        raise InputError(missing[0], rule=f"is missing: a gene of {space}")
    genes: dict[str, Any] = {}
    for name in names:
        if name not in row:
            continue
        text = row[name].strip()
        try:
            genes[name] = json.loads(text)
        except ValueError:
            genes[name] = text
    return {name: value for name, value in genes.items() if value != ""}


def read_other_columns(path: str | Path, space: str | None = None) -> list[dict[str, str]]:
    """Return the columns of a CSV file that are not genes, such as accuracies.

    Returns:
        Of each architecture, in the order of `read_architectures`: column -> text. JSON files have
        no columns: an empty mapping each.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith(("{", "[")) or path.suffix.lower() in JSON_SUFFIXES:
        return [{} for _ in _json_rows(path, text)]
    columns, lines = _read_lines(path, text, space)
    other = [name for name in columns if name not in (*_genes_of(lines), "space")]
    return [{name: row[name] for name in other} for _, row in lines]


def read_gene(name: str, text: str) -> Any:
    """Return the gene in the field `name` of a CSV file: a number, or a list of numbers."""
    try:
        return json.loads(text)
    except ValueError:
        raise InputError(name, text, "must be a number, or a list of numbers") from None


def one_width(genes: dict[str, Any]) -> dict[str, Any]:
    """Return the genes with one `embed_dim`, which the files of HyTAS repeat for every layer."""
    width = genes.get("embed_dim")
    if not isinstance(width, list):
        return genes
    if len({str(item) for item in width}) != 1:
        raise InputError("embed_dim", width, "must be one width for all layers")
    return {**genes, "embed_dim": width[0]}


def _checked(where: str, read: Any, space: str | None = None) -> dict[str, Any]:
    try:
        row = read()
        if not isinstance(row, dict):
            raise InputError("must be a mapping of genes")
        genes = genes_only({"space": space, **row} if space else row)
        check_genes(genes)
    except (InputError, TypeError, ValueError, RecursionError) as error:
        raise InputError(where, rule=reason_of(error)) from None
    return genes
