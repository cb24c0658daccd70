"""Arrow tables as ``Table``: what Parquet, CSV and data frames come as."""

from __future__ import annotations

from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.data.table import Table

_ONE_PER_ROW = "if a row is a whole episode, write a row per step (in pandas: frame.explode([...]) of all such columns)"
"""What to do about episodes in rows."""


def table_of_arrow(arrow: Any, where: str) -> Table:
    """An Arrow table as named columns."""
    return Table(arrow.column_names, arrow.num_rows, lambda name: _values(arrow.column(name), name, where), where)


def _values(column: Any, name: str, where: str) -> np.ndarray:
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # a table without rows
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column, kind = column.cast("float64"), pa.float64()
    if _is_list(kind):
        return _lists(column, name, where)
    if _is_number(kind):
        return _plain(column)
    if pa.types.is_struct(kind):
        return _structs(column, name, where)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us") if pa.types.is_date(kind) else pa.timestamp(kind.unit))
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if pa.types.is_duration(kind):
        return np.asarray(column.cast("int64").to_numpy(zero_copy_only=False))
    out = np.empty(len(column), object)
    out[:] = column.to_pylist()
    return out


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _plain(column: Any) -> np.ndarray:
    """Numbers of an Arrow array, in its own type unless values are empty."""
    # unsafe: whole numbers beyond 2^53 are rounded rather than refused, as they are on the way to float32 anyway
    whole = column.cast("float64", safe=False) if column.null_count else column
    return np.asarray(whole.to_numpy(zero_copy_only=False))


def _structs(column: Any, name: str, where: str) -> np.ndarray:
    """Structures of numbers as a matrix, field by field in their order; a row without one is NaN throughout."""
    parts = []
    for field, part in zip(column.type, column.flatten(), strict=True):
        values = _values(part, f"{name}.{field.name}", where)
        if values.dtype.kind not in "biuf":
            raise SappError(
                f"{where}: column {name!r} is a structure whose field {field.name!r} holds no numbers; give one column "
                f"per field"
            )
        parts.append(values.reshape(len(values), -1))
    if not parts:
        raise SappError(f"{where}: column {name!r} is a structure without fields; map another column")
    return np.concatenate(parts, axis=1)


def _lists(column: Any, name: str, where: str) -> np.ndarray:
    """Lists of one width as a matrix; a row without a list is NaN throughout."""
    import pyarrow as pa

    kind = column.type
    known = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    rows = np.flatnonzero(known)
    if not len(rows):
        return np.full((len(column), 1), np.nan)
    full = column.drop_null()
    widths = np.asarray(full.value_lengths().to_numpy(zero_copy_only=False), np.int64)
    other = np.flatnonzero(widths != widths[0])
    if len(other):
        whole = f"; {_ONE_PER_ROW}" if pa.types.is_nested(kind.value_type) else ""
        raise SappError(
            f"{where}: column {name!r} is {widths[other[0]]} wide at row {rows[other[0]]} but {widths[0]} at row "
            f"{rows[0]}; every row needs the same width{whole}"
        )
    items = full.flatten()
    if pa.types.is_decimal(items.type) or pa.types.is_null(items.type):
        items = items.cast("float64")
    if not _is_number(items.type):
        fix = "convert it"
        if pa.types.is_nested(items.type):
            fix = f"make each row one list of numbers; {_ONE_PER_ROW}"
        raise SappError(f"{where}: column {name!r} holds lists of {items.type}, not of numbers; {fix}")
    matrix = _plain(items).reshape(len(rows), int(widths[0]))
    if known.all():
        return matrix
    out = np.full((len(column), matrix.shape[1]), np.nan)
    out[rows] = matrix
    return out
