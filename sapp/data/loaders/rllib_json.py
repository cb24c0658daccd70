"""RLlib's JSON logs: a batch of steps per line, in one file or in a folder of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from sapp.core.errors import SappError, one_line
from sapp.data.columns import Given, given_columns
from sapp.data.dataset import Dataset
from sapp.data.ledger import Column, Kind, Ledger
from sapp.data.loaders.files import Options, given, provenance, require_file, sha256
from sapp.data.logs import read_log
from sapp.data.registry import COMMON, Format, Request
from sapp.data.table import Table

_NESTED = ("infos", "info")
"""Fields of nested things, which are never learned from."""


def load_rllib(path: str | Path, *, columns: Given = None, **options: Unpack[Options]) -> Dataset:
    """Load logs that RLlib's ``output`` wrote, with ``compress_columns=[]`` so that nothing in them is a pickle.

    Rows are brought in order by ``eps_id`` and ``t``, as batches may cut episodes.

    Args:
        path: of a .json or .jsonl file, or of a folder of them, which are read in the order of their names.
        columns: what means what, as for tables.
        options: see ``Options``.
    """
    path, ledger = Path(path), Ledger()
    files = sorted(_files(path)) if path.is_dir() else [path]
    parts: list[dict[str, list[Any]]] = []
    for file in files:
        require_file(file)
        parts += _batches(file)
    if not parts:
        raise SappError(f"{path}: no batches of steps in it; give what RLlib's output wrote")
    names = list(parts[0])
    for number, part in enumerate(parts):
        if set(part) != set(names):
            other = sorted(set(part).symmetric_difference(names))[0]
            raise SappError(f"{path}: batch {number} and the first differ in field {other!r}; all need the same fields")
    for name in [name for name in names if name in _NESTED]:
        ledger.columns.append(Column(name, None, "not needed"))
        names.remove(name)
    if len(parts) > 1:
        ledger.say(Kind.READ, f"{len(parts)} batches in {len(files)} files were read as one table")
    rows = sum(len(part["rewards"]) for part in parts)
    arrays = {name: [value for part in parts for value in part[name]] for name in names}
    notes = (
        provenance(path, "rllib")
        if not path.is_dir()
        else {"loader": "rllib", "source": str(path), "parts": [{"name": f.name, "sha256": sha256(f)} for f in files]}
    )
    chosen = {"name": path.absolute().name.split(".")[0], **given(options)}
    table = Table.of_arrays({name: _array(value, name, path) for name, value in arrays.items()}, rows, str(path))
    return read_log(table, given_columns(columns), ledger=ledger, notes=notes, **chosen)


def _batches(file: Path) -> list[dict[str, list[Any]]]:
    """The batches of a file; those of several agents only if there is one policy."""
    found = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                batch = json.loads(line)
            except (ValueError, UnicodeDecodeError) as error:
                raise SappError(
                    f"{file}: line {number} is not JSON ({one_line(error)}); it was probably cut short: remove it"
                ) from None
            found.append(_steps(batch, f"{file}: line {number}"))
    return found


def _steps(batch: Any, where: str) -> dict[str, list[Any]]:
    if isinstance(batch, dict) and batch.get("type") == "MultiAgentBatch":
        policies = batch.get("policy_batches", {})
        if len(policies) != 1:
            raise SappError(
                f"{where}: holds steps of {len(policies)} policies ({', '.join(policies)}); write each policy's to a "
                f"file of its own"
            )
        (batch,) = policies.values()
    if not isinstance(batch, dict) or "rewards" not in batch or not isinstance(batch["rewards"], list):
        raise SappError(
            f"{where}: is no batch of steps as RLlib writes them: it has no list of rewards; steps one by one go into "
            f"Parquet or CSV"
        )
    rows = len(batch["rewards"])
    out: dict[str, list[Any]] = {}
    for name, value in batch.items():
        if name in ("type", "count"):
            continue
        if isinstance(value, str):
            raise SappError(
                f"{where}: field {name!r} is packed (a pickle), which is never loaded; write the logs again with "
                f"output_config = {{'compress_columns': []}}"
            )
        if not isinstance(value, list) or len(value) != rows:
            raise SappError(f"{where}: field {name!r} does not have the {rows} rows of rewards; fix or remove the line")
        out[name] = value
    return out


def _array(values: list[Any], name: str, path: Path) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        raise SappError(f"{path}: {name} has rows of different widths; every row needs the same width") from None
    plain = all(isinstance(each, (int, float, type(None))) for each in values)
    if array.dtype.kind == "O" and array.ndim == 1 and plain:
        return np.array([np.nan if each is None else each for each in values], np.float64)
    return array


def _files(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.suffix.lower() in (".json", ".jsonl") and each.is_file()]


def _recognises(request: Request) -> bool:
    if not request.text:
        return False
    if request.ends_in(".json", ".jsonl"):
        return request.path.is_file() or not request.path.exists()
    # other programs keep notes in JSON too: RLlib names its files output-…
    return request.path.is_dir() and any(each.name.startswith("output-") for each in _files(request.path))


FORMAT = Format("RLlib's .json logs", _recognises, load_rllib, (*COMMON, "columns"))
