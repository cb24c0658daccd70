"""The one shape all logged data takes: flat arrays of transitions, with the episode structure kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError, printable
from sapp.data import array_checks as checks
from sapp.data.action_masks import check_mask
from sapp.data.action_units import to_unit
from sapp.data.episodes import Episodes, read_only
from sapp.data.ledger import Ledger
from sapp.data.steps import Steps, check_last_step

ARRAYS = ("observation", "action", "reward", "next_observation", "terminal", "timeout")
"""The six per-transition arrays of every dataset, in the order the constructor takes them."""


@dataclass(frozen=True, eq=False)
class Dataset(Episodes):
    """Transitions (s, a, r, s') of whole episodes, one row per step, episodes one after the other.

    Every episode ends in exactly one of two ways. ``terminal``: the task ended, nothing follows, do not bootstrap.
    ``timeout``: the recording ended (a step limit, or the end of the file), the task did not: always bootstrap. Where
    input says both, terminal wins. A last episode that neither ends gets a time-out on its last row.

    The constructor wants all six arrays and checks them; ``from_arrays`` also fills in what real files leave out.
    Arrays are held as read-only float32 or bool. Datasets of equal ``fingerprint`` hold the same data.

    Attributes:
        observation: float32 [N, O].
        action: float32 [N, A], within ``action_low`` and ``action_high``; where actions are discrete, int32 [N] from 0
            to ``num_actions`` − 1.
        reward: float32 [N].
        next_observation: float32 [N, O]; on terminal rows it is never used for a target.
        terminal: bool [N], stops bootstrapping.
        timeout: bool [N], the episode ends here, never stops bootstrapping.
        name: what to call it in messages, tables and run folders.
        environment: "hopper", "halfcheetah", "walker2d", any Gymnasium id, or None when unknown.
        physics: "d4rl" when recorded with the MuJoCo of D4RL, else None.
        action_low: float32 [A], the environment's bounds (a scalar is broadcast), -1 by default.
        action_high: float32 [A], likewise, 1 by default.
        provenance: where it came from, as JSON: source path, SHA-256, loader, and the ``Ledger`` of its rows.
        extras: further arrays of N rows, kept as they are (``qpos``, ``qvel``, behaviour ``log_prob``).
        num_actions: how many discrete actions there are, None where actions are continuous.
        action_labels: what the discrete actions are called in the logs, in order, where they have names.
        observation_offset: float32 [O], where observations were rescaled: stored = (logged − offset)/scale.
        observation_scale: float32 [O], likewise; policies are applied to observations as they are logged, see ``raw``.
        mask_at: where in an observation the mask begins that says which discrete actions are possible (``num_actions``
            values of 0 and 1), None where there is none. Discrete learners and their policies keep to it.

    Examples:
        >>> import numpy as np
        >>> import sapp
        >>> seen, action = np.zeros((4, 3)), np.zeros((4, 2))
        >>> data = sapp.Dataset.from_arrays(seen, action, reward=[1, 1, 1, 5], terminal=[0, 1, 0, 1])
        >>> len(data), data.episode_returns.tolist()
        (4, [2.0, 6.0])
    """

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_observation: np.ndarray
    terminal: np.ndarray
    timeout: np.ndarray
    name: str = "dataset"
    environment: str | None = None
    physics: str | None = None
    action_low: np.ndarray = field(default_factory=lambda: np.array(-1.0, np.float32))
    action_high: np.ndarray = field(default_factory=lambda: np.array(1.0, np.float32))
    provenance: dict[str, Any] = field(default_factory=dict)
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    num_actions: int | None = None
    action_labels: tuple[str, ...] | None = None
    observation_offset: np.ndarray | None = None
    observation_scale: np.ndarray | None = None
    mask_at: int | None = None

    def __post_init__(self) -> None:
        where = self.name
        found = checks.checked(
            {key: getattr(self, key) for key in ARRAYS}, self.extras, self.num_actions, self.action_labels,
            self.action_low, self.action_high, where,
        )  # fmt: skip
        scales = checks.units(
            self.observation_offset, self.observation_scale, found.arrays["observation"].shape[1], where
        )
        if self.mask_at is not None:
            check_mask(found.arrays["observation"], found.arrays["action"], self.mask_at, found.num_actions, where)
        timeout = found.arrays["timeout"] & ~found.arrays["terminal"]
        timeout[-1] = not found.arrays["terminal"][-1]
        try:
            json.dumps(self.provenance)
        except (TypeError, ValueError) as error:
            raise SappError(
                f"{where}: provenance must be JSON ({error}); keep text, numbers, lists and dicts"
            ) from None
        arrays = {**found.arrays, "timeout": timeout, "action_low": found.low, "action_high": found.high, **scales}
        for key, value in arrays.items():
            object.__setattr__(self, key, None if value is None else read_only(value))
        object.__setattr__(self, "name", printable(str(where)))
        object.__setattr__(self, "num_actions", found.num_actions)
        object.__setattr__(self, "action_labels", found.labels)
        extras = {key: read_only(np.asarray(value)) for key, value in self.extras.items()}
        object.__setattr__(self, "extras", extras)
        object.__setattr__(self, "provenance", dict(self.provenance))

    @classmethod
    def from_arrays(
        cls, observation: ArrayLike, action: ArrayLike, reward: ArrayLike, terminal: ArrayLike, *,
        next_observation: ArrayLike | None = None, timeout: ArrayLike | None = None,
        episode: ArrayLike | None = None, holes: ArrayLike | None = None, max_episode_steps: int | None = None,
        old_done: bool = False, last_step: str | None = None, tolerance: float = 1e-5, name: str = "dataset",
        environment: str | None = None, physics: str | None = None, action_low: ArrayLike = -1.0,
        action_high: ArrayLike = 1.0, provenance: Mapping[str, Any] | None = None,
        extras: Mapping[str, ArrayLike] | None = None, source: str | None = None, num_actions: int | None = None,
        action_labels: Sequence[str] | None = None, ledger: Ledger | None = None, mask_at: int | None = None,
        action_mask: ArrayLike | None = None, next_action_mask: ArrayLike | None = None,
    ) -> Dataset:  # fmt: skip
        """Build a dataset from arrays as real files have them.

        Rewards and flags may be (N,) or (N, 1); any numeric dtype is taken; flags may be bool, integer or float 0/1.

        Where episodes end without a terminal is known from ``episode`` (an id per row: it ends where the id changes) or
        ``timeout``; ``max_episode_steps`` adds a time-out every so many steps of an episode. With none of these, it is
        inferred: a boundary lies where ``next_observation[i]`` differs from ``observation[i + 1]`` by more than
        ``tolerance`` (relative to max(1, |value|)). Without ``next_observation`` either, only terminals and the end
        of the data count.

        Without ``next_observation`` the successor is the next row's observation. The last row of a timed-out episode
        then has no known successor: ``last_step`` says what becomes of it. A terminal row is kept with a copy of its
        own observation, which no target ever uses. What was inferred and dropped is stated in the ``Ledger``.

        Args:
            observation: [N, O].
            action: [N, A] (or [N] for one dimension); whole numbers [N] where ``num_actions`` is given.
            reward: [N].
            terminal: [N].
            next_observation: [N, O], if recorded.
            timeout: [N], if recorded.
            episode: [N] ids (numbers or text), if recorded; rows of an episode must be consecutive.
            holes: [N], after which rows steps are missing: the episode stops there unfinished, whatever ``last_step``
                says.
            max_episode_steps: the environment's step limit.
            old_done: ``terminal`` is Gym's old ``done``, set at every end: a time-out on the same row, or the step
                limit, wins.
            last_step: "drop": leave out the last row of an episode that stops unfinished, the row before becomes the
                time-out, and an episode of one such row vanishes; "end": every episode really ended there, the row is a
                terminal. By default rows are dropped, unless more than 1 % of the reward or of the episodes would go.
            tolerance: for the inference of boundaries.
            extras: see ``Dataset``; rows are dropped along with the rest.
            source: what error messages call the input (a path), ``name`` by default.
            ledger: account of what was done to the rows so far.
            action_mask: [N, num_actions], which actions were possible; becomes part of the observation.
            next_action_mask: [N, num_actions], likewise after the step, if recorded; else that of the next row.

        The others are those of ``Dataset``.
        """
        where = source or name
        check_last_step(last_step, where)
        given = {
            "observation": observation, "action": action, "reward": reward, "terminal": terminal,
            "next_observation": next_observation, "timeout": timeout,
        }  # fmt: skip
        found = checks.checked(given, extras or {}, num_actions, action_labels, action_low, action_high, where)
        notes = dict(provenance or {})
        ledger = ledger if ledger is not None else _ledger_of(notes, len(found.arrays["reward"]))
        steps = Steps.of(found.arrays, extras or {}, where, ledger, episode, holes)
        steps.find_timeouts(max_episode_steps, old_done, tolerance)
        if action_mask is not None:
            mask_at = steps.append_mask(action_mask, next_action_mask, found.num_actions)
        steps.finish(last_step)
        if ledger.entries or ledger.columns:
            notes["ledger"] = ledger.to_json()
        return cls(
            **{key: steps.arrays[key] for key in ARRAYS},
            name=name,
            environment=environment,
            physics=physics,
            action_low=found.low,
            action_high=found.high,
            provenance=notes,
            extras=steps.extras,
            num_actions=found.num_actions,
            action_labels=found.labels,
            mask_at=mask_at,
        )

    def __len__(self) -> int:
        return len(self.reward)

    def __repr__(self) -> str:
        action = f"{self.num_actions} discrete actions" if self.discrete else f"action {self.action_size}"
        return (
            f"Dataset({self.name!r}, {self.size:,} transitions, {self.num_episodes:,} episodes, "
            f"observation {self.observation_size}, {action}, environment {self.environment!r})"
        )

    @property
    def size(self) -> int:
        """Number of transitions N."""
        return len(self)

    @property
    def observation_size(self) -> int:
        """Width O of an observation."""
        return int(self.observation.shape[1])

    @property
    def discrete(self) -> bool:
        """Whether actions are discrete, numbered from 0, rather than vectors."""
        return self.num_actions is not None

    @property
    def action_size(self) -> int:
        """Width A of an action as a network takes it: its dimensions, or the number of actions (one-hot)."""
        return int(self.action.shape[1]) if self.num_actions is None else self.num_actions

    @property
    def play_limit(self) -> int:
        """Steps after which a policy's episode is cut where its environment has no limit of its own.

        That of the recording where it is known, else the length of the longest episode.
        """
        known = self.provenance.get("max_episode_steps")
        return known if type(known) is int and known > 0 else int(self.episode_lengths.max())

    @cached_property
    def first(self) -> np.ndarray:
        """Whether a row is the first of its episode, bool [N]."""
        first = np.zeros(self.size, bool)
        first[self.episode_starts] = True
        return read_only(first)

    @cached_property
    def initial_observation(self) -> np.ndarray:
        """First observation of each episode, float32 [E, O]."""
        return read_only(self.observation[self.episode_starts])

    @cached_property
    def observation_mean(self) -> np.ndarray:
        """Mean of each observation dimension over all rows, float32 [O]."""
        return read_only(self.observation.mean(axis=0, dtype=np.float64).astype(np.float32))

    @cached_property
    def observation_std(self) -> np.ndarray:
        """Standard deviation (divisor N) of each dimension, float32 [O], as it is: 0 where a dimension is constant."""
        return read_only(self.observation.std(axis=0, dtype=np.float64).astype(np.float32))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all arrays and the action bounds, the same everywhere; name and extras do not count."""
        digest = hashlib.sha256()
        for key in (*ARRAYS, "action_low", "action_high"):
            value: np.ndarray = getattr(self, key)
            digest.update(f"{key}{value.shape}".encode())
            kind = {"b": "?", "i": "<i4"}.get(value.dtype.kind, "<f4")
            digest.update(np.ascontiguousarray(value, kind).tobytes())
        if self.observation_offset is not None and self.observation_scale is not None:
            for value in (self.observation_offset, self.observation_scale):
                digest.update(np.ascontiguousarray(value, "<f4").tobytes())
        if self.mask_at is not None:
            digest.update(f"mask_at {self.mask_at}".encode())
        return digest.hexdigest()

    def raw(self, observation: ArrayLike) -> np.ndarray:
        """Stored observations [..., O] as they were logged, float32."""
        values = np.asarray(observation, np.float32)
        if self.observation_offset is None or self.observation_scale is None:
            return values
        return values * self.observation_scale + self.observation_offset

    @property
    def raw_scale(self) -> np.ndarray:
        """Size of a stored unit of each dimension as it was logged, float32 [O]."""
        scale = self.observation_scale
        return np.ones(self.observation_size, np.float32) if scale is None else scale

    def standardised(self) -> Dataset:
        """The same data with observations of mean 0 and standard deviation 1 (a constant stays at 0).

        ``observation_offset`` and ``observation_scale`` remember how, so that policies still take observations as they
        were logged.
        """
        if self.observation_offset is not None:
            return self
        mean = self.observation.mean(axis=0, dtype=np.float64)
        std = self.observation.std(axis=0, dtype=np.float64)
        offset = mean.astype(np.float32)
        scale = np.where(std > 1e-6 * np.maximum(1.0, np.abs(mean)), std, 1.0).astype(np.float32)
        if self.mask_at is not None:
            mask = slice(self.mask_at, self.mask_at + self.action_size)
            offset[mask], scale[mask] = 0.0, 1.0
        return replace(
            self,
            observation=(self.observation - offset) / scale,
            next_observation=(self.next_observation - offset) / scale,
            observation_offset=offset,
            observation_scale=scale,
        )

    def scaled_action(self) -> np.ndarray:
        """Actions mapped linearly from [low, high] to [-1, 1], float32 [N, A]; unchanged where that is the range.

        Discrete actions have no units: int32 [N], as they are.
        """
        return self.action if self.discrete else to_unit(self.action, self.action_low, self.action_high)

    def take_episodes(self, episodes: int | Sequence[int] | np.ndarray, name: str | None = None) -> Dataset:
        """Return the first ``episodes`` episodes, or those with the given indices in the given order.

        Args:
            episodes: how many, or which.
            name: of the result; this one's name by default.
        """
        rows = self.episode_rows(episodes)
        return replace(
            self,
            **{key: getattr(self, key)[rows] for key in ARRAYS},
            name=name or self.name,
            provenance={
                **self.provenance,
                "episodes_taken": int(np.sum(self.first[rows])),
                "of_fingerprint": self.fingerprint,
            },
            extras={key: value[rows] for key, value in self.extras.items()},
        )


def _ledger_of(notes: Mapping[str, Any], rows: int) -> Ledger:
    """The account that a provenance holds; an empty one where it holds none."""
    return Ledger.from_json(notes["ledger"]) if "ledger" in notes else Ledger(rows)


def concatenate(datasets: Sequence[Dataset], name: str | None = None) -> Dataset:
    """Join datasets of one environment, episodes in order; extras are kept where all have them in the same shape.

    Args:
        datasets: at least one; widths, action bounds, environment and physics must agree.
        name: of the result; the names joined with "+" by default.
    """
    if not datasets:
        raise SappError("concatenate: no datasets given; give at least one")
    head = datasets[0]
    for other in datasets[1:]:
        for what, mine, theirs in (
            ("observation width", head.observation_size, other.observation_size),
            ("action width", head.action_size, other.action_size),
            ("number of discrete actions", head.num_actions, other.num_actions),
            ("action_labels", head.action_labels, other.action_labels),
            ("mask_at", head.mask_at, other.mask_at),
            ("environment", head.environment, other.environment),
            ("physics", head.physics, other.physics),
            ("observation_offset", _listed(head.observation_offset), _listed(other.observation_offset)),
            ("observation_scale", _listed(head.observation_scale), _listed(other.observation_scale)),
            ("action_low", head.action_low.tolist(), other.action_low.tolist()),
            ("action_high", head.action_high.tolist(), other.action_high.tolist()),
        ):
            if mine != theirs:
                raise SappError(
                    f"concatenate: {what} is {mine!r} in {head.name} but {theirs!r} in {other.name}; "
                    f"join only datasets of one environment"
                )
    shared = [
        key
        for key, value in head.extras.items()
        if all(key in other.extras and other.extras[key].shape[1:] == value.shape[1:] for other in datasets)
    ]
    arrays: dict[str, Any] = {key: np.concatenate([getattr(each, key) for each in datasets]) for key in ARRAYS}
    return replace(
        head,
        **arrays,
        name=name or "+".join(each.name for each in datasets),
        provenance={
            "loader": "concatenate",
            "parts": [dict(each.provenance, name=each.name) for each in datasets],
            **_joined_ledger(datasets),
        },
        extras={key: np.concatenate([each.extras[key] for each in datasets]) for key in shared},
    )


def _joined_ledger(datasets: Sequence[Dataset]) -> dict[str, Any]:
    """The accounts of all parts as one, what was done with the part's name before it; nothing where none has one."""
    if not any("ledger" in each.provenance for each in datasets):
        return {}
    parts = [(each.name, Ledger.of(each)) for each in datasets]
    columns = {column.name: column for _, part in reversed(parts) for column in reversed(part.columns)}
    entries = [replace(entry, what=f"{name}: {entry.what}") for name, part in parts for entry in part.entries]
    joined = Ledger(sum(part.rows for _, part in parts), list(reversed(columns.values())), entries)
    return {"ledger": joined.to_json()}


def _listed(value: np.ndarray | None) -> list[float] | None:
    return None if value is None else value.tolist()
