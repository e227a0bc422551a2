"""A CSV file of scores, which survives a kill at any moment."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from hytas.errors import InputError
from hytas.files import csv_text, lock, parse_json, read_csv, write_text
from hytas.proxies.spec import ProxySpec, Scores, fitness
from hytas.spaces import PAPER_SPACE, space_of
from hytas.spaces.checks import PAPER_GENES
from hytas.spaces.keys import architecture_key


def genes_of(architectures: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns of architectures: the genes of `hytas`, or the space and all genes."""
    if all(space_of(architecture) == PAPER_SPACE for architecture in architectures):
        return list(PAPER_GENES)
    return list(dict.fromkeys(["space", *(name for each in architectures for name in each)]))


def field_text(value: Any) -> str:
    """Return a value as the field of a CSV file: text as it is, other values as JSON.

    It is empty for a value that is missing, and for a number that is not finite.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return value if isinstance(value, str) else json.dumps(value)


class ScoreTable:
    """Scores in a CSV file, one line an architecture, appended as they come.

    The card `<file>.json` holds all settings of the scores, so that only the same work continues.
    It is locked until the table is closed.

    Args:
        names: proxies, the columns.
        architectures: all of them, in order.
        setting: everything else that decides a score (seed, scene, ...), JSON-ready.
        combinations: of these proxies; their columns stay empty until `finish`.
        kept: of each architecture, columns of its source that the table repeats; of all the same.
    """

    def __init__(
        self,
        path: str | Path,
        names: Sequence[str],
        architectures: Sequence[Mapping[str, Any]],
        setting: Mapping[str, Any],
        combinations: Sequence[ProxySpec] = (),
        kept: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.path, self.names, self.combinations = Path(path), list(names), list(combinations)
        self.genes = genes_of(architectures)
        combined = [str(spec) for spec in self.combinations]
        written = [*self.names, *combined, "seconds", "reasons"]
        self._kept = [
            {name: text for name, text in row.items() if name not in written} for row in kept
        ]
        others = list(self._kept[0]) if self._kept else []
        self.columns = [*self.genes, *others, *written]
        self._keys = [self._row_genes(architecture) for architecture in architectures]
        keys = "\n".join(architecture_key(architecture) for architecture in architectures)
        digest = hashlib.sha256(keys.encode()).hexdigest()
        self.card = {**setting, "proxies": [*self.names, *combined], "architectures": digest}
        if others:
            text = json.dumps(self._kept)
            self.card["columns"] = hashlib.sha256(text.encode()).hexdigest()
        self._locked = self._lock_card()
        try:
            self.done = self._resume() if self.path.exists() else self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock of the table."""
        self._locked.close()

    without_score = 0
    """Architectures whose scores all failed, after `finish`."""

    @property
    def card_path(self) -> Path:
        """The file of all settings of the scores."""
        return self.path.with_name(self.path.name + ".json")

    def _lock_card(self) -> IO[str]:
        """Return the card, open and locked: one process at a time writes the table."""
        if not self.path.name:
            raise InputError(self.path, rule="names no file")
        if self.path.exists() and not self.card_path.exists():
            raise InputError(self.path, rule="exists and is no score table", hint="name another")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"{self.path}: the folder {self.path.parent} does not exist")
        card = self.card_path.open("a+", encoding="utf-8")
        if not lock(card):
            card.close()
            hint = "wait for it, or name another file"
            raise InputError(self.path, rule="another hytas is at work on it", hint=hint)
        return card

    def _card(self) -> dict[str, Any] | None:
        """Return the content of the card, {} if it is empty, None if it is not a card.

        An incomplete card of this table counts as empty: a full disk can leave one.
        """
        whole = self._text()
        try:
            self._locked.seek(0)
            text = self._locked.read()
            begun = text != whole and whole.startswith(text)
            card = {} if begun else parse_json(text, self.card_path)
        except ValueError:  # not JSON, or not text
            return None
        matches = isinstance(card, dict) and (not card or self.card.keys() <= card.keys())
        return card if matches else None

    def _text(self) -> str:
        return json.dumps(self.card, indent=1)

    def append(self, architectures: Sequence[Mapping[str, Any]], scores: Sequence[Scores]) -> None:
        """Append the scores of the next architectures; a failed score is an empty field."""
        rows = []
        numbers = range(self.done, self.done + len(architectures))
        for number, architecture, each in zip(numbers, architectures, scores, strict=True):
            genes = self._row_genes(architecture)
            others = self._kept[number].values() if self._kept else ()
            fields = [field_text(each["scores"][name]) for name in self.names]
            unranked = [""] * len(self.combinations)
            reasons = json.dumps(each["reasons"]) if each["reasons"] else ""
            rows.append([*genes, *others, *fields, *unranked, f"{each['seconds']:.6f}", reasons])
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(csv_text(rows))
        self.done += len(scores)

    def finish(self) -> int:
        """Fill in the combinations, which rank each architecture among all of the table.

        Returns:
            How many architectures have a failed score.
        """
        rows = self._rows()
        failed = sum(bool(row["reasons"]) for row in rows)
        self.without_score = sum(not any(row[name] for name in self.names) for row in rows)
        if not self.combinations:
            return failed
        try:
            scores = [{name: float(row[name] or "nan") for name in self.names} for row in rows]
        except ValueError as error:
            hint = "a score must be a number, or empty where it failed"
            raise InputError(self.path, rule=str(error), hint=hint) from None
        for spec in self.combinations:
            for row, value in zip(rows, fitness(spec, scores), strict=True):
                row[str(spec)] = field_text(float(value))
        table = [self.columns, *([row[name] for name in self.columns] for row in rows)]
        write_text(self.path, csv_text(table))
        return failed

    def _row_genes(self, architecture: Mapping[str, Any]) -> list[str]:
        return [field_text(architecture.get(name)) for name in self.genes]

    def _rows(self) -> list[dict[str, str]]:
        """Return the rows of the file; other columns or rows are refused."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        columns, lines = read_csv(self.path, text)
        rows = [row for _, row in lines]
        whole = all(None not in row and None not in row.values() for row in rows)
        if columns != self.columns or not whole or len(rows) > len(self._keys):
            raise self._refused("is not the table that was begun")
        return rows

    def _start(self) -> int:
        if self._card() is None:
            raise self._refused(
                f"its card would take the place of {self.card_path}, which hytas did not write"
            )
        self._locked.truncate(0)
        self._locked.write(self._text())
        self._locked.flush()
        write_text(self.path, csv_text([self.columns]))
        return 0

    def _resume(self) -> int:
        """Return the number of complete rows; cut off an incomplete line after a kill."""
        card = self._card()
        if card is None:
            raise InputError(self.path, rule="exists and is no score table", hint="name another")
        differing = [key for key in self.card if card.get(key) != self.card[key]]
        if differing:
            raise self._refused(f"holds scores of other {', '.join(differing)}")
        raw = self.path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) < len(raw):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        if not whole:
            return self._start()
        rows = self._rows()
        for number, (row, genes) in enumerate(zip(rows, self._keys, strict=False), start=1):
            if [row[name] for name in self.genes] != genes:
                raise self._refused(
                    f"row {number} is not of architecture {number}: the table was changed"
                )
        return len(rows)

    def _refused(self, rule: str) -> InputError:
        return InputError(self.path, rule=rule, hint="name another file")
