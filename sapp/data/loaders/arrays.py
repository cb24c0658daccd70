"""NumPy data: dictionaries of arrays and .npz files, ours and other people's."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError
from sapp.core.files import check_replaceable, write_aside
from sapp.data.columns import Given, given_columns
from sapp.data.dataset import ARRAYS, Dataset
from sapp.data.field_names import resembles
from sapp.data.loaders.files import EXTRAS, Options, given, provenance, readable, require_file
from sapp.data.loaders.limits import check_npz
from sapp.data.loaders.ogbench import understood
from sapp.data.logs import read_log
from sapp.data.registry import COMMON, Format, Request
from sapp.data.table import Table

_META = "sapp_dataset"
_UNITS = ("observation_offset", "observation_scale")
_PREFIX = "extras/"


def load_mapping(
    arrays: Mapping[str, ArrayLike],
    *,
    columns: Given = None,
    source: str = "arrays",
    notes: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Dataset:
    """Build a dataset from a dictionary of arrays, such as D4RL's ``env.get_dataset()``.

    Names are those of ``sapp.data.field_names``. Other arrays of numbers with a row per transition become extras.

    Args:
        arrays: by name; observation, action and reward at least, and what tells where episodes end.
        columns: what means what, as for tables.
        source: what error messages call the input.
        notes: goes into the provenance.
        options: see ``Options``.
    """
    if nested := next((name for name, value in arrays.items() if isinstance(value, Mapping)), None):
        raise SappError(
            f"{source}: {nested} is a dictionary; give its parts side by side, as one array of a row per step"
        )
    if columns is None:
        arrays = understood(arrays, source)
    mapping = given_columns(columns)
    names = list(map(str, arrays))
    main = (mapping.completed(names, source).observation)[0]
    table = Table.of_arrays(arrays, 0, source)
    table.rows = rows = len(np.atleast_1d(table.column(main)))
    extras = {}
    for name in names:
        value = table.column(name)
        if value.ndim and len(value) != rows and name not in mapping.ignore:
            raise _of_other_length(name, len(value), rows, source)
        if value.dtype.kind in "biuf" and (resembles(name) is None or mapping.names_all):
            extras[name] = EXTRAS.get(name, name)
    return read_log(table, mapping, notes=notes or {"loader": "arrays"}, extras=extras, infer=False, **given(options))


def _of_other_length(name: str, length: int, rows: int, source: str) -> SappError:
    """What to say of an array that has not a row per observation."""
    advice = "correct it"
    if re.search("episode|traj|length|start|end", name.lower()):
        advice = f"if it tells where episodes are, give an id per row instead (episode), and ignore = [{name!r}]"
    elif resembles(name) is None:
        advice = f"correct it, or leave it out (ignore = [{name!r}])"
    elif length == rows - 1:
        advice = "if it holds the last one, too: give observation[:-1], and observation[1:] as next_observation"
    return SappError(f"{source}: array {name!r} has {length} rows but observation has {rows}; {advice}")


def load_npz(
    path: str | Path,
    *,
    columns: Given = None,
    **options: Unpack[Options],
) -> Dataset:
    """Load an .npz file, written by ``save_npz`` (everything comes back as it was) or by anyone else.

    Args:
        path: of the file.
        columns: what means what, as for tables; for files of other makers only.
        options: see ``Options``.
    """
    path = Path(path)
    require_file(path)
    errors = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)
    arrays = readable(path, "npz", lambda: _read(path), errors)
    if _META not in arrays:
        options["name"] = options.get("name") or path.stem
        return load_mapping(arrays, columns=columns, source=str(path), notes=provenance(path, "npz"), **options)
    if missing := [key for key in (*ARRAYS, "action_low", "action_high") if key not in arrays]:
        raise SappError(f"{path}: no {missing[0]!r} in the file; it is damaged, get it again")
    if columns is not None:
        raise SappError(f"{path}: was written by save_npz, which says what means what; leave columns out")
    try:
        meta = json.loads(str(arrays[_META]))
        chosen = {key: meta[key] for key in ("name", "environment", "physics", "provenance")}
    except (ValueError, KeyError, TypeError):
        raise SappError(
            f"{path}: {_META!r} in the file is not what save_npz writes; it is damaged, get it again"
        ) from None
    chosen |= {key: arrays[key] for key in ("action_low", "action_high")} | given(options)
    chosen |= {key: meta[key] for key in ("num_actions", "action_labels", "mask_at") if key in meta}
    units: dict[str, Any] = {key: arrays[key] for key in _UNITS if key in arrays}
    limit = chosen.pop("max_episode_steps", None)
    extras = {key.removeprefix(_PREFIX): value for key, value in arrays.items() if key.startswith(_PREFIX)}
    core: dict[str, Any] = {key: arrays[key] for key in ARRAYS}
    data = Dataset.from_arrays(**core, extras=extras, max_episode_steps=limit, source=str(path), **chosen)
    return replace(data, **units) if units else data


def check_target(path: Path, force: bool = False, *, forcible: bool = True) -> None:
    """Refuse to write a dataset over a file that ``save_npz`` did not write, such as the logs themselves."""
    check_replaceable(path, _is_ours, "a dataset that sapp wrote", force, forcible)


def _is_ours(content: bytes) -> bool:
    """Whether a zip archive's end lists the entry that only ``save_npz`` writes."""
    return content.startswith(b"PK") and f"{_META}.npy".encode() in content


def save_npz(dataset: Dataset, path: str | Path, *, compress: bool = False) -> Path:
    """Write a dataset to an .npz file that ``load`` reads back bit for bit; no unfinished file is ever left.

    Args:
        dataset: what to write.
        path: of the file, ending in .npz.
        compress: smaller and slower.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=3)
        >>> path = sapp.save_npz(data, "point.npz")
        >>> sapp.load(path).fingerprint == data.fingerprint
        True
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise SappError(f"{path}: the file name must end in .npz")
    meta = {key: getattr(dataset, key) for key in ("name", "environment", "physics", "provenance")}
    if dataset.discrete:
        meta |= {"num_actions": dataset.num_actions, "action_labels": dataset.action_labels}
        meta |= {} if dataset.mask_at is None else {"mask_at": dataset.mask_at}
    arrays: dict[str, Any] = {key: getattr(dataset, key) for key in (*ARRAYS, "action_low", "action_high")}
    arrays |= {key: getattr(dataset, key) for key in _UNITS if getattr(dataset, key) is not None}
    arrays |= {_PREFIX + key: value for key, value in dataset.extras.items()}
    arrays[_META] = np.array(json.dumps({"version": 1, **meta}))

    def write(aside: Path) -> None:
        # An open file, as savez would add .npz to a path that lacks it.
        with aside.open("wb") as file:
            (np.savez_compressed if compress else np.savez)(file, **arrays)

    write_aside(path, write)
    return path


def _read(path: Path) -> dict[str, np.ndarray]:
    check_npz(path)
    loaded = np.load(path, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise SappError(f"{path}: holds one bare array, not an npz archive; save the arrays with numpy.savez")
    with loaded:
        arrays = {}
        for key in loaded.files:
            try:
                arrays[key] = loaded[key]
            except ValueError as error:
                if "allow_pickle" not in str(error):
                    raise
                raise SappError(
                    f"{path}: {key!r} is an object array (a pickle), which is never loaded; save it as plain numbers"
                ) from None
        return arrays


def _is_mapping(request: Request) -> bool:
    return isinstance(request.source, Mapping)


ARRAYS_FORMAT = Format("a dictionary of arrays", _is_mapping, load_mapping, (*COMMON, "columns"))
NPZ_FORMAT = Format("a path ending in .npz", lambda request: request.ends_in(".npz"), load_npz, (*COMMON, "columns"))
