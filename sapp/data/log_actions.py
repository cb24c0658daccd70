"""Actions of logs: numbers within bounds, or discrete ones by number, in words, or in several columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sapp.core.decode import shown
from sapp.core.errors import SappError
from sapp.data.array_checks import ACTION_SLACK
from sapp.data.columns import Columns
from sapp.data.ledger import Kind, Ledger
from sapp.data.repair import code_text, codes_of, labels_of
from sapp.data.table import Table, cell_advice, is_blank, nested_kind, reads_as_number

MANY_CHOICES = 1_000
"""With more than so many, whole numbers are not taken for discrete actions unasked, and combinations are refused."""
MANY_WORDS = 50
"""With more different texts than so many, and than a quarter of the rows, texts are no names of actions unasked."""
TAIL = 20.0
"""Times the range of the central 99 % that actions may reach before they make no sense as bounds."""


class Actions(NamedTuple):
    """Actions [N] or [N, A]; of discrete ones how many there are, and their names where they have some."""

    values: np.ndarray
    number: int | None
    labels: list[str] | None
    read_as: str


def read_actions(table: Table, mapping: Columns, ledger: Ledger, bounded: bool) -> Actions:
    """Read the action columns of a log.

    Args:
        table: the log.
        mapping: which columns.
        ledger: takes down how they were read.
        bounded: whether action bounds were given, which only numbers have.
    """
    columns, kind = mapping.action, mapping.action_kind
    words = [name for name in columns if table.holds_words(name)]
    asked = kind == "discrete" or mapping.action_labels is not None
    whole = len(columns) == 1 and table.is_whole(columns[0]) and not bounded
    if kind == "continuous" or not (asked or words or whole):
        return Actions(vector(table, columns), None, None, "numbers")
    if len(columns) > 1:
        return _combined(table, columns, mapping, ledger, asked)
    name = columns[0]
    if table.column(name).ndim > 1 and table.column(name).shape[1] > 1 and table.column(name).dtype.kind in "biuf":
        return _of_vectors(table, name, ledger)
    if words or mapping.action_labels is not None:
        values, labels = _in_words(table, name, mapping.action_labels)
        if not asked:
            _check_words(labels, name, table.where)
        _check_texts(labels, name, table, asked)
        if mapping.action_labels is None:
            told = ", ".join(f"{label} = {number}" for number, label in enumerate(labels[:10]))
            ledger.say(Kind.READ, f"actions in words were numbered: {told}{' …' if len(labels) > 10 else ''}")
        return Actions(values, len(labels), labels, "discrete actions in words")
    values = table.numbers(name)
    if asked:
        return Actions(values, codes_of(values, name, table.where), None, "discrete actions")
    known = values[~np.isnan(values)]
    if known.size and (known.min() < 0 or known.max() >= MANY_CHOICES):
        reach = f"from {code_text(known.min())} to {code_text(known.max())}"
        raise SappError(
            f"{table.where}: column {name!r} holds whole numbers {reach}: give "
            f"action_kind = 'continuous' if they are amounts, or action_labels if they are codes of discrete actions "
            f"(--map action_kind=continuous)"
        )
    count = codes_of(values, name, table.where)
    ledger.say(
        Kind.READ,
        f"actions are whole numbers: taken as {count} discrete actions "
        f"(if they are amounts, give action_kind = 'continuous')",
    )
    whole_only = values if known.size < values.size else values.astype(np.int64)
    return Actions(whole_only, count, None, "discrete actions")


def _in_words(table: Table, name: str, labels: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    found = table.column(name)
    if found.ndim > 1:
        if found.size != len(found):
            raise SappError(f"{table.where}: column {name!r} holds several texts in a row; give one column for each")
        found = found.reshape(-1)
    cells = [None if is_blank(cell) and cell not in (labels or ()) else cell for cell in found.tolist()]
    return labels_of(cells, labels, name, table.where)


def _check_words(labels: Sequence[str], name: str, where: str) -> None:
    """Refuse a stray word among numbers as names of actions that nobody asked for."""
    amounts = [label for label in labels if _is_amount(label)]
    words = sorted((label for label in labels if not _is_amount(label)), key=reads_as_number)
    if amounts:
        raise SappError(
            f"{where}: column {name!r} holds {shown(words[0])} among numbers such as {amounts[0]}; correct the log, or "
            "give action_kind = 'discrete' if these are names of actions"
        )


def _check_texts(labels: Sequence[str], name: str, table: Table, asked: bool) -> None:
    """Refuse what is no name of an action: lists and structures, and texts that are nearly all different."""
    cells = table.column(name).reshape(-1).tolist()
    kind = next((found for value in cells if (found := nested_kind(value))), None)
    if kind is not None and not (asked and isinstance(cells[0], str)):
        raise SappError(
            f"{table.where}: column {name!r} holds {kind}; give one column per number ({name}_0, {name}_1, …), or "
            f"lists of numbers in Parquet"
        )
    if not asked and len(labels) > max(MANY_WORDS, table.rows // 4):
        cure = cell_advice(labels[0], name)
        cure = f"; else {cure}" if cure.startswith("write") else ", else map another column"
        raise SappError(
            f"{table.where}: column {name!r} holds {len(labels):,} different texts in {table.rows:,} rows, such as "
            f"{shown(labels[0])}: are these names of actions? If so, give action_kind = 'discrete'{cure}"
        )


def _of_vectors(table: Table, name: str, ledger: Ledger) -> Actions:
    """Rows of several whole numbers as one discrete action: which of them is 1, or their combination."""
    values = table.numbers(name)
    known = ~np.isnan(values.astype(np.float64)).any(axis=1)
    if np.all((values[known] == 0) | (values[known] == 1)) and np.all(values[known].sum(axis=1) == 1):
        place = np.where(known, values.argmax(axis=1), np.nan)
        ledger.say(Kind.READ, f"actions are a single 1 among {values.shape[1]} zeros: its place is the discrete action")
        return Actions(place if not known.all() else place.astype(np.int64), values.shape[1], None, "discrete actions")
    parts = {f"{name}_{i}": values[:, i] for i in range(values.shape[1])}
    wide = Table.of_arrays(parts, table.rows, table.where)
    for part in parts:
        codes_of(wide.numbers(part), part, table.where)
    return _combined(wide, list(parts), Columns(action=tuple(parts), action_kind="discrete"), ledger, True)


def _is_amount(label: str) -> bool:
    """Whether a label reads as a number that is not whole."""
    try:
        return not float(label).is_integer()
    except ValueError:
        return False


def _combined(table: Table, columns: Sequence[str], mapping: Columns, ledger: Ledger, asked: bool) -> Actions:
    """Several columns of discrete actions as one action: their combinations."""
    if mapping.action_labels is not None:
        raise SappError(
            f"{table.where}: {len(columns)} columns are mapped to a discrete action, whose combinations name "
            f"themselves; leave action_labels out, or name one column"
        )
    parts = []
    for name in columns:
        if not (table.is_text(name) or table.is_whole(name) or asked):
            raise SappError(
                f"{table.where}: column {name!r} of the action holds numbers, others hold words; discrete "
                f"actions and amounts do not mix: map columns of one kind, or give action_kind = 'discrete'"
            )
        if table.is_text(name):
            parts.append(_in_words(table, name, None))
            continue
        values = table.numbers(name)
        known = np.unique(values[~np.isnan(values.astype(float))])
        codes = np.searchsorted(known, values).astype(float)
        parts.append((np.where(np.isnan(values.astype(float)), np.nan, codes), [code_text(code) for code in known]))
    total = int(np.prod([len(labels) for _, labels in parts], dtype=float))
    if total > MANY_CHOICES:
        raise SappError(
            f"{table.where}: the {len(columns)} action columns make {total:,} combinations, more than "
            f"{MANY_CHOICES:,}; map fewer columns, or merge rare values in the log"
        )
    out = np.zeros(table.rows)
    for values, labels in parts:
        out = out * len(labels) + values
    texts = [
        ", ".join(f"{name}={label}" for name, label in zip(columns, choice, strict=True))
        for choice in itertools.product(*(labels for _, labels in parts))
    ]
    ledger.say(
        Kind.READ,
        f"the {len(columns)} action columns were read as one discrete action of {total} combinations, "
        f"such as {texts[0]!r}",
    )
    whole = out if np.isnan(out).any() else out.astype(np.int64)
    return Actions(whole, total, texts, "a discrete action of combinations")


def vector(table: Table, names: Sequence[str]) -> np.ndarray:
    """Columns side by side [N, width]."""
    parts = [table.numbers(name) for name in names]
    if len(parts) == 1:
        return parts[0].reshape(len(parts[0]), -1) if parts[0].ndim < 3 else parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def infer_bounds(action: np.ndarray, where: str, clip: bool) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Bounds [A] from the data where they leave [-1, 1], and which dimensions do; far outliers are refused."""
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = action.min(axis=0).astype(np.float32), action.max(axis=0).astype(np.float32)
    outside = (low < -1 - ACTION_SLACK) | (high > 1 + ACTION_SLACK)
    for i in np.flatnonzero(outside):
        inner = np.quantile(action[:, i], (0.005, 0.995))
        width = max(float(np.ptp(inner)), 1e-6)
        if np.isfinite([low[i], high[i]]).all() and float(high[i] - low[i]) > TAIL * width:
            advice = "give action_low and action_high, and clip_actions = true for what lies beyond"
            raise SappError(
                f"{where}: action dimension {i} goes from {low[i]:g} to {high[i]:g}, but 99 % of it lies within "
                f"{inner[0]:.3g} to {inner[1]:.3g}: these outliers would become the bounds that a policy acts within; "
                f"{advice}{' (clip_actions needs the bounds)' if clip else ''}"
            )
    # A constant has no range: any interval around it will do, and the ledger shows which.
    constant = low == high
    low, high = np.where(constant, low - 1, low), np.where(constant, high + 1, high)
    return np.where(outside, low, -1), np.where(outside, high, 1), np.flatnonzero(outside).tolist()


def clipped(action: np.ndarray, low: object, high: object, ledger: Ledger) -> np.ndarray:
    """Actions within their bounds, and a word about how many were not."""
    inside = np.clip(action, np.asarray(low, action.dtype), np.asarray(high, action.dtype))
    beyond = np.any(inside != action, axis=1)
    if beyond.any():
        ledger.say(
            Kind.CHANGED, f"actions of {beyond.sum()} rows lay beyond the bounds and were clipped",
            rows=int(beyond.sum()), asked=True,
        )  # fmt: skip
    return inside
