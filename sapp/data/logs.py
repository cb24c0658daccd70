"""From a table to a dataset: columns found and read, rows sorted and repaired, all of it accounted for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError
from sapp.data.columns import Columns, named
from sapp.data.dataset import Dataset
from sapp.data.episode_marks import looks_like_field, tell_episodes_apart
from sapp.data.field_names import (
    FIELD_DOCS,
    NOT_NEEDED,
    ROLES,
    SCALARS,
    VECTORS,
    left_over,
    normal,
    refuse_near_misses,
    refuse_opposites,
    why_unused,
)
from sapp.data.ledger import Column, Kind, Ledger, positions
from sapp.data.log_actions import MANY_WORDS, clipped, infer_bounds, read_actions, vector
from sapp.data.log_rows import LogRows
from sapp.data.repair import labels_of, needs_scaling
from sapp.data.rlds import steps_of_rlds
from sapp.data.streams import codes
from sapp.data.table import Table


def read_log(
    table: Table,
    columns: Columns,
    *,
    ledger: Ledger | None = None,
    notes: Mapping[str, Any] | None = None,
    extras: Mapping[str, str] | None = None,
    infer: bool = True,
    **options: Any,
) -> Dataset:
    """Make a dataset of a table.

    Rows are sorted by (episode, time) where both are known; with an episode column alone, the rows of an episode are
    brought together in the order of the table.

    Args:
        table: one row per step.
        columns: what means what; what it leaves out is inferred from names.
        ledger: account of what was done so far.
        notes: go into the provenance.
        extras: columns to keep among the dataset's extras, and what to call them.
        infer: take action bounds from the data where none are given and actions leave [-1, 1].
        options: name, environment, physics, action_low, action_high, max_episode_steps, last_step.
    """
    ledger = ledger if ledger is not None else Ledger()
    ledger.rows = table.rows
    table, columns = steps_of_rlds(table, columns, ledger)
    mapping = columns.completed(table.names, table.where)
    if table.rows == 0:
        raise SappError(f"{table.where}: no transitions (0 rows below the header); give at least one step")
    mapping.check_names(table.names, table.where)
    bounds: dict[str, Any] = {
        key: options.pop(key) if options.get(key) is not None else getattr(mapping, key)
        for key in ("action_low", "action_high")
    }
    bounded = bounds["action_low"] is not None or bounds["action_high"] is not None
    log = _Log.read(table, mapping, columns, ledger, bounded)
    tell_episodes_apart(log, columns.names_all)
    log.read_extras(extras or {})
    log.account_columns(columns)
    log.repair()
    log.say_rounding()
    arrays = log.arrays
    bounds = {} if log.num_actions is not None else log.bound_actions(infer=infer, **bounds)
    found: dict[str, Any] = {**(notes or {}), "columns": log.mapping.to_json()}
    last_step = options.pop("last_step", None) or mapping.last_step
    options["max_episode_steps"] = options.get("max_episode_steps") or mapping.max_episode_steps
    data = Dataset.from_arrays(
        arrays["observation"], arrays["action"], arrays["reward"], log.terminals(last_step),
        next_observation=arrays.get("next_observation"), timeout=arrays.get("timeout"), episode=arrays.get("episode"),
        holes=log.holes,
        action_mask=arrays.get("action_mask"), next_action_mask=arrays.get("next_action_mask"),
        old_done=log.old_done, last_step=last_step, extras=log.extras, provenance=found,
        source=table.where + log.moved, num_actions=log.num_actions, action_labels=log.labels, ledger=ledger,
        **bounds, **{key: value for key, value in options.items() if value is not None},
    )  # fmt: skip
    scales = mapping.scale is not None or bool(columns.observation)
    return _scaled(data, mapping) if scales else data


def _scaled(data: Dataset, mapping: Columns) -> Dataset:
    """Standardised, where the mapping or the data ask for it; the ledger says why."""
    scale = mapping.scale or "auto"
    features = data.observation if data.mask_at is None else data.observation[:, : data.mask_at]
    why = needs_scaling(features) if scale == "auto" else "the column mapping asks for it"
    if scale == "none" or why is None:
        return data
    ledger = Ledger.of(data)
    ledger.say(
        Kind.CHANGED,
        f"features are standardised to mean 0 and deviation 1 ({why}); policies still take them as logged",
        rows=len(data), asked=scale == "standard",
    )  # fmt: skip
    return replace(data.standardised(), provenance={**data.provenance, "ledger": ledger.to_json()})


@dataclass
class _Log(LogRows):
    """A table's columns as arrays of N rows, by our names, on their way to a dataset."""

    labels: list[str] | None = None
    """What the discrete actions are called."""
    num_actions: int | None = None

    @classmethod
    def read(cls, table: Table, mapping: Columns, asked: Columns, ledger: Ledger, bounded: bool) -> _Log:
        """Read every column that the mapping names; empty values are NaN until they are repaired.

        ``asked`` is the mapping without what was inferred from names.
        """
        uses: dict[str, str] = {}
        arrays = {"observation": _features(table, mapping, "observation", uses, ledger)}
        actions = read_actions(table, mapping, ledger, bounded)
        arrays["action"] = actions.values
        for name in mapping.action:
            uses[name] = f"action ({actions.read_as})"
        if mapping.next_observation:
            arrays["next_observation"] = _features(table, mapping, "next_observation", uses, ledger)
        number = actions.number
        for key in ("action_mask", "next_action_mask"):
            names = named(getattr(mapping, key))
            if names and not getattr(asked, key) and not _can_be_mask(table, names, actions.number):
                nothing: dict[str, Any] = {key: None}
                mapping = replace(mapping, **nothing)
            elif names:
                arrays[key] = vector(table, names)
                number = _masked_actions(actions.number, actions.labels, mapping, arrays[key].shape[1], table.where)
                uses |= dict.fromkeys(names, FIELD_DOCS[key])
        arrays["reward"] = table.numbers(str(mapping.reward))
        for key in ("terminal", "done", "timeout"):
            name = getattr(mapping, key)
            if name is not None:
                arrays[key] = table.flags(name, ledger)
        for key in ("log_prob", "probability"):
            if (name := getattr(mapping, key)) is not None:
                arrays[key] = table.numbers(name)
        if mapping.one_row_episodes:
            arrays["episode"] = np.arange(table.rows)
            ledger.say(Kind.READ, "every row is an episode of its own that ends there", rows=table.rows)
        elif mapping.episode is not None:
            arrays["episode"] = table.identities(mapping.episode)
        for key in SCALARS:
            if (name := getattr(mapping, key)) is not None:
                meant = FIELD_DOCS.get(key, key)
                uses[name] = f"{uses[name]} and {meant}" if name in uses else meant
        log = cls(table, mapping, ledger, arrays, uses, labels=actions.labels, num_actions=number)
        log._check_lengths()
        log._read_densities()
        return log

    def _check_lengths(self) -> None:
        for key, value in self.arrays.items():
            if len(value) != self.table.rows:
                raise SappError(
                    f"{self.table.where}: {key} has {len(value)} rows but observation has {self.table.rows}; all "
                    f"fields need the same length"
                )

    def _read_densities(self) -> None:
        """Probabilities as their logarithms; log-probabilities of discrete actions are at most 0."""
        where, name = self.table.where, self.mapping.log_prob or self.mapping.probability
        if (chance := self.arrays.pop("probability", None)) is not None:
            wrong = np.flatnonzero((chance <= 0) | (chance > 1 + 1e-6))
            if len(wrong):
                raise SappError(
                    f"{where}: column {name!r} is {chance[wrong[0]]} at row {wrong[0]}, but probabilities are above 0 "
                    f"and at most 1; fix it, or map log-densities as log_prob"
                )
            self.arrays["log_prob"] = np.log(chance.astype(np.float64))
            return
        density = self.arrays.get("log_prob")
        if density is None or self.num_actions is None:
            return
        wrong = np.flatnonzero(density > 1e-6)
        if len(wrong):
            raise SappError(
                f"{where}: column {name!r} is {density[wrong[0]]} at row {wrong[0]}, but logarithms of the "
                f"probabilities of discrete actions are at most 0; if these are probabilities, map them as probability "
                f"instead of log_prob (--map probability={name})"
            )

    def read_extras(self, wanted: Mapping[str, str]) -> None:
        """Further columns that are kept as they are."""
        for name, new in wanted.items():
            if name in self.uses or name in self.mapping.ignore:
                continue
            value = self.table.column(name)
            if value.dtype.kind in "biuf" and value.ndim and len(value) == self.table.rows:
                self.extras[new] = value
                self.uses[name] = f"kept beside the steps as {new!r}"

    def account_columns(self, given: Columns) -> None:
        """Say what became of each column; refuse to pass over one that seems to be a field."""
        unused = [name for name in self.table.names if name not in self.uses]
        ignored: Collection[str] = self.mapping.ignore
        taken = {key for key in ROLES if named(getattr(self.mapping, key))}
        kept = [name for name, use in self.uses.items() if use.startswith("kept")]
        if not given.names_all:
            opposites = [name for name in (*unused, *kept) if name not in ignored and not self._is_discount(name)]
            refuse_opposites(opposites, taken, self.table.where)
            refuse_near_misses([name for name in unused if name not in ignored], dict.fromkeys(taken), self.table.where)
        vectors = {name: key for key in VECTORS for name in named(getattr(self.mapping, key))}
        for name in () if given.names_all else (*unused, *kept):
            if name not in ignored and (role := left_over(name, vectors)):
                self.ledger.say(
                    Kind.WARNING,
                    f"column {name!r} is named like {role}, but is no part of it: map all of it "
                    f"(--map {role}=NAME,NAME), or list {name!r} in ignore",
                )
        for name in self.table.names:
            if name in self.uses:
                self.ledger.columns.append(Column(name, self.uses[name]))
                continue
            note = why_unused(name, taken, ignored)
            self.ledger.columns.append(Column(name, None, note))
            if note.startswith("looks like time") and not (given.names_all or self.mapping.episode):
                continue  # _find_restarts has spoken, if there is anything to say
            if note.endswith("is taken from another column") and (other := self._differs(name, note)):
                self.ledger.say(
                    Kind.WARNING,
                    f"columns {other!r} and {name!r} are both named like {note.split()[0]} and differ; the first is "
                    f"used: if that is wrong, map the other (--map {note.split()[0]}={name})",
                )
            if note.startswith("looks like"):
                self.ledger.say(Kind.WARNING, f"column {name!r} {note}: map it, or list it in ignore")
            elif name not in ignored and note != NOT_NEEDED and (seems := looks_like_field(self, name)):
                self.ledger.say(Kind.WARNING, f"column {name!r} is not used, but {seems} map it, or list it in ignore")

    def _differs(self, name: str, note: str) -> str | None:
        """The column that a field was taken from, where another of the same meaning says otherwise."""
        role = note.split()[0]
        if role not in ("done", "episode") or (other := getattr(self.mapping, role)) is None:
            return None
        mine, theirs = (self.table.glance(each) for each in (other, name))
        if mine is None or theirs is None or not mine.size == theirs.size == self.table.rows:
            return None
        same = np.array_equal(mine.reshape(-1), theirs.reshape(-1)) if role == "done" else None
        return None if same or (role == "episode" and np.array_equal(codes(mine), codes(theirs))) else other

    def _is_discount(self, name: str) -> bool:
        """Whether a column is a discount that is never 0, and so marks no end."""
        if normal(name).removesuffix("s") != "discount":
            return False
        values = self.table.glance(name)
        return values is None or values.dtype.kind not in "biuf" or not np.any(values == 0)

    def say_rounding(self) -> None:
        """Say where numbers lose their differences: datasets hold seven digits."""
        for key in ("observation", "next_observation", "reward"):
            values = self.arrays.get(key)
            if values is None or values.dtype.kind not in "iuf" or values.dtype.itemsize < 8:
                continue
            wide = values.reshape(len(values), -1)
            for i in np.flatnonzero(_hardly_moves(wide)):
                column = wide[:, i].astype(np.float64)
                with np.errstate(over="ignore", invalid="ignore"):
                    lost = np.abs(column - column.astype(np.float32)).max() > 0.01 * column.std()
                if not lost or np.ptp(column) == 0:
                    continue
                what = key if values.ndim == 1 else f"{key} {i}"
                self.ledger.say(
                    Kind.WARNING,
                    f"{what} is so large beside its changes ({column.min():.10g} to {column.max():.10g}) that "
                    f"seven digits blur them: subtract a constant in the log",
                )

    @property
    def old_done(self) -> bool:
        """Whether the column of ends is Gym's old one, set at every end."""
        alone = "terminal" not in self.arrays
        return ("done" in self.arrays and alone) or normal(self.mapping.terminal or "") in SCALARS["done"]

    def terminals(self, last_step: str | None) -> np.ndarray:
        """Which rows end the task; settles ``done`` beside ``terminal`` and ``timeout``."""
        rows, done = len(self.arrays["reward"]), self.arrays.get("done")
        terminal = self.arrays.get("terminal")
        if self.mapping.one_row_episodes:
            return np.ones(rows, bool)
        if terminal is not None:
            if done is not None:
                self.arrays["timeout"] = np.where((done == 1) & (terminal != 1), 1, self.arrays.get("timeout", 0))
                self.ledger.say(Kind.READ, f"ends ({self.mapping.done}) that are not terminal count as time-outs")
            return terminal
        if done is not None:
            return done
        if "episode" not in self.arrays and "timeout" not in self.arrays:
            raise SappError(
                f"{self.table.where}: no terminal, timeout or episode column; one is needed to separate episodes; "
                f"map one (--map terminal=NAME), or give one_row_episodes = true if every row is an episode"
            )
        if last_step != "end":
            self.ledger.say(
                Kind.READ,
                "no column says that an episode ended: every episode counts as going on after its last row",
            )
        return np.zeros(rows, bool)

    def bound_actions(self, action_low: ArrayLike | None, action_high: ArrayLike | None, infer: bool) -> dict[str, Any]:
        """The action bounds, given or inferred from the data."""
        action, where = self.arrays["action"], self.table.where
        low, high = action_low, action_high
        if low is None and high is None and infer:
            low, high, dimensions = infer_bounds(action, where, self.mapping.clip_actions)
            if dimensions:
                shown = ", ".join(f"{low[i]:g} to {high[i]:g}" for i in dimensions[:6])
                self.ledger.say(
                    Kind.READ,
                    f"no action bounds are given: those of {', '.join(self.mapping.action)} are taken from the data "
                    f"(dimension {', '.join(map(str, dimensions))}: {shown}); a policy will stay within them",
                )
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
        if self.mapping.clip_actions:
            self.arrays["action"] = clipped(action, low, high, self.ledger)
        return {"action_low": low, "action_high": high}


def _hardly_moves(values: np.ndarray) -> np.ndarray:
    """Columns of [N, D] whose standard deviation may be below 1e-5 of their largest number, or too large for float32.

    The squared deviations of a thousand rows are part of those of all: columns where they suffice are not looked at
    whole, which would take as long as reading the file.
    """
    few = values[:: max(1, len(values) // 1_000)].astype(np.float64)
    largest = np.maximum(np.abs(values.max(axis=0).astype(np.float64)), np.abs(values.min(axis=0).astype(np.float64)))
    moves = few.std(axis=0) * np.sqrt(len(few) / len(values)) > 1e-5 * largest
    return ~moves | (largest > np.finfo(np.float32).max)


def _features(table: Table, mapping: Columns, role: str, uses: dict[str, str], ledger: Ledger) -> np.ndarray:
    """The columns of an observation side by side [N, width]; those of ``one_hot`` as features of 0 and 1."""
    names = named(getattr(mapping, role))
    if not any(name in mapping.one_hot for name in names):
        found = vector(table, names)
        at = 0
        for name in names:
            width = found.shape[1] if len(names) == 1 and found.ndim > 1 else int(np.prod(table.column(name).shape[1:]))
            uses[name] = positions(at, width, role)
            at += width
        return found
    parts, at = [], 0
    for place, name in enumerate(names):
        if name not in mapping.one_hot:
            parts.append(table.numbers(name).reshape(table.rows, -1))
            uses[name] = positions(at, parts[-1].shape[1], role)
        else:
            # the values of the observation's own column count for what comes after it, too
            first = name if role == "observation" else mapping.observation[min(place, len(mapping.observation) - 1)]
            _, labels = labels_of(table.column(first).tolist(), None, first, table.where)
            if len(labels) > max(MANY_WORDS, table.rows // 4):
                raise SappError(
                    f"{table.where}: column {name!r} of one_hot holds {len(labels):,} different values in "
                    f"{table.rows:,} rows, too many for a feature each; leave it out, or merge rare values in the log"
                )
            codes, _ = labels_of(table.column(name).tolist(), labels, name, table.where)
            hot = (codes[:, None] == np.arange(len(labels))).astype(np.float64)
            hot[np.isnan(codes.astype(np.float64))] = np.nan
            parts.append(hot)
            uses[name] = positions(at, len(labels), role)
            ledger.say(Kind.READ, f"column {name!r} became {len(labels)} features of 0 and 1: {', '.join(labels[:10])}")
        at += parts[-1].shape[1]
    return np.concatenate(parts, axis=1)


def _can_be_mask(table: Table, names: Sequence[str], number: int | None) -> bool:
    """Whether columns that were found by their names alone can be a mask: not where they are words, or a count."""
    if number is None or any(table.holds_words(name) for name in names):
        return False
    return number == 1 or vector(table, names).shape[1] > 1


def _masked_actions(
    number: int | None, labels: Sequence[str] | None, mapping: Columns, width: int, where: str
) -> int | None:
    """How many actions there are, where a mask has a value for each: more than occur, perhaps."""
    if number is None:
        return None
    if labels is not None and mapping.action_labels is None:
        raise SappError(
            f"{where}: action_mask has a value for each of {width} actions, but actions are words: say which is which, "
            f"by action_labels in the order of the mask"
        )
    if number > width or (labels is not None and number != width):
        raise SappError(f"{where}: action_mask has {width} values for {number} actions; it needs one for each")
    return width
