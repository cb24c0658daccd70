"""Parquet and CSV files as Arrow tables; a folder of Parquet parts is one table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sapp.data.files import one_line, provenance, readable, require_file, sha256
from sapp.errors import SappError


def is_parts_folder(path: Path) -> bool:
    """Whether a path is a folder with Parquet files in it."""
    return path.is_dir() and bool(_parts(path))


def read_table(path: Path) -> tuple[Any, list[str]]:
    """The table of a file, or of the Parquet files of a folder in the order of their names; what was done to read it.

    Numbers in names count as numbers: part-2 comes before part-10.
    """
    repairs: list[str] = []
    if not is_parts_folder(path):
        require_file(path)
        return (_read_parquet(path) if _kind(path) == "parquet" else _read_csv(path, repairs)), repairs
    parts = _parts(path)
    tables = []
    for part in parts:
        require_file(part)
        tables.append(_read_parquet(part))
    if len(parts) > 1:
        repairs.append(f"{len(parts)} files were read as one table, {parts[0].name} first and {parts[-1].name} last")
    return _joined(path, parts, tables), repairs


def table_provenance(path: Path) -> dict[str, Any]:
    """Where a table's data comes from; of a folder, every part by name."""
    if not is_parts_folder(path):
        return provenance(path, _kind(path))
    parts = [{"name": part.name, "sha256": sha256(part), "bytes": part.stat().st_size} for part in _parts(path)]
    return {"loader": "parquet", "source": str(path), "parts": parts}


def _kind(path: Path) -> str:
    return "parquet" if path.suffix.lower() == ".parquet" else "csv"


def _parts(folder: Path) -> list[Path]:
    """The Parquet files of a folder, in order; writers hide their own notes behind a dot or an underscore."""
    found = (each for each in folder.iterdir() if each.is_file() and not each.name.startswith((".", "_")))
    return sorted((each for each in found if each.suffix.lower() == ".parquet"), key=_in_order)


def _in_order(path: Path) -> tuple[list[str | int], str]:
    pieces = re.split(r"(\d+)", path.name)
    return [int(piece) if place % 2 else piece for place, piece in enumerate(pieces)], path.name


def _joined(folder: Path, parts: list[Path], tables: list[Any]) -> Any:
    import pyarrow as pa

    names = set(tables[0].column_names)
    for part, table in zip(parts, tables, strict=True):
        if other := sorted(names.symmetric_difference(table.column_names)):
            raise SappError(
                f"{folder}: {parts[0].name} and {part.name} differ in column {other[0]!r}; all parts need the same "
                f"columns"
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

        # The file itself, not its path: a path would let folder names such as "seed=3" become columns.
        with path.open("rb") as file:
            return pyarrow.parquet.read_table(file)

    return readable(path, "parquet", read, (pa.ArrowException, OSError, ValueError))


def _read_csv(path: Path, repairs: list[str]) -> Any:
    import pyarrow as pa

    def read() -> Any:
        import pyarrow.csv

        found = pyarrow.csv.read_csv(path)
        if len(found.column_names) == 1:
            header = found.column_names[0]
            for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
                if header.count(mark) >= 2:
                    repairs.append(f"columns are separated by {word}, not commas: read as such")
                    return pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter=mark))
        return found

    return readable(path, "csv", read, (pa.ArrowException, OSError, ValueError))
