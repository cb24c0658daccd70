"""Parquet and CSV logs, one row a step, with columns mapped by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from sapp.data.dataset import ACTION_SLACK, Dataset
from sapp.data.files import Options, did_you_mean, given, one_line, provenance, readable, require_file
from sapp.errors import SappError

_VECTORS = {
    "observation": ("observation", "observations", "obs", "state"),
    "action": ("action", "actions", "act"),
    "next_observation": ("next_observation", "next_observations", "next_obs", "next_state"),
}
_SCALARS = {
    "reward": ("reward", "rewards"),
    "terminal": ("terminal", "terminals", "terminated", "done", "dones"),
    "timeout": ("timeout", "timeouts", "truncated"),
    "episode": ("episode", "episode_id", "trajectory", "trajectory_id"),
    "time": ("step", "time", "timestep", "t"),
    "log_prob": ("log_prob", "action_log_prob", "action_log_probs"),
}
_DONE = ("done", "dones")


@dataclass(frozen=True)
class Columns:
    """Which column of a log means what.

    Attributes:
        observation: one column per dimension, in order; or one Parquet column of lists.
        action: likewise.
        reward: of the step.
        terminal: 0/1, the task ended. Without it no step is terminal, and ``episode`` or ``timeout`` is needed. Where
            the column is called "done" and a time-out is set on the same row, the time-out wins: Gym's old ``done``
            was set at both.
        timeout: 0/1, the recording ended.
        episode: numbers or text, the same on all rows of an episode.
        time: orders the rows of an episode; needs ``episode``.
        next_observation: like ``observation``; without it the next row's observation is taken.
        log_prob: log-density of the behaviour policy; becomes an extra.
        action_low: bounds of the action columns, where they are not -1 and 1.
        action_high: likewise.
    """

    observation: Sequence[str]
    action: Sequence[str]
    reward: str = "reward"
    terminal: str | None = None
    timeout: str | None = None
    episode: str | None = None
    time: str | None = None
    next_observation: Sequence[str] | None = None
    log_prob: str | None = None
    action_low: Sequence[float] | float | None = None
    action_high: Sequence[float] | float | None = None

    def __post_init__(self) -> None:
        for key in ("observation", "action", "next_observation"):
            value = getattr(self, key)
            if isinstance(value, str):
                object.__setattr__(self, key, (value,))

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], where: str = "columns") -> Columns:
        """Build from plain data, with unknown keys and wrong types named.

        Args:
            mapping: the attributes above.
            where: what error messages call it.
        """
        known = [each.name for each in fields(cls)]
        for key, value in mapping.items():
            if key not in known:
                mend = f"known keys are {', '.join(known)}"
                raise SappError(f"{where}: unknown key {key!r}{did_you_mean(str(key), known)}; {mend}")
            texts = value if isinstance(value, (list, tuple)) and key in _VECTORS else [value]
            if not key.startswith("action_") and not all(isinstance(text, str) for text in texts):
                many = " or a list of names" if key in _VECTORS else ""
                raise SappError(f"{where}: {key} = {value!r} is not a column name{many}; put names in quotes")
        for key in ("observation", "action"):
            if not mapping.get(key):
                raise SappError(f"{where}: {key!r} is missing; say which columns hold it")
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in mapping.items()}
        return cls(**plain)

    @classmethod
    def from_toml(cls, path: str | Path) -> Columns:
        """Read a TOML file whose keys are the attributes above.

        Args:
            path: of the file.
        """
        path = Path(path)
        require_file(path)
        try:
            mapping = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SappError(f"{path}: not valid TOML ({one_line(error)}); mend that line") from None
        return cls.from_mapping(mapping, str(path))

    @classmethod
    def detect(cls, names: Sequence[str], where: str = "table") -> Columns:
        """Recognise columns by the usual names: obs_0, obs_1, …, action_0, …, reward, terminal, timeout, episode, step.

        Args:
            names: of all columns.
            where: what error messages call the table.
        """
        found: dict[str, Any] = {key: _detect_vector(names, words, where) for key, words in _VECTORS.items()}
        lower = {name.lower(): name for name in reversed(names)}
        for key, words in _SCALARS.items():
            found[key] = next((lower[word] for word in words if word in lower), None)
        for key in ("observation", "action", "reward"):
            if not found[key]:
                raise SappError(
                    f"{where}: no {key} columns recognised; name them {key}{'' if key == 'reward' else '_0, …'} "
                    f"or give a column mapping; columns are {_listed(names)}"
                )
        if found["episode"] is None:
            found["time"] = None
        return cls(**found)


def load_table(
    path: str | Path,
    *,
    columns: Columns | Mapping[str, Any] | str | Path | None = None,
    **options: Unpack[Options],
) -> Dataset:
    """Load a Parquet or CSV log.

    Rows are sorted by (episode, time) where both are known; with an episode column alone, the rows of an episode are
    brought together in the order of the file. Action bounds are those given; without any, a dimension that leaves
    [-1, 1] gets the range of the data, which the provenance states.

    Args:
        path: ending in .parquet, .csv or .csv.gz.
        columns: a ``Columns``, a dictionary, the path of a TOML file, or None to go by the usual names.
        options: see ``Options``.
    """
    path = Path(path)
    require_file(path)
    table = _read(path)
    names = list(table.column_names)
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise SappError(f"{path}: column {double[0]!r} appears more than once; rename one")
    mapping = _mapping(columns, names, str(path))
    if table.num_rows == 0:
        raise SappError(f"{path}: no rows below the header; give at least one step")
    _require(mapping, names, path)

    def vector(key: str) -> np.ndarray:
        chosen = getattr(mapping, key)
        parts = [_numbers(table, name, path) for name in chosen]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def scalar(key: str) -> np.ndarray | None:
        name = getattr(mapping, key)
        return None if name is None else _numbers(table, name, path)

    arrays: dict[str, np.ndarray | None] = {key: vector(key) for key in ("observation", "action")}
    arrays |= {key: scalar(key) for key in ("reward", "terminal", "timeout", "log_prob")}
    arrays["next_observation"] = vector("next_observation") if mapping.next_observation else None
    arrays["episode"] = _identities(table, mapping.episode, path)
    notes: dict[str, Any] = {**provenance(path, _kind(path)), "columns": _as_json(mapping)}
    source = str(path)
    order = _order(table, arrays["episode"], mapping, path)
    if order is not None:
        arrays = {key: None if value is None else value[order] for key, value in arrays.items()}
        source += " (rows counted after sorting by episode)"
        notes["sorted_by"] = [name for name in (mapping.episode, mapping.time) if name]
    observation, action, reward = arrays["observation"], arrays["action"], arrays["reward"]
    assert observation is not None
    assert action is not None
    assert reward is not None
    terminal, timeout = arrays["terminal"], arrays["timeout"]
    if terminal is None:
        if mapping.episode is None and timeout is None:
            raise SappError(f"{path}: no terminal, timeout or episode column; one is needed to tell episodes apart")
        terminal = np.zeros(len(action), bool)
        notes["terminal"] = "no column: no step is terminal"
    elif timeout is not None and (mapping.terminal or "").lower() in _DONE:
        terminal = np.where(timeout == 1, 0, terminal)
    chosen = {"name": path.name.split(".")[0], **given(options)}
    low, high = chosen.pop("action_low", mapping.action_low), chosen.pop("action_high", mapping.action_high)
    if low is None and high is None:
        low, high, inferred = _infer_bounds(action)
        if inferred:
            notes["action_bounds_inferred"] = {"dimensions": inferred, "low": low.tolist(), "high": high.tolist()}
    log_prob = arrays["log_prob"]
    return Dataset.from_arrays(
        observation,
        action,
        reward,
        terminal,
        next_observation=arrays["next_observation"],
        timeout=timeout,
        episode=arrays["episode"],
        action_low=-1.0 if low is None else low,
        action_high=1.0 if high is None else high,
        extras={} if log_prob is None else {"log_prob": log_prob},
        provenance=notes,
        source=source,
        **chosen,
    )


def _kind(path: Path) -> str:
    return "parquet" if path.suffix.lower() == ".parquet" else "csv"


def _read(path: Path) -> Any:
    import pyarrow as pa

    def read() -> Any:
        if _kind(path) == "parquet":
            import pyarrow.parquet

            # The file itself, not its path: a path would let folder names such as "seed=3" become columns.
            with path.open("rb") as file:
                return pyarrow.parquet.read_table(file)
        import pyarrow.csv

        return pyarrow.csv.read_csv(path)

    return readable(path, _kind(path), read, (pa.ArrowException, OSError, ValueError))


def _mapping(columns: Columns | Mapping[str, Any] | str | Path | None, names: Sequence[str], where: str) -> Columns:
    if columns is None:
        return Columns.detect(names, where)
    if isinstance(columns, Columns):
        return columns
    return Columns.from_toml(columns) if isinstance(columns, (str, Path)) else Columns.from_mapping(columns)


def _require(mapping: Columns, names: Sequence[str], path: Path) -> None:
    for key in (*_VECTORS, *_SCALARS):
        value = getattr(mapping, key)
        for name in () if value is None else (value,) if isinstance(value, str) else value:
            if name not in names:
                raise SappError(
                    f"{path}: no column {name!r} for {key}{did_you_mean(name, names)}; columns are {_listed(names)}"
                )
    if mapping.time is not None and mapping.episode is None:
        raise SappError(f"{path}: time is {mapping.time!r} but no episode column is given; name it, or leave time out")


def _numbers(table: Any, name: str, path: Path) -> np.ndarray:
    """A column as numbers: [N], or [N, width] for a column of lists."""
    import pyarrow as pa

    column = table.column(name).combine_chunks()
    _no_gaps(column, name, path)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths = np.array([len(item) for item in column])
        other = np.flatnonzero(lengths != lengths[0])
        if len(other):
            row = int(other[0])
            raise SappError(
                f"{path}: column {name!r} is {lengths[row]} wide at row {row} but {lengths[0]} at row 0; "
                f"every row needs the same width"
            )
        values = column.flatten()
        if values.null_count:
            at = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]) // max(int(lengths[0]), 1)
            raise SappError(f"{path}: column {name!r} has an empty value at row {at}; fill it or drop that episode")
        if not _is_number(values.type):
            raise SappError(f"{path}: column {name!r} holds lists of {values.type}, not of numbers; convert it")
        matrix = np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), int(lengths[0]))
        return _finite(matrix, name, path)
    if not _is_number(kind):
        row, text = _first_text(column)
        raise SappError(f"{path}: column {name!r} is {text!r} at row {row}, not a number; mend it or map other columns")
    return _finite(np.asarray(column.to_numpy(zero_copy_only=False)), name, path)


def _finite(values: np.ndarray, name: str, path: Path) -> np.ndarray:
    """The same values; here the column and the row in the file can still be named, later only field and dimension."""
    good = np.isfinite(values)
    if not good.all():
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        raise SappError(f"{path}: column {name!r} is {values[at]} at row {at[0]}; mend it or drop that episode")
    return values


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _no_gaps(column: Any, name: str, path: Path) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise SappError(f"{path}: column {name!r} is empty or NaN at row {row}; fill it or drop that episode")


def _first_text(column: Any) -> tuple[int, str]:
    """The first value that does not read as a number, and its row (the first row below the header is 0)."""
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return row, str(value)[:40]
    return 0, str(column[0])[:40]


def _identities(table: Any, name: str | None, path: Path) -> np.ndarray | None:
    if name is None:
        return None
    column = table.column(name).combine_chunks()
    _no_gaps(column, name, path)
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(str) if values.dtype == object else values


def _order(table: Any, episode: np.ndarray | None, mapping: Columns, path: Path) -> np.ndarray | None:
    """The order that brings episodes together (and sorts them by time), or None where rows already are in it."""
    if episode is None:
        return None
    _, first, code = np.unique(episode, return_index=True, return_inverse=True)
    if mapping.time is None:
        order = np.argsort(first[code], kind="stable")
    else:
        column = table.column(mapping.time).combine_chunks()
        _no_gaps(column, mapping.time, path)
        time = np.asarray(column.to_numpy(zero_copy_only=False))
        if time.dtype == object:
            row, text = _first_text(column)
            raise SappError(
                f"{path}: column {mapping.time!r} is {text!r} at row {row}, not a number or a date; mend it"
            )
        order = np.lexsort((time, code))
        same = np.flatnonzero((code[order][1:] == code[order][:-1]) & (time[order][1:] == time[order][:-1]))
        if len(same):
            row = int(order[same[0] + 1])
            raise SappError(
                f"{path}: {mapping.episode} {episode[row]} has {mapping.time} {time[row]} twice, again at row {row}; "
                f"remove the copy or map another time column"
            )
    return None if np.array_equal(order, np.arange(len(order))) else order


def _infer_bounds(action: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = action.min(axis=0).astype(np.float32), action.max(axis=0).astype(np.float32)
    outside = (low < -1 - ACTION_SLACK) | (high > 1 + ACTION_SLACK)
    # A constant has no range: any interval around it will do, and the provenance shows which.
    constant = low == high
    low, high = np.where(constant, low - 1, low), np.where(constant, high + 1, high)
    return np.where(outside, low, -1), np.where(outside, high, 1), np.flatnonzero(outside).tolist()


def _detect_vector(names: Sequence[str], words: Iterable[str], where: str) -> tuple[str, ...] | None:
    for word in words:
        numbered = {}
        for name in names:
            if match := re.fullmatch(rf"{word}[_.]?(\d+)", name.lower()):
                numbered[int(match[1])] = name
        if numbered:
            start, indices = min(numbered), sorted(numbered)
            if start > 1 or indices != list(range(start, start + len(indices))):
                gap = next((i for i in range(min(start, 1), max(indices)) if i not in numbered), 0)
                raise SappError(f"{where}: columns {word}_… skip number {gap}; add it or give a column mapping")
            return tuple(numbered[i] for i in indices)
        exact = next((name for name in names if name.lower() == word), None)
        if exact is not None:
            return (exact,)
    return None


def _as_json(mapping: Columns) -> dict[str, Any]:
    chosen = given({each.name: getattr(mapping, each.name) for each in fields(mapping)})
    return {key: list(value) if isinstance(value, (list, tuple)) else value for key, value in chosen.items()}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
