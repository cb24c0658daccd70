"""Parquet and CSV logs, one row a step, with columns mapped by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from sapp.core.errors import SappError, did_you_mean, one_line
from sapp.data.dataset import ACTION_SLACK, Dataset
from sapp.data.loaders.files import Options, given, require_file
from sapp.data.loaders.table_columns import (
    column_of,
    flags,
    holds_words,
    identities,
    is_list,
    is_number,
    numbers,
    times,
)
from sapp.data.loaders.table_files import is_parts_folder, read_table, table_provenance
from sapp.data.registry import COMMON, Format, Request
from sapp.data.repair import (
    CHOICES,
    codes_of,
    drop_copies,
    forward_fill,
    gap_rows,
    labels_of,
    needs_scaling,
    rows_after,
    sparse_rewards,
    split_at,
)

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
_FILLED = ("observation", "next_observation")


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
        action_kind: "continuous" or "discrete"; by default text is discrete and numbers are continuous.
        action_labels: all discrete actions by name, in the order that numbers them; by default those that occur,
            sorted.
        missing: what to do about empty values: "error" (default), "fill" observations with the last known one of the
            episode, or "drop" the whole episode. Rewards that are empty on most rows before the ends of episodes are 0
            there, whatever this says; episode and time may never be empty.
        gaps: what to do where steps are missing in time: "split" the episode there (default), "cut" off what follows,
            "keep" it as if nothing were missing, or "error".
        scale: "auto" (default) standardises features if they are far from unit size, "standard" always, "none" never.
            Columns recognised by their names, without a mapping, are left as they are.
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
    action_kind: str | None = None
    action_labels: Sequence[str] | None = None
    missing: str | None = None
    gaps: str | None = None
    scale: str | None = None

    def __post_init__(self) -> None:
        for key, choices in CHOICES.items():
            value = getattr(self, key)
            if value is not None and value not in choices:
                raise SappError(f"columns: {key} is {value!r}; use one of {', '.join(choices)}")
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
        labels = plain.get("action_labels")
        if labels is not None and (isinstance(labels, str) or not all(isinstance(each, str) for each in labels)):
            raise SappError(f"{where}: action_labels = {labels!r} is not a list of names; put names in quotes")
        try:
            return cls(**plain)
        except SappError as error:
            raise SappError(str(error).replace("columns:", f"{where}:", 1)) from None

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
    """Load a Parquet or CSV log, or a folder of Parquet files, in it or below it, that make one log.

    Rows are sorted by (episode, time) where both are known; with an episode column alone, the rows of an episode are
    brought together in the order of the file. Action bounds are those given; without any, a dimension that leaves
    [-1, 1] gets the range of the data, which the provenance states.

    Args:
        path: ending in .parquet, .csv or .csv.gz; or a folder whose .parquet files follow each other by name. Where
            parts lie in folders such as batch=7, a mapping may name ``batch`` like any column.
        columns: a ``Columns``, a dictionary, the path of a TOML file, or None to go by the usual names.
        options: see ``Options``.
    """
    path = Path(path)
    mapping = _given(columns)
    table, repairs = read_table(path, () if mapping is None else _named(mapping))
    names = list(table.column_names)
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise SappError(f"{path}: column {double[0]!r} appears more than once; rename one")
    if mapping is None:
        mapping = Columns.detect(names, str(path))
    if table.num_rows == 0:
        raise SappError(f"{path}: no rows below the header; give at least one step")
    _require(mapping, names, path)
    log = _Log.read(table, mapping, path, repairs)
    notes: dict[str, Any] = {**table_provenance(path), "columns": _as_json(mapping)}
    source = str(path)
    if log.sort(table, mapping, path):
        source += " (rows counted after sorting by episode)"
        notes["sorted_by"] = [name for name in (mapping.episode, mapping.time) if name]
    # before episodes are split at gaps: what comes before a gap is not the end that a sparse reward is given at
    log.mend_sparse_rewards()
    log.mend_gaps(mapping, path)
    log.mend_missing(table, mapping, path)
    arrays = log.arrays
    action = arrays["action"]
    terminal, timeout = arrays.get("terminal"), arrays.get("timeout")
    if terminal is None:
        if mapping.episode is None and timeout is None:
            raise SappError(f"{path}: no terminal, timeout or episode column; one is needed to tell episodes apart")
        terminal = np.zeros(len(action), bool)
        notes["terminal"] = "no column: no step is terminal"
    elif timeout is not None and (mapping.terminal or "").lower() in _DONE:
        terminal = np.where(timeout == 1, 0, terminal)
    chosen = {"name": path.absolute().name.split(".")[0], **given(options)}
    low, high = chosen.pop("action_low", mapping.action_low), chosen.pop("action_high", mapping.action_high)
    if log.num_actions is not None:
        low = high = None
    elif low is None and high is None:
        low, high, inferred = _infer_bounds(action)
        if inferred:
            notes["action_bounds_inferred"] = {"dimensions": inferred, "low": low.tolist(), "high": high.tolist()}
            repairs.append(
                f"no action bounds are given: those of {', '.join(mapping.action)} are taken from the data; a policy "
                f"will stay within them"
            )
    if repairs:
        notes["repairs"] = repairs
    log_prob = arrays.get("log_prob")
    data = Dataset.from_arrays(
        arrays["observation"],
        action,
        arrays["reward"],
        terminal,
        next_observation=arrays.get("next_observation"),
        timeout=timeout,
        episode=arrays.get("episode"),
        action_low=-1.0 if low is None else low,
        action_high=1.0 if high is None else high,
        extras={} if log_prob is None else {"log_prob": log_prob},
        provenance=notes,
        source=source,
        num_actions=log.num_actions,
        action_labels=log.labels,
        **chosen,
    )
    return data if columns is None else _scaled(data, mapping)


def _scaled(data: Dataset, mapping: Columns) -> Dataset:
    """Standardised, where the mapping or the data ask for it; the provenance says why."""
    scale = mapping.scale or "auto"
    why = needs_scaling(data.observation) if scale == "auto" else "the column mapping asks for it"
    if scale == "none" or why is None:
        return data
    text = f"features are standardised to mean 0 and deviation 1 ({why}); policies still take them as logged"
    notes = {**data.provenance, "repairs": [*data.provenance.get("repairs", []), text]}
    return replace(data.standardised(), provenance=notes)


@dataclass
class _Log:
    """A table's columns as arrays of N rows, by our names, on their way to a dataset; ``repairs``: what was done."""

    arrays: dict[str, np.ndarray]
    time: np.ndarray | None
    row: np.ndarray
    labels: list[str] | None
    num_actions: int | None
    repairs: list[str]

    @classmethod
    def read(cls, table: Any, mapping: Columns, path: Path, repairs: list[str]) -> _Log:
        """Read every column that the mapping names; empty values are NaN until they are mended."""
        arrays: dict[str, np.ndarray] = {"observation": _vector(table, mapping.observation, path)}
        arrays["action"], labels, count = _actions(table, mapping, path, repairs)
        if mapping.next_observation:
            arrays["next_observation"] = _vector(table, mapping.next_observation, path)
        arrays["reward"] = numbers(table, mapping.reward, path)
        for key in ("terminal", "timeout"):
            name = getattr(mapping, key)
            if name is not None:
                arrays[key] = flags(table, name, path, repairs)
        if mapping.log_prob is not None:
            arrays["log_prob"] = numbers(table, mapping.log_prob, path)
        episode = identities(table, mapping.episode, path)
        if episode is not None:
            arrays["episode"] = episode
        return cls(arrays, None, np.arange(table.num_rows), labels, count, repairs)

    def take(self, rows: np.ndarray) -> None:
        """Keep these rows, in this order."""
        self.arrays = {key: value[rows] for key, value in self.arrays.items()}
        self.time = None if self.time is None else self.time[rows]
        self.row = self.row[rows]

    def sort(self, table: Any, mapping: Columns, path: Path) -> bool:
        """Bring episodes together, in time; leave out exact copies of rows. Returns whether rows moved."""
        episode = self.arrays.get("episode")
        if episode is None:
            return False
        _, first, code = np.unique(episode, return_index=True, return_inverse=True)
        if mapping.time is None:
            order = np.argsort(first[code], kind="stable")
        else:
            time = self.time = times(table, mapping.time, path)
            order = np.lexsort((time, code))
            order, copies, conflict = drop_copies(order, code, time, self.arrays)
            if conflict is not None:
                raise SappError(
                    f"{path}: {mapping.episode} {episode[conflict]} has {mapping.time} {time[conflict]} twice, again "
                    f"at row {conflict}; remove the copy or map another time column"
                )
            if copies:
                self.repairs.append(f"{copies} exact copies of rows were left out")
        moved = not np.array_equal(order, np.arange(len(order)))
        if moved and np.any(np.diff(order) < 0):
            self.repairs.append(f"rows were sorted by {' and '.join(n for n in (mapping.episode, mapping.time) if n)}")
        self.take(order)
        return moved

    def mend_gaps(self, mapping: Columns, path: Path) -> None:
        """Missing steps in time, by the mapping's choice."""
        episode, what = self.arrays.get("episode"), mapping.gaps or "split"
        if episode is None or self.time is None or what == "keep":
            return
        rows, usual = gap_rows(episode, self.time)
        if usual is None and np.any(episode[1:] == episode[:-1]):
            self.repairs.append(f"{mapping.time} goes on in uneven steps: every row counts as one step")
        if not len(rows):
            return
        row = int(rows[0])
        count = len(np.unique(episode[rows]))
        place = f"{len(rows)} gaps in time in {count} episodes (the first before row {self.row[row]}, "
        place += (
            f"{mapping.episode} {episode[row]}, {mapping.time} {self.time[row]}; steps are usually {usual:g} apart)"
        )
        if what == "error":
            raise SappError(f"{path}: {place}; mend them, or choose gaps = 'split', 'cut' or 'keep'")
        if what == "cut":
            keep = ~rows_after(episode, rows)
            self.repairs.append(f"{place}: what follows a gap was cut off, {np.count_nonzero(~keep)} rows")
            self.take(np.flatnonzero(keep))
            # the step before the gap has no successor in the log: the episode ends there without a terminal
            return
        self.repairs.append(f"{place}: episodes were split there; what follows a gap counts as an episode of its own")
        self.arrays["episode"] = split_at(episode, rows)

    def mend_sparse_rewards(self) -> None:
        """Rewards that are logged at the ends of episodes, and empty on most rows before, are 0 there."""
        reward = self.arrays["reward"]
        last = np.zeros(len(reward), bool)
        last[-1] = True
        if "episode" in self.arrays:
            last[:-1] |= self.arrays["episode"][1:] != self.arrays["episode"][:-1]
        else:
            for key in ("terminal", "timeout"):
                if key in self.arrays:
                    last |= self.arrays[key] == 1
        self.arrays["reward"], count = sparse_rewards(reward, last)
        if count:
            self.repairs.append(f"{count} empty rewards before the ends of episodes were taken as 0")

    def mend_missing(self, table: Any, mapping: Columns, path: Path) -> None:
        """Empty values, by the mapping's choice."""
        what = mapping.missing or "error"
        episode = self.arrays.get("episode")
        if episode is None and what != "error":
            raise SappError(f"{path}: missing = {what!r} needs an episode column; name it, or mend the empty values")
        if episode is not None and what == "fill":
            for key in _FILLED:
                if key in self.arrays:
                    self.arrays[key], filled = forward_fill(self.arrays[key], episode)
                    if filled:
                        self.repairs.append(f"{filled} empty values of {key} were filled with the last known ones")
        if episode is None or what != "drop":
            self._refuse_missing(table, mapping, path)
            return
        bad = np.zeros(len(episode), bool)
        for value in self.arrays.values():
            bad |= _missing(value).any(1)
        if bad.any():
            lost = np.unique(episode[bad])
            keep = ~np.isin(episode, lost)
            if not keep.any():
                raise SappError(f"{path}: every episode has empty values; mend them, nothing would be left")
            self.repairs.append(
                f"{len(lost)} of {len(np.unique(episode))} episodes were dropped for empty values, "
                f"{np.count_nonzero(~keep)} rows (the first empty value is at row {self.row[np.argmax(bad)]})"
            )
            self.take(np.flatnonzero(keep))

    def _refuse_missing(self, table: Any, mapping: Columns, path: Path) -> None:
        """Raise at the first empty value that is left."""
        for key, value in self.arrays.items():
            missing = _missing(value)
            if not missing.any():
                continue
            row, dimension = (int(i) for i in np.argwhere(missing)[0])
            names = getattr(mapping, key)
            name = names if isinstance(names, str) else _column_at(table, names, dimension, path)
            mend = "; mend it, or choose missing = 'fill' or 'drop' in a column mapping"
            if mapping.missing == "fill" or key not in _FILLED:
                mend = (
                    " and cannot be filled; mend it, or choose missing = 'drop' in a column mapping: the episode goes"
                )
            raise SappError(f"{path}: column {name!r} is empty or NaN at row {self.row[row]}{mend}")


def _missing(values: np.ndarray) -> np.ndarray:
    """Which numbers [N, width] are missing."""
    if values.dtype.kind != "f":
        return np.zeros((len(values), 1), bool)
    return np.isnan(values).reshape(len(values), -1)


def _column_at(table: Any, names: Sequence[str], dimension: int, path: Path) -> str:
    """The column that holds a dimension of a vector; a column of lists holds several."""
    if len(names) == 1:
        return names[0]
    widths = [numbers(table, name, path).reshape(table.num_rows, -1).shape[1] for name in names]
    return names[int(np.searchsorted(np.cumsum(widths), dimension, "right"))]


def _vector(table: Any, names: Sequence[str], path: Path) -> np.ndarray:
    """Columns side by side [N, width]."""
    parts = [numbers(table, name, path) for name in names]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _actions(
    table: Any, mapping: Columns, path: Path, repairs: list[str]
) -> tuple[np.ndarray, list[str] | None, int | None]:
    """Actions, their labels and how many there are, where they are discrete."""
    kind, columns = mapping.action_kind, mapping.action
    column = column_of(table, columns[0])
    text = not is_number(column.type) and not is_list(column.type) and holds_words(column)
    wanted = kind == "discrete" or mapping.action_labels is not None or (kind is None and text and len(columns) == 1)
    if not wanted:
        return _vector(table, columns, path), None, None
    if len(columns) != 1:
        raise SappError(f"{path}: {len(columns)} columns are mapped to a discrete action; name one column")
    if text or mapping.action_labels is not None:
        found, labels = labels_of(column.to_pylist(), mapping.action_labels, columns[0], str(path))
        if mapping.action_labels is None:
            listed = ", ".join(f"{label} = {number}" for number, label in enumerate(labels[:10]))
            repairs.append(f"actions in words were numbered: {listed}{' …' if len(labels) > 10 else ''}")
        return found, labels, len(labels)
    values = numbers(table, columns[0], path)
    return values, None, codes_of(values, columns[0], str(path))


def _given(columns: Columns | Mapping[str, Any] | str | Path | None) -> Columns | None:
    if columns is None or isinstance(columns, Columns):
        return columns
    return Columns.from_toml(columns) if isinstance(columns, (str, Path)) else Columns.from_mapping(columns)


def _named(mapping: Columns) -> dict[str, str]:
    """The columns that a mapping names, and what for."""
    found: dict[str, str] = {}
    for key in (*_VECTORS, *_SCALARS):
        value = getattr(mapping, key)
        for name in () if value is None else (value,) if isinstance(value, str) else value:
            found.setdefault(name, key)
    return found


def _require(mapping: Columns, names: Sequence[str], path: Path) -> None:
    for name, key in _named(mapping).items():
        if name not in names:
            raise SappError(
                f"{path}: no column {name!r} for {key}{did_you_mean(name, names)}; columns are {_listed(names)}"
            )
    if mapping.time is not None and mapping.episode is None:
        raise SappError(f"{path}: time is {mapping.time!r} but no episode column is given; name it, or leave time out")


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


def _recognises(request: Request) -> bool:
    return request.ends_in(".parquet", ".csv", ".csv.gz") or (bool(request.text) and is_parts_folder(request.path))


FORMAT = Format(
    "a path ending in .parquet, .csv or .csv.gz, a folder of Parquet files", _recognises, load_table,
    (*COMMON, "columns"),
)  # fmt: skip
