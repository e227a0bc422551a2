"""Read tables of trained networks with their genes, accuracies and proxy scores."""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.datasets import RemoteFile, fetch
from hytas.errors import InputError, reason_of
from hytas.files import parse_json, read_csv
from hytas.lab.analysis.size import Size, find_size
from hytas.proxies.table import COMBINATIONS, PROXIES
from hytas.spaces import PAPER_SPACE, space_of
from hytas.spaces.architectures import genes_of_fields, one_width, read_gene
from hytas.spaces.checks import PAPER_GENES, check_genes, check_listed
from hytas.spaces.genes import cost_names, gene_names, needed_genes
from hytas.spaces.keys import architecture_key
from hytas.spaces.shape import InputShape
from hytas.types import Floats

_Row = tuple[int, dict[str, str]]  # number of the line, and the fields

# Pinned to a commit of the authors' repository, so the content cannot change.
_ADDRESS = (
    "https://raw.githubusercontent.com/zhoufangqin/HyTAS/"
    "6439b86ab77ffdb1b0af5e978b4c6e8ffc6483d5/results"
)
_SHA256 = {
    "indian": "c4a63362233d788313733ba337b1380d5dac0c729240bf4d22536e1891c7d3da",
    "houston": "d21f27b43712afdfa4ae0f2b909a029e1f32d3fbc763720783ec8b1adf1ba13a",
    "pavia": "6c6fab75c844d5e7869b4a88c637f98392ee3e87700bf3dad47425ae0bcd43f9",
    "ksc": "221351532ad58739994f7f0aa294b36ca2bd0384a5a7bb5e361676f3f5dfe032",
    "salinas": "a0437f9d123373e0bcd748396ad4f58d19877a5a68cef03527a036ae86dfa36f",
}


def remote_file(folder: str, name: str, checksum: str) -> RemoteFile:
    """Return a file of a folder of the internet; `checksum` is its SHA-256."""
    return RemoteFile(name, (f"{folder}/{name}",), f"sha256:{checksum}")


HYTAS_TABLES = {
    f"hytas-{scene}": remote_file(_ADDRESS, f"{scene}_2000_new_all.csv", checksum)
    for scene, checksum in _SHA256.items()
}
"""Name of a published table -> its file (Zhou et al., HyTAS, ECCV 2024)."""

TARGET = "OA"
SPACE = "space"
BENCHMARK_TABLE = "table.csv"
"""File name of every table that `hytas benchmark make` writes."""
MOST_COLLAPSED = 0.1
"""Largest share of networks with 1 % or less in a column of percentages."""
# Names of the authors' own files (results/*_2000_new_all.csv of the HyTAS repository), lower case.
ALIASES = {"layer_num": "depth", "zico_modified": "zico_w_decay", "oa": TARGET}
# Scores that were published next to those of `PROXIES`.
PUBLISHED = (
    *("zico_w_decay", "zico_act", "snip_msa", "snip_mlp", "grad_norm_msa", "grad_norm_mlp"),
    *("dss_nosign", "synflow_nosign", "logsynflow_nosign"),
    *("snip_grad_norm", "gradsign", "te_nas", "t_cet_o", "attn_sim"),
)
# Neither genes nor scores. `flops` and `m_size` of the released code are not what their names say.
OTHER = (
    *("params_with_caf", "flops", "flops_ref", "m_size", "m_size_ref", "ram", "flash"),
    *("aa", "kappa", "max_oa", "oa_all", "suspect", "retrain_row", "n_retrains"),
    *("train_seconds", "seconds", "reasons", "space", "id", "index", "unnamed: 0"),
    *("validation", "activations", "bytes_fp32", "bytes_fp16", "bytes_int8", "reference_params"),
)
OF_SEED = ":seed="
"""In the name of a column: "OA:seed=1" is the OA of the training with seed 1."""
NO_FIGURES = ("reasons", "space", "id", "index", "unnamed: 0", "oa_all")


@dataclass(frozen=True, eq=False)
class RankingTable:
    """Trained networks of one scene.

    Attributes:
        name: of the file, without its suffix; of a benchmark, the name of its folder.
        accuracy: (n,) OA on test pixels.
        scores: name -> (n,); NaN where a score failed. "-grasp" stands for a negative grasp.
        size: true parameter counts and their source; None if they are not known.
        notes: one-line remarks, such as the number of rows left out.
        figures: what else the table says of each network, by lower-case name -> (n,); NaN where
            it says nothing. "oa:seed=1" is the OA of the training with seed 1.
    """

    name: str
    architectures: tuple[dict[str, Any], ...]
    accuracy: Floats
    scores: Mapping[str, Floats]
    size: Size | None
    notes: tuple[str, ...]
    figures: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def measured(self) -> Floats:
        """The accuracy that a search may read (n,): on validation pixels; without it, OA."""
        validation = self.figures.get("validation")
        if validation is None or not np.isfinite(validation).any():
            return self.accuracy
        return validation

    @property
    def of_seeds(self) -> Floats:
        """OA (n, k) of the trainings with each of k seeds; k is 0 if the table has only means."""
        prefix = f"{TARGET.lower()}{OF_SEED}"
        columns = [values for name, values in self.figures.items() if name.startswith(prefix)]
        return np.stack(columns, axis=1) if columns else np.empty((len(self), 0))

    def __len__(self) -> int:
        return len(self.accuracy)


def read_tables(paths: Sequence[str | Path], **options: Any) -> list[RankingTable]:
    """Read tables from files, and from the .csv files of folders.

    Args:
        options: of `read_table`. Not every table needs to have the columns in them.

    Raises:
        InputError: there is no table, one is not readable, or two have the same name.
        OSError: a file cannot be read.
    """
    files: list[Path] = []
    for path in map(table_file, map(Path, paths)):
        inside = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        if not inside:
            raise InputError("tables", path, "the folder holds no .csv file")
        files += inside
    if not files:
        raise InputError("tables", rule="missing", hint="give a folder or CSV files")
    files = list({file.resolve(): file for file in files}.values())
    named: dict[str, Path] = {}
    for file in files:
        name = table_name(file)
        if name in named:
            rule = f"has the same name as {named[name]}, and a table is named by its file"
            hint = "rename one"
            raise InputError("tables", file, rule, hint)
        named[name] = file
    headers = {file: set(_header(file)) for file in files}
    return [read_table(file, **_own(options, headers[file], headers.values())) for file in files]


def table_file(path: Path) -> Path:
    """Return a path as it is; of a published table's name, the file, downloaded once."""
    named = str(path) in HYTAS_TABLES and not path.exists()
    return fetch(HYTAS_TABLES[str(path)]) if named else path


def table_name(path: Path) -> str:
    """Return the name of a table: that of its file, or of the folder of a benchmark."""
    return path.resolve().parent.name if path.name == BENCHMARK_TABLE else path.stem


def _own(
    options: Mapping[str, Any], header: set[str], headers: Iterable[set[str]]
) -> dict[str, Any]:
    elsewhere = set().union(*headers) - header
    own = dict(options)
    for option in ("score_columns", "ignored_columns"):
        own[option] = [name for name in own.get(option, ()) if name not in elsewhere]
    return own


def _header(path: Path) -> list[str]:
    """Return the columns of a table; an empty list for a file that `read_table` refuses."""
    try:
        return read_csv(path, path.read_text(encoding="utf-8-sig"))[0]
    except (OSError, UnicodeDecodeError, InputError):
        return []


def read_table(
    path: str | Path,
    *,
    shape: InputShape | None = None,
    score_columns: Sequence[str] = (),
    ignored_columns: Sequence[str] = (),
    space: str | None = None,
) -> RankingTable:
    """Read one CSV table.

    It has a column OA, columns of genes, columns of scores, and bookkeeping. The genes are depth,
    embed_dim, num_heads and mlp_ratio of the space `hytas`; or those of another space, named by a
    column space, by the argument, or by the card `benchmark.json` next to it. Scores have the
    names of `hytas proxies` or of the published tables. Rows without an OA, and rows whose
    `suspect` is not 0, are left out; a note gives their number.

    Args:
        shape: bands, classes and patch of the scene, for the true parameter counts; known for the
            published scenes and tables (`hytas.lab.analysis.size`).
        space: of the networks, if the table has no column space.

    Raises:
        InputError: not a CSV table, a missing or unknown column, or a field that is not a number;
            the message names file, line and column.
        OSError: the file cannot be read.
    """
    path = Path(path)
    space = space or _space_of_card(path)
    rows, columns, texts = _read_rows(path, set(score_columns), set(ignored_columns), space)
    notes = [f"columns of text left out: {', '.join(texts)}"] if texts else []
    trained = _trained_rows(path, rows, columns, notes)
    architectures, trained = _without_repeats(path, trained, columns, notes)

    def column(name: str) -> Floats:
        values = (_number(path, row, name, columns) for row in trained)
        return np.array([math.nan if value is None else value for value in values])

    genes = _genes_of(rows)
    others = {*OTHER, *(name for name in columns if OF_SEED in name)}
    no_scores = {*PAPER_GENES, *genes, TARGET, *others}
    scores = {name: column(name) for name in columns if name not in no_scores}
    figures = {name: column(name) for name in columns if name in others and name not in NO_FIGURES}
    counted: tuple[str, ...] = ("params", "params_with_caf")
    counts = {name: column(name) for name in counted if name in columns}
    name = table_name(path)
    size = find_size(name, architectures, counts, shape)
    if size is None:
        notes.append(
            "true parameter counts unknown, so no ranges of size: give the shape of the data"
        )
    accuracy = _fractions(path, column(TARGET), notes)
    return RankingTable(
        name, architectures, accuracy, _oriented(scores), size, tuple(notes), figures
    )


def _trained_rows(
    path: Path, rows: Sequence[_Row], columns: Mapping[str, str], notes: list[str]
) -> list[_Row]:
    """Return the rows with an OA that are not suspect; note how many were left out."""
    kept = [row for row in rows if _number(path, row, "suspect", columns) in (None, 0.0)]
    if len(kept) < len(rows):
        notes.append(f"{len(rows) - len(kept)} rows flagged suspect left out")
    trained = [row for row in kept if _number(path, row, TARGET, columns) is not None]
    if len(trained) < len(kept):
        notes.append(f"{len(kept) - len(trained)} rows without an OA left out")
    return trained


def _without_repeats(
    path: Path, rows: Sequence[_Row], columns: Mapping[str, str], notes: list[str]
) -> tuple[tuple[dict[str, Any], ...], list[_Row]]:
    """Return each architecture once, and its first row; note how many rows were left out."""
    once: dict[str, tuple[dict[str, Any], _Row]] = {}
    for row in rows:
        architecture = _architecture(path, row, columns)
        once.setdefault(architecture_key(architecture), (architecture, row))
    if len(once) < len(rows):
        notes.append(
            f"{len(rows) - len(once)} repeated networks left out (the first row of each is kept)"
        )
    if len(once) < 3:
        why = f" ({'; '.join(notes)})" if notes else ""
        raise InputError(
            path, rule=f"{len(once)} trained networks{why}", hint="at least 3 are needed"
        )
    return tuple(one for one, _ in once.values()), [row for _, row in once.values()]


def _fractions(path: Path, accuracy: Floats, notes: list[str]) -> Floats:
    """Return accuracies in 0..1 from a column that may be in percent."""
    if accuracy.min() >= 0 and accuracy.max() <= 1:
        return accuracy
    # A few networks may collapse to less than one percent, but not many.
    small = np.count_nonzero((accuracy > 0) & (accuracy <= 1)) / len(accuracy)
    if accuracy.min() >= 0 and accuracy.max() <= 100 and small <= MOST_COLLAPSED:
        notes.append(f"{TARGET} is in percent")
        return accuracy / 100.0
    rule = f"{TARGET} goes from {accuracy.min():g} to {accuracy.max():g}"
    hint = "must all be fractions (0 to 1), or all percent (0 to 100)"
    raise InputError(path, rule=rule, hint=hint)


def _oriented(scores: dict[str, Floats]) -> dict[str, Floats]:
    """Negate the released GraSP, which is negative and prefers the smallest networks."""
    if "grasp" in scores and np.nanmedian(np.append(scores["grasp"], 0.0)) < 0:
        return {
            ("-grasp" if k == "grasp" else k): (-v if k == "grasp" else v)
            for k, v in scores.items()
        }
    return scores


def _space_of_card(path: Path) -> str | None:
    """Return the built-in space in the card next to a table; None without one."""
    card = path.parent / "benchmark.json"
    if not card.is_file():
        return None
    values = parse_json(card.read_bytes(), card)
    space = values.get(SPACE) if isinstance(values, dict) else None
    return str(space) if space is not None and gene_names(str(space)) else None


def _read_rows(
    path: Path, scores: set[str], ignored: set[str], space: str | None
) -> tuple[list[tuple[int, dict[str, str]]], dict[str, str], list[str]]:
    """Return numbered rows, our name -> the file's name of each column, and columns of text."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("tables", path, "no such file or folder") from None
    except UnicodeDecodeError:
        raise InputError(path, rule="is not a CSV table: it is not UTF-8 text") from None
    asked = set(ignored)
    columns_of_file, rows = read_csv(path, text)
    header = [name for name in columns_of_file if name]
    for number, row in rows:
        if None in row or None in row.values():
            raise InputError(f"{path}, line {number}", rule="must have as many fields as columns")
    if space is not None and SPACE not in header:
        for _, row in rows:
            row[SPACE] = space
    genes = _genes_of(rows)
    ignored |= {name for name in _costs_of(rows) if _canonical_name(name) is None} - scores
    texts = [
        name
        for name in header
        if name not in {*scores, *ignored, *genes}
        and _canonical_name(name) is None
        and not any(_is_number(row[name]) for _, row in rows)
    ]
    columns: dict[str, str] = {}
    for name in header:
        own = name in scores or (name in genes and name not in ignored)
        ours = name if own else _our_name(path, name, {*ignored, *texts})
        if ours is None:
            continue
        if ours in columns:
            raise InputError(path, rule=f"columns {columns[ours]} and {name} are both {ours}")
        columns[ours] = name
    for name in sorted((scores | asked) - set(header)):
        raise InputError(
            path, rule=f"no column {name!r}", hint=f"its columns are {', '.join(header)}"
        )
    _check_needed(path, header, columns, genes)
    return rows, columns, [name for name in texts if name != SPACE]


def _genes_of(rows: Sequence[_Row]) -> list[str]:
    """Return the genes of the spaces that the rows name; an empty list if they name no space.

    A gene may be empty in some rows, such as the heads of a stream that is not there.
    """
    spaces = {space_of(row) for _, row in rows if row.get(SPACE)}
    if spaces <= {PAPER_SPACE}:
        return []
    for space in sorted(spaces):
        if not gene_names(space):
            rule = "is the space of a table, and not known to hytas"
            raise InputError("space", space, rule, "name its plug-in with `plugins`")
    return list(dict.fromkeys(gene for space in sorted(spaces) for gene in needed_genes(space)))


def _costs_of(rows: Sequence[_Row]) -> set[str]:
    spaces = {space_of(row) for _, row in rows if row.get(SPACE)}
    return {name for space in spaces for name in cost_names(space)}


def _check_needed(
    path: Path, header: Sequence[str], columns: Mapping[str, str], genes: Sequence[str]
) -> None:
    for name in (TARGET, *(genes or PAPER_GENES)):
        if name not in columns:
            present = ", ".join(header) or "none"
            hint = "; add the accuracy of each network once it is trained" if name == TARGET else ""
            raise InputError(
                path, rule=f"the column {name} is missing", hint=f"its columns are {present}{hint}"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _canonical_name(name: str) -> str | None:
    lower = name.strip().lower()
    ours = ALIASES.get(lower, lower)
    scores = {*PROXIES, *PUBLISHED}
    if OF_SEED in lower and lower.split(":")[0] in (TARGET.lower(), *OTHER):
        return lower
    if ours in (TARGET, *PAPER_GENES, *OTHER) or ours in scores or lower.split(":")[0] in PROXIES:
        return ours
    if lower.startswith(tuple(f"{name}(" for name in COMBINATIONS)):
        return lower
    return ours.replace("-", "_") if ours.replace("-", "_") in scores else None


def _our_name(path: Path, name: str, ignored: set[str]) -> str | None:
    if name in ignored:
        return None
    if (ours := _canonical_name(name)) is not None:
        return ours
    names = [*PAPER_GENES, TARGET, *PROXIES, *PUBLISHED]
    near = difflib.get_close_matches(name.strip().lower(), names, 1, 0.6)
    hint = f"did you mean {near[0]}?" if near else "see `hytas proxies` for the names of scores"
    raise InputError(
        path,
        rule=f"unknown column {name!r}",
        hint=f"{hint} (`score_column` {name!r} ranks it as a score, `ignore_column` {name!r} "
        "leaves it out)",
    )


def _number(
    path: Path, row: tuple[int, dict[str, str]], name: str, columns: Mapping[str, str]
) -> float | None:
    """Return a field as a number; None if it is empty, not finite, or its column is missing."""
    if name not in columns:
        return None
    text = row[1][columns[name]].strip()
    try:
        value = float(text) if text else math.nan
    except ValueError:
        raise InputError(
            f"{path}, line {row[0]}", rule=f"{columns[name]} {text!r} is not a number"
        ) from None
    return value if math.isfinite(value) else None


def _architecture(
    path: Path, row: tuple[int, dict[str, str]], columns: Mapping[str, str]
) -> dict[str, Any]:
    try:
        if (space := space_of({k: v for k, v in row[1].items() if v})) != PAPER_SPACE:
            return _of_space(space, row[1], columns)
        genes = one_width(
            {name: read_gene(columns[name], row[1][columns[name]]) for name in PAPER_GENES}
        )
        check_genes(genes)
    except (InputError, TypeError, ValueError) as error:
        raise InputError(f"{path}, line {row[0]}", rule=reason_of(error)) from None
    return {"space": PAPER_SPACE, **genes}


def _of_space(space: str, row: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the architecture of a row of `hytas score`: values are JSON, except plain text."""
    names = [name for name in gene_names(space) if name in columns]
    fields = {name: row[columns[name]] for name in names}
    architecture = {"space": space, **genes_of_fields(space, fields)}
    check_listed(architecture, InputShape(bands=200, classes=2))
    return architecture
