"""Parquet and CSV files as Arrow tables; a folder of Parquet parts, nested or not, is one table."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from sapp.core.errors import SappError, one_line
from sapp.data.ledger import Column, Kind, Ledger
from sapp.data.loaders.csv_marks import csv_marks
from sapp.data.loaders.files import provenance, readable, require_file, sha256
from sapp.data.loaders.limits import check_compressed, check_parquet
from sapp.data.table import FILE

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, Spark and Arrow call the folder of rows whose key is empty."""


def is_parts_folder(path: Path) -> bool:
    """Whether a path is a folder with Parquet files in it or below it."""
    return path.is_dir() and any(True for _ in _found(path))


def read_table(path: Path, ledger: Ledger, named: Collection[str] = ()) -> tuple[Any, list[int]]:
    """The table of a file, or of the Parquet files in and below a folder in the order of their names; rows of each.

    Numbers in names count as numbers: part-2 comes before part-10. A folder called key=value gives the rows below it
    a column of that key, and the name of its file a column ``file``, if they are named and the files have none such.

    Args:
        path: of the file or the folder.
        ledger: takes down how it was read.
        named: columns that will be asked for.
    """
    if not path.is_dir():
        require_file(path)
        table = _read_parquet(path) if _kind(path) == "parquet" else _read_csv(path, ledger)
        return table, [table.num_rows]
    parts = _parts(path)
    if not parts:
        raise no_parts(path)
    tables = []
    for part in parts:
        require_file(part)
        tables.append(_read_parquet(part))
    names = [_name(part, path) for part in parts]
    if len(parts) > 1:
        ledger.say(Kind.READ, f"{len(parts)} files were read as one table, {names[0]} first and {names[-1]} last")
    table = _joined(path, names, tables)
    keys = [_keys(part, path) for part in parts]
    rows = [each.num_rows for each in tables]
    for key in dict.fromkeys(key for each in keys for key in each):
        if key in table.column_names:
            continue
        if key in named:
            table = table.append_column(key, _from_folders(path, key, keys, names, rows))
        else:
            ledger.columns.append(Column(key, None, "in folder names; nothing is mapped to it"))
    if FILE in named and FILE not in table.column_names:
        import pyarrow as pa

        table = table.append_column(FILE, pa.array(names).take(np.repeat(np.arange(len(rows)), rows)))
    return table, rows


def no_parts(folder: Path) -> SappError:
    """What to say of a folder in which there is nothing to read."""
    return SappError(
        f"{folder}: is a directory without Parquet files in it or below it; give one file, or the folder of the parts"
    )


def table_provenance(path: Path) -> dict[str, Any]:
    """Where a table's data comes from; of a folder, every part by name."""
    if not path.is_dir():
        return provenance(path, _kind(path))
    found = _parts(path)
    parts = [{"name": _name(part, path), "sha256": sha256(part), "bytes": part.stat().st_size} for part in found]
    return {"loader": "parquet", "source": str(path), "parts": parts}


def _kind(path: Path) -> str:
    return "parquet" if path.suffix.lower() == ".parquet" else "csv"


def _parts(folder: Path) -> list[Path]:
    """The Parquet files in and below a folder, in order."""
    return sorted(_found(folder), key=lambda part: [_in_order(piece) for piece in part.relative_to(folder).parts])


def _found(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The Parquet files in and below a folder; writers hide their own notes behind a dot or an underscore."""
    place = folder.resolve()
    if place in above:  # a link to a folder around it
        return
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise SappError(f"{folder}: cannot be read ({error.strerror}); make it readable, or give another") from None
    for each in entries:
        if each.name.startswith((".", "_")):
            continue
        if each.is_dir():
            yield from _found(each, above | {place})
        elif each.suffix.lower() == ".parquet":
            yield each


def _name(part: Path, folder: Path) -> str:
    return part.relative_to(folder).as_posix()


def _in_order(name: str) -> tuple[list[str | int], str]:
    pieces = re.split(r"(\d+)", name)
    return [int(piece) if place % 2 else piece for place, piece in enumerate(pieces)], name


def _keys(part: Path, folder: Path) -> dict[str, str | None]:
    """What the folders between a part and the folder that was given say of its rows: key=value."""
    found: dict[str, str | None] = {}
    for piece in part.relative_to(folder).parts[:-1]:
        key, equals, value = piece.partition("=")
        if key and equals:
            found[unquote(key)] = None if value == _NO_VALUE else unquote(value)
    return found


def _from_folders(
    folder: Path, key: str, keys: Sequence[dict[str, str | None]], names: Sequence[str], rows: Sequence[int]
) -> Any:
    """The column that folder names give: numbers or dates where all of them read as such, else text."""
    import pyarrow as pa

    for name, each in zip(names, keys, strict=True):
        if key not in each:
            raise SappError(f"{folder}: {name} is not in a folder {key}=…, but other parts are; move it into one")
    texts = pa.array([each[key] for each in keys], pa.string())
    return _typed(texts).take(np.repeat(np.arange(len(rows)), rows))


def _typed(texts: Any) -> Any:
    """Text as whole numbers, numbers or times, if that tells apart what the text does."""
    import pyarrow as pa

    for kind in (pa.int64(), pa.float64(), pa.timestamp("us")):
        try:
            values = texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        if len(values.unique()) == len(texts.unique()):  # 7 and 07 may be two episodes
            return values
    return texts


def _joined(folder: Path, names: Sequence[str], tables: list[Any]) -> Any:
    import pyarrow as pa

    columns = set(tables[0].column_names)
    for name, table in zip(names, tables, strict=True):
        if other := sorted(columns.symmetric_difference(table.column_names)):
            raise SappError(
                f"{folder}: {names[0]} and {name} differ in column {other[0]!r}; all parts need the same columns"
            )
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise SappError(
            f"{folder}: its Parquet files do not make one table ({one_line(error)}); write all parts with the same "
            f"column types"
        ) from None


def _read_parquet(path: Path) -> Any:
    import pyarrow as pa

    def read() -> Any:
        import pyarrow.parquet

        # The file itself, not its path: a path would let folder names such as "seed=3" become columns unasked. Arrow's
        # own file, not Python's: its threads read that one under the interpreter's lock, and may then keep the process
        # from ending, or abort it (apache/arrow#50482).
        with pa.OSFile(str(path), "rb") as file, pyarrow.parquet.ParquetFile(file) as table:
            check_parquet(path, table.metadata)
            return table.read()

    return readable(path, "parquet", read, (pa.ArrowException, OSError, ValueError))


def _read_csv(path: Path, ledger: Ledger) -> Any:
    import pyarrow as pa

    def read() -> Any:
        import pyarrow.csv

        check_compressed(path)
        marks = csv_marks(path, ledger)
        numbers = pyarrow.csv.ConvertOptions(decimal_point=marks.decimal)
        cells = pyarrow.csv.ParseOptions(delimiter=marks.cell)
        try:
            return pyarrow.csv.read_csv(path, parse_options=cells, convert_options=numbers)
        except pa.ArrowInvalid:
            cells.newlines_in_values = True
            found = pyarrow.csv.read_csv(path, parse_options=cells, convert_options=numbers)
            ledger.say(Kind.READ, "some cells in quotes hold line breaks: read as such")
            return found

    return readable(path, "csv", read, (pa.ArrowException, OSError, ValueError, EOFError, zlib.error))
