"""Data frames: pandas, polars and Arrow tables, one row per step, as they lie in memory."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Unpack

import numpy as np

from sapp.core.errors import SappError, one_line
from sapp.data.columns import Given, given_columns
from sapp.data.dataset import Dataset
from sapp.data.ledger import Column, Ledger
from sapp.data.loaders.arrow import table_of_arrow
from sapp.data.loaders.files import Options, given
from sapp.data.logs import read_log
from sapp.data.registry import COMMON, Format, Request
from sapp.data.table import Table

_WHERE = "the data frame"


def load_frame(
    frame: Any, *, columns: Given = None, **options: Unpack[Options]
) -> Dataset:
    """Load a data frame as if it were a Parquet file; levels of its index that have names are columns.

    Args:
        frame: of pandas or polars, or an Arrow table.
        columns: as for Parquet files.
        options: see ``Options``.
    """
    kind, ledger = _kind(frame), Ledger()
    if kind == "pandas":
        frame = _with_index(frame, ledger)
    table = _of_pandas(frame) if kind == "pandas" else table_of_arrow(_arrow(frame, kind), _WHERE)
    chosen = {"name": f"{kind} data", **given(options)}
    return read_log(table, given_columns(columns), ledger=ledger, notes={"loader": kind}, **chosen)


def _kind(frame: Any) -> str | None:
    kind = type(frame)
    package = kind.__module__.partition(".")[0]
    return package if (package, kind.__name__) in _KINDS else None


_KINDS = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table"))


def _arrow(frame: Any, kind: str | None) -> Any:
    if kind == "polars":
        return (frame.collect() if type(frame).__name__ == "LazyFrame" else frame).to_arrow()
    return frame


def _with_index(frame: Any, ledger: Ledger) -> Any:
    """The frame with the named levels of its index as columns; others do not count, and the ledger says so."""
    names = list(frame.index.names)
    wanted = [name for name in names if name is not None and name not in frame.columns]
    for place, name in enumerate(names):
        if name is None and (len(names) > 1 or type(frame.index).__name__ != "RangeIndex"):
            of = f" level {place}" if len(names) > 1 else ""
            ledger.columns.append(Column(f"(index{of})", None, "it has no name; name it to make it a column"))
    return frame.reset_index(level=wanted) if wanted else frame


def _of_pandas(frame: Any) -> Table:
    """By NumPy, as pandas does not need Arrow; columns of lists become matrices."""

    def read(name: str) -> np.ndarray:
        column = frame[names[name]]
        if str(column.dtype) == "category":
            column = column.astype(column.cat.categories.dtype)
        if column.dtype.kind in "biuf" and hasattr(column.dtype, "numpy_dtype"):  # pandas' own types with NA
            column = column.astype("float64") if column.isna().any() else column.astype(column.dtype.numpy_dtype)
        values = np.asarray(column.array if column.dtype.kind == "M" else column)
        if column.dtype.kind == "M":
            # in UTC: local clocks are set forward and back
            return np.asarray(column.dt.tz_convert(None) if column.dt.tz is not None else column, "datetime64[ns]")
        return _objects(values, name) if values.dtype.kind in "OUS" else values

    names = {str(name): name for name in frame.columns}
    if len(names) < len(frame.columns):
        double = next(name for name in names if list(map(str, frame.columns)).count(name) > 1)
        raise SappError(f"{_WHERE}: column {double!r} appears more than once; rename one")
    return Table(list(names), len(frame), read, _WHERE)


def _objects(values: np.ndarray, name: str) -> np.ndarray:
    """Objects as they are, None where empty; rows of lists, or numbers among them, as numbers."""
    import pandas as pd

    out = np.array([None if _is_empty(value, pd) else value for value in values.tolist()], object) if not any(
        isinstance(value, (list, tuple, np.ndarray)) for value in values.tolist()
    ) else None  # fmt: skip
    if out is None:
        width = next(len(value) for value in values.tolist() if isinstance(value, (list, tuple, np.ndarray)))
        rows = [np.full(width, np.nan) if _is_empty(value, pd) else value for value in values.tolist()]
        try:
            return np.array([np.asarray(row, np.float64).reshape(-1) for row in rows])
        except (ValueError, TypeError) as error:
            raise SappError(
                f"{_WHERE}: column {name!r} holds lists that are not numbers of one width ({one_line(error)}); every "
                f"row needs the same width"
            ) from None
    known = [value for value in out.tolist() if value is not None]
    if known and all(isinstance(value, (int, float, Decimal, np.number, np.bool_)) for value in known):
        return np.array([np.nan if value is None else float(value) for value in out.tolist()])
    return out


def _is_empty(value: Any, pd: Any) -> bool:
    return not isinstance(value, (list, tuple, np.ndarray, str)) and bool(pd.isna(value))


def _recognises(request: Request) -> bool:
    return _kind(request.source) is not None


FORMAT = Format("a pandas, polars or Arrow table", _recognises, load_frame, (*COMMON, "columns"))
