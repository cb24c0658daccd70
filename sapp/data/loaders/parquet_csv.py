"""Parquet and CSV logs, one row per step, with columns mapped by name."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from sapp.core.extras import installed, require
from sapp.data.columns import Given, given_columns, named
from sapp.data.dataset import Dataset
from sapp.data.field_names import ROLES
from sapp.data.ledger import Ledger
from sapp.data.loaders.arrow import table_of_arrow
from sapp.data.loaders.files import Options, given
from sapp.data.loaders.plain_csv import read_plain_csv
from sapp.data.loaders.table_files import is_parts_folder, read_table, table_provenance
from sapp.data.logs import read_log
from sapp.data.registry import COMMON, Format, Request


def load_table(
    path: str | Path,
    *,
    columns: Given = None,
    **options: Unpack[Options],
) -> Dataset:
    """Load a Parquet or CSV log, or a folder of Parquet files, in it or below it, that make one log.

    Action bounds are those given; without any, a dimension that leaves [-1, 1] gets the range of the data, which the
    ledger states. See ``sapp.data.logs.read_log``.

    Args:
        path: ending in .parquet, .csv, .tsv, .csv.gz or .tsv.gz (all but the first are read without pyarrow, too, if
            more slowly); or a folder whose .parquet files follow each other by name. Where parts lie in folders such
            as batch=7, a mapping may name ``batch`` like any column; ``file`` is the name of the part.
        columns: a ``Columns``, a dictionary, the path of a TOML file, or None to go by the usual names.
        options: see ``Options``.
    """
    path, mapping, ledger = Path(path), given_columns(columns), Ledger()
    wanted = [name for key in (*ROLES, "one_hot") for name in named(getattr(mapping, key))]
    if not path.is_dir() and path.suffix.lower() != ".parquet" and not installed("pyarrow"):
        table = read_plain_csv(path, ledger)
    else:
        require("pyarrow", "reading Parquet")
        arrow, sizes = read_table(path, ledger, wanted)
        table = table_of_arrow(arrow, str(path))
        table.files = sizes
    chosen = {"name": path.absolute().name.split(".")[0], **given(options)}
    return read_log(table, mapping, ledger=ledger, notes=table_provenance(path), **chosen)


def _recognises(request: Request) -> bool:
    if request.ends_in(".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz"):
        return True
    return bool(request.text) and is_parts_folder(request.path)


FORMAT = Format(
    "a path ending in .parquet, .csv or .tsv (.gz), a folder of Parquet files", _recognises, load_table,
    (*COMMON, "columns"),
)  # fmt: skip
