"""Split a table of spectra; rows of one group lie on one side."""

import numpy as np

from hytas.data.findings import note
from hytas.data.spectra.table import Spectra
from hytas.data.splits.settings import SplitSettings
from hytas.data.splits.split import GROUPS, Split, group_folds
from hytas.data.splits.validation import take_validation
from hytas.errors import InputError
from hytas.types import Pixels

KINDS = ("auto", "random", "folds", GROUPS)
"""Kinds of split that a table has."""
USUAL_FRACTION = 0.8


def split_spectra(table: Spectra, settings: SplitSettings, seed: int) -> Split:
    """Split the rows of a table; no group lies on two sides.

    With groups, one of `folds` parts of the groups tests. Without them, 80 % of each class train,
    or as many as the settings say.
    """
    grouped, share = table.polygons is not None, settings.validation_fraction
    kind = GROUPS if grouped else "random"
    if settings.kind == "fixed" and table.train is not None and table.test is not None:
        chosen, test = np.flatnonzero(table.train), np.flatnonzero(table.test)
        return Split(*_validation(table, chosen, share, seed), test, kind, seed, 0, 0.0)
    _check_kind(settings.kind, grouped)
    labels = table.labels.ravel()
    chosen, test, of_folds = _sides(table, settings, seed)
    both = np.intersect1d(labels[chosen], labels[test])
    if len(both) < table.least_classes:
        rule = "leaves fewer than 2 classes both to train and to test on"
        hint = "use other `folds`, or more groups of each class"
        raise InputError("split", settings.kind, rule, hint)
    notes = of_folds + tuple(
        f"{name} has no {'test' if label in labels[chosen] else 'training'} spectra"
        for label, name in enumerate(table.class_names, start=1)
        if label not in both
    )
    test = test[np.isin(labels[test], labels[chosen])]
    return Split(*_validation(table, chosen, share, seed), test, kind, seed, 0, 0.0, notes)


def _check_kind(kind: str, grouped: bool) -> None:
    if kind not in KINDS:
        rule = "is for scenes; the rows of a table have no place"
        raise InputError("split", kind, rule, f"use {', '.join(KINDS)}")
    if grouped and kind == "random":
        rule = "would put spectra of one group on both sides"
        raise InputError("split", "random", rule, f"use {GROUPS}, or leave out `group_column`")
    if kind == GROUPS and not grouped:
        raise InputError("split", GROUPS, "needs groups", "name their column with `group_column`")


def _sides(
    table: Spectra, settings: SplitSettings, seed: int
) -> tuple[Pixels, Pixels, tuple[str, ...]]:
    """Return the rows to train and validate on, those to test on, and notes."""
    notes: tuple[str, ...] = ()
    labels, rows = table.labels.ravel(), np.flatnonzero(table.labels)
    grouped, in_folds = table.polygons is not None, settings.kind == "folds"
    candidates, test, fraction = rows, rows[:0], settings.train_fraction or USUAL_FRACTION
    if grouped or in_folds:
        parts = group_folds(table, rows, settings.folds, seed)
        if not parts or settings.fold >= len(parts):
            rule = f"must be at most {len(parts)}, the groups that hold the classes"
            raise InputError("folds", settings.folds, rule)
        if len(parts) < settings.folds:
            notes = (str(note("fewer-folds", folds=len(parts), wanted=settings.folds)),)
        candidates, test = parts[settings.fold]
        fraction = settings.train_fraction or 1.0
    generator = np.random.default_rng(seed)
    kept = []
    for label in range(1, table.classes + 1):
        own = generator.permutation(candidates[labels[candidates] == label])
        count = settings.train_per_class or max(1, round(fraction * len(own)))
        kept.append(own[: count if grouped or len(own) < 2 else min(count, len(own) - 1)])
    chosen = np.sort(np.concatenate(kept))
    return chosen, test if grouped or in_folds else np.setdiff1d(candidates, chosen), notes


def _validation(table: Spectra, chosen: Pixels, share: float, seed: int) -> tuple[Pixels, Pixels]:
    if table.polygons is None or share == 0:
        return take_validation(table, chosen, share, False, np.random.default_rng([seed, 1]))
    parts = group_folds(table, chosen, max(2, round(1 / share)), seed + 1)
    return parts[0] if parts else (chosen, chosen[:0])
