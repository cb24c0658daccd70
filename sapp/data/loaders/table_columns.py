"""Columns of an Arrow table as arrays; empty values become NaN where that can be mended later, and are refused else."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.data.repair import flags_of_text


def column_of(table: Any, name: str) -> Any:
    """A column in one piece; decimals, and columns without a single value, as float64."""
    import pyarrow as pa

    column = table.column(name).combine_chunks()
    return column.cast("float64") if pa.types.is_decimal(column.type) or pa.types.is_null(column.type) else column


def numbers(table: Any, name: str, path: Path) -> np.ndarray:
    """A column as numbers: [N], or [N, width] for a column of lists; empty values are NaN, infinity is refused."""
    column = column_of(table, name)
    if is_list(column.type):
        values = _lists(column, name, path)
    elif is_number(column.type):
        values = _plain(column)
    else:
        raise _not_numbers(column, name, path)
    _refuse_at(np.isinf(values), values, name, path)
    return values


def flags(table: Any, name: str, path: Path, repairs: list[str]) -> np.ndarray:
    """A column of flags as numbers [N], words included; empty ones are NaN."""
    column = column_of(table, name)
    if is_number(column.type):
        return numbers(table, name, path)
    found = flags_of_text(column.to_pylist(), name, str(path))
    repairs.append(f"column {name!r} holds words: yes and true were taken as 1, no and false as 0")
    return found


def times(table: Any, name: str, path: Path) -> np.ndarray:
    """A column of numbers or dates [N] that orders rows: every value is known and finite."""
    column = column_of(table, name)
    _no_gaps(column, name, path)
    time = np.asarray(column.to_numpy(zero_copy_only=False))
    if time.dtype == object:
        raise _not_numbers(column, name, path, dates=True)
    _refuse_at(~np.isfinite(time), time, name, path)
    return time


def identities(table: Any, name: str | None, path: Path) -> np.ndarray | None:
    """A column of numbers or text [N] that tells episodes apart: every value is known."""
    if name is None:
        return None
    column = table.column(name).combine_chunks()
    _no_gaps(column, name, path)
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(str) if values.dtype == object else values


def holds_words(column: Any) -> bool:
    """Whether a text column holds words, not numbers with a slip among them."""
    some = column.drop_null().slice(0, 1000).to_pylist()
    return bool(some) and not any(_reads_as_number(value) for value in some)


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is one of lists."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers or flags."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _plain(column: Any) -> np.ndarray:
    """Numbers of an Arrow array, in its own type unless values are empty."""
    # unsafe: whole numbers beyond 2^53 are rounded rather than refused, as they are on the way to float32 anyway
    whole = column.cast("float64", safe=False) if column.null_count else column
    return np.asarray(whole.to_numpy(zero_copy_only=False))


def _lists(column: Any, name: str, path: Path) -> np.ndarray:
    """Lists of one width as a matrix; a row without a list is NaN throughout."""
    import pyarrow as pa

    known = ~_empty(column)
    rows = np.flatnonzero(known)
    if not len(rows):
        return np.full((len(column), 1), np.nan)
    full = column.drop_null()
    widths = np.asarray(full.value_lengths().to_numpy(zero_copy_only=False), np.int64)
    other = np.flatnonzero(widths != widths[0])
    if len(other):
        raise SappError(
            f"{path}: column {name!r} is {widths[other[0]]} wide at row {rows[other[0]]} but {widths[0]} at row "
            f"{rows[0]}; every row needs the same width"
        )
    items = full.flatten()
    if pa.types.is_decimal(items.type) or pa.types.is_null(items.type):
        items = items.cast("float64")
    if not is_number(items.type):
        raise SappError(f"{path}: column {name!r} holds lists of {items.type}, not of numbers; convert it")
    matrix = _plain(items).reshape(len(rows), int(widths[0]))
    if known.all():
        return matrix
    out = np.full((len(column), matrix.shape[1]), np.nan)
    out[rows] = matrix
    return out


def _empty(column: Any) -> np.ndarray:
    """Which values [N] are empty or NaN."""
    return np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))


def _no_gaps(column: Any, name: str, path: Path) -> None:
    gaps = np.flatnonzero(_empty(column))
    if len(gaps):
        raise SappError(
            f"{path}: column {name!r} is empty or NaN at row {gaps[0]}; without it the row has no place: mend it or "
            f"take the row out"
        )


def _refuse_at(bad: np.ndarray, values: np.ndarray, name: str, path: Path) -> None:
    """Raise at the first bad value; here the column and the row in the file can still be named."""
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise SappError(
            f"{path}: column {name!r} is {values[at]} at row {at[0]}; mend it or take that episode out of the file"
        )


def _not_numbers(column: Any, name: str, path: Path, dates: bool = False) -> SappError:
    """What to say of a column that is not of numbers: the first value that is none, or that all are stored as text."""
    wanted = "a number or a date" if dates else "a number"
    values = [(row, value) for row, value in enumerate(column.to_pylist()) if value is not None]
    for row, value in values:
        if not (_reads_as_number(value) or (dates and _reads_as_date(value))):
            return SappError(
                f"{path}: column {name!r} is {str(value)[:40]!r} at row {row}, not {wanted}; mend it or map other "
                f"columns"
            )
    row, value = values[0]
    kind = "numbers" if _reads_as_number(value) else "dates"
    return SappError(
        f"{path}: column {name!r} holds {kind} stored as text ({str(value)[:40]!r} at row {row}); convert the column "
        f"to {kind} in the file"
    )


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _reads_as_date(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True
