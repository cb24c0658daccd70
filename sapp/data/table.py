"""A log as named columns of NumPy values, whatever it was read from; values are read when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.data.ledger import Kind, Ledger
from sapp.data.repair import flags_of_text

FILE = "file"
"""What the column is called that holds a row's file, where a log has several and a mapping names it."""
_PACKED = "BCJNG"
"""How compressed data in text begins: LZ4's mark, in base 64."""


class Table:
    """Columns of N rows: numbers [N] or [N, width] with NaN where empty, dates [N], or objects [N] (text, None).

    Args:
        names: of all columns, in order.
        rows: N.
        read: gives a column by name.
        where: what error messages call the table.
    """

    def __init__(self, names: Sequence[str], rows: int, read: Callable[[str], np.ndarray], where: str) -> None:
        self.names, self.rows, self.where = list(names), rows, where
        self._read, self._held = read, dict[str, np.ndarray]()
        self.files: list[int] = []
        """How many rows are from each file, in order, where there may be several."""
        if double := sorted({name for name in self.names if self.names.count(name) > 1}):
            raise SappError(f"{where}: column {double[0]!r} appears more than once; rename one")

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any], rows: int, where: str) -> Table:
        """From arrays by name."""

        def read(name: str) -> np.ndarray:
            try:
                array = np.asarray(arrays[name])
            except ValueError:
                raise SappError(
                    f"{where}: {name} has rows of different widths; every row needs the same width"
                ) from None
            return array

        return cls(list(map(str, arrays)), rows, read, where)

    def column(self, name: str) -> np.ndarray:
        """A column as it was read."""
        if name not in self._held:
            self._held[name] = _as_text(self._read(name))
        return self._held[name]

    def glance(self, name: str) -> np.ndarray | None:
        """A column that nobody asked for, as it was read and without keeping it; None where it cannot be one array."""
        try:
            return self._held[name] if name in self._held else _as_text(self._read(name))
        except SappError:
            return None

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers: [N], or [N, width] for one of lists; empty values are NaN, infinity is refused."""
        values = self.column(name)
        if values.dtype.kind not in "biuf":
            raise self._not_numbers(values, name)
        if values.ndim > 1 and values.shape[1:] == (1,):
            values = values[:, 0]
        if values.dtype.kind == "f":
            self._refuse_at(np.isinf(values), values, name)
        return values

    def flags(self, name: str, ledger: Ledger) -> np.ndarray:
        """A column of flags as numbers [N], words included; empty ones are NaN."""
        values = self.column(name)
        if values.dtype.kind != "O":
            return self.numbers(name)
        found = flags_of_text(values.tolist(), name, self.where)
        ledger.say(Kind.READ, f"column {name!r} holds words: yes and true were taken as 1, no and false as 0")
        return found

    def times(self, name: str) -> np.ndarray:
        """A column of numbers or dates [N] that orders rows: every value is known and finite."""
        values = self.column(name)
        self._no_gaps(values, name)
        if values.dtype.kind == "O":
            raise self._not_numbers(values, name, dates=True)
        if values.dtype.kind == "f":
            self._refuse_at(np.isinf(values), values, name)
        return values.reshape(-1)

    def identities(self, name: str) -> np.ndarray:
        """A column of numbers or text [N] that separates episodes: every value is known."""
        values = self.column(name)
        self._no_gaps(values, name)
        if values.dtype.kind == "f" and np.abs(values).max(initial=0) >= 2**53:
            raise SappError(
                f"{self.where}: column {name!r} holds numbers so large that neighbours are rounded "
                f"to one ({values.flat[np.abs(values).argmax()]:.17g}): write ids as text"
            )
        return values.astype(str) if values.dtype.kind == "O" else values.reshape(-1)

    def is_text(self, name: str) -> bool:
        """Whether a column holds text (or other objects)."""
        return self.column(name).dtype.kind == "O"

    def holds_words(self, name: str) -> bool:
        """Whether a column is text that is more than numbers stored as text: "low", or "1", "2", "stop"."""
        return self.is_text(name) and any(
            value is not None and not (reads_as_number(value) or is_blank(value))
            for value in self.column(name).tolist()
        )

    def is_whole(self, name: str) -> bool:
        """Whether a column is of whole numbers, or of flags, one per row; with empty cells, they come as floats."""
        values = self.column(name)
        if values.size != len(values) or values.dtype.kind not in "biuf":
            return False
        gaps = empty(values)
        return values.dtype.kind != "f" or bool(0 < gaps.sum() < len(gaps) and np.all(values[~gaps] % 1 == 0))

    def _no_gaps(self, values: np.ndarray, name: str) -> None:
        gaps = np.flatnonzero(empty(values))
        if len(gaps):
            raise SappError(
                f"{self.where}: column {name!r} is empty or NaN at row {gaps[0]}; without it the row has no place: fix "
                f"it or take the row out"
            )

    def _refuse_at(self, bad: np.ndarray, values: np.ndarray, name: str) -> None:
        """Raise at the first bad value; here the column and the row in the file can still be named."""
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise SappError(
                f"{self.where}: column {name!r} is {values[at]} at row {at[0]}; fix it or take that episode out of the "
                f"file"
            )

    def _not_numbers(self, values: np.ndarray, name: str, dates: bool = False) -> SappError:
        """What to say of a column that is not of numbers: the first value that is none, or that all are text."""
        wanted = "a number or a date" if dates else "a number"
        known = [(row, value) for row, value in enumerate(values.reshape(len(values), -1)[:, 0]) if value is not None]
        for row, value in known:
            if not (reads_as_number(value) or (dates and _reads_as_date(value))):
                if nested := nested_kind(value):
                    return SappError(
                        f"{self.where}: column {name!r} holds {nested} ({str(value)[:40]!r} at row {row}); give one "
                        f"column per number ({name}_0, {name}_1, …), or lists of numbers in Parquet"
                    )
                if isinstance(value, str) and value.startswith(_PACKED):
                    return SappError(
                        f"{self.where}: column {name!r} is packed, as RLlib does, which is never loaded; write the "
                        f"logs again with output_compress_columns=[]"
                    )
                numeric = sum(reads_as_number(each) for _, each in known) > len(known) / 2
                advice = cell_advice(value, name, numeric, dates)
                return SappError(
                    f"{self.where}: column {name!r} is {str(value)[:40]!r} at row {row}, not {wanted}; {advice}"
                )
        if not known:
            return SappError(f"{self.where}: column {name!r} is empty in every row; fill it, or map another column")
        row, value = known[0]
        kind = "numbers" if reads_as_number(value) else "dates"
        return SappError(
            f"{self.where}: column {name!r} holds {kind} stored as text ({str(value)[:40]!r} at row {row}); convert "
            f"the column to {kind} in the file"
        )


def cell_advice(value: Any, name: str, numeric: bool = False, dates: bool = False) -> str:
    """What to do about a cell that is no number.

    Args:
        value: of the cell.
        name: of its column.
        numeric: whether most other cells are numbers.
        dates: whether dates would do.
    """
    text = value.strip() if isinstance(value, str) else ""
    if text == name:
        return "the names of the columns stand there again: take that row out"
    if dates:
        return "fix it or map other columns; dates are read as 2024-01-31 or 2024-01-31 12:00:00"
    if re.fullmatch(r"[+-]?\d+,\d+", text):
        return "decimals are read with a point"
    if re.fullmatch(r"[+-]?\d{1,3}([,.\u00a0\u202f' ]\d{3})+([.,]\d+)?", text):
        return "write numbers without marks between thousands"
    if re.fullmatch(r"\u2212[\d.]+", text):
        return "write minus as a hyphen (-)"
    if re.match(r"[+-]?\d+([.,]\d+)?\s*[^\d\s.,:]", text) and not numeric:
        return "write numbers without a unit"
    if not text.isprintable() or "\ufffd" in text:
        return "it seems to hold packed bytes: write lists of numbers, or one column per number"
    if numeric or not text:
        return "most others are numbers: correct it, or leave the cell empty if the value is missing"
    return f"map other columns; for a feature in words, give one_hot = [{name!r}] (--map one_hot={name})"


def _as_text(values: np.ndarray) -> np.ndarray:
    """Text of any kind as objects."""
    if values.dtype.kind == "O" and values.ndim == 1 and any(isinstance(each, bytes) for each in values.tolist()):
        out = np.empty(len(values), object)
        out[:] = [each.decode(errors="replace") if isinstance(each, bytes) else each for each in values.tolist()]
        return out
    if values.dtype.kind == "S":
        return np.char.decode(values, errors="replace").astype(object)
    return values.astype(object) if values.dtype.kind == "U" else values


def is_blank(value: Any) -> bool:
    """Whether a value is text without a letter."""
    return isinstance(value, str) and not value.strip()


def empty(values: np.ndarray) -> np.ndarray:
    """Which rows [N] hold an empty value."""
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values.tolist()], bool)
    if values.dtype.kind == "M":
        return np.isnat(values)
    if values.dtype.kind != "f":
        return np.zeros(len(values), bool)
    return np.asarray(np.isnan(values).reshape(len(values), -1).any(axis=1))


def nested_kind(value: Any) -> str | None:
    """What a value that is neither number nor text is: a list or a structure, also where it is written as text."""
    if isinstance(value, str):
        text = value.strip()
        brackets = text[:1] + text[-1:]
        return {"[]": "lists written as text", "()": "lists written as text", "{}": "structures written as text"}.get(
            brackets
        )
    if isinstance(value, Mapping):
        return "structures"
    return "lists" if isinstance(value, (list, tuple, np.ndarray)) else None


def reads_as_number(value: Any) -> bool:
    """Whether a value can be read as a number."""
    if isinstance(value, complex | np.complexfloating):  # NumPy's would lose their imaginary part
        return False
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
