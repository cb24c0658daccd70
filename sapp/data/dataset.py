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

from sapp.core.errors import SappError
from sapp.data.episodes import Episodes, read_only

ARRAYS = ("observation", "action", "reward", "next_observation", "terminal", "timeout")
"""The six per-transition arrays of every dataset, in the order the constructor takes them."""

ACTION_SLACK = 1e-5
"""How far, relative to max(1, |bound|), an action may overshoot its bound and be clipped: float32 rounding of tanh."""


@dataclass(frozen=True, eq=False)
class Dataset(Episodes):
    """Transitions (s, a, r, s') of whole episodes, one row a step, episodes one after the other.

    Every episode ends in exactly one of two ways. ``terminal``: the task ended, nothing follows, do not bootstrap.
    ``timeout``: the recording ended (a step limit, or the end of the file), the task did not: always bootstrap. Where
    input says both, terminal wins. A last episode that neither ends gets a time-out on its last row.

    The constructor wants all six arrays and checks them; ``from_arrays`` also fills in what real files leave out.
    Arrays are held as read-only float32 or bool. Two datasets hold the same data if their ``fingerprint`` is equal.

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
        provenance: where it came from, as JSON: source path, SHA-256, loader, what was inferred or dropped.
        extras: further arrays of N rows, kept as they are (``qpos``, ``qvel``, behaviour ``log_prob``).
        num_actions: how many discrete actions there are, None where actions are continuous.
        action_labels: what the discrete actions are called in the logs, in order, where they have names.
        observation_offset: float32 [O], where observations were rescaled: stored = (logged − offset)/scale.
        observation_scale: float32 [O], likewise; policies are applied to observations as they are logged, see ``raw``.
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

    def __post_init__(self) -> None:
        where = self.name
        observation = _matrix(self.observation, "observation", where)
        count, labels = _choices(self.num_actions, self.action_labels, where)
        action = _matrix(self.action, "action", where) if count is None else _chosen(self.action, count, where)
        reward = _vector(self.reward, "reward", where)
        next_observation = _matrix(self.next_observation, "next_observation", where)
        terminal = _flags(self.terminal, "terminal", where)
        timeout = _flags(self.timeout, "timeout", where)
        _check_rows(
            {
                "observation": observation,
                "action": action,
                "reward": reward,
                "next_observation": next_observation,
                "terminal": terminal,
                "timeout": timeout,
                **{
                    f"extras[{key!r}]": _numeric(value, f"extras[{key!r}]", where) for key, value in self.extras.items()
                },
            },
            where,
        )
        _check_width(observation, next_observation, where)
        if count is None:
            low, high = _bounds(self.action_low, self.action_high, action.shape[1], where)
            action = _within(action, low, high, where)
        else:
            low, high = np.zeros(1, np.float32), np.full(1, count - 1, np.float32)
        if (self.observation_offset is None) != (self.observation_scale is None):
            raise SappError(f"{where}: give observation_offset and observation_scale together, or neither")
        for key in ("observation_offset", "observation_scale"):
            if getattr(self, key) is not None:
                value = _vector(getattr(self, key), key, where)
                if len(value) != observation.shape[1] or (key == "observation_scale" and np.any(value <= 0)):
                    raise SappError(f"{where}: {key} needs {observation.shape[1]} numbers, scales above 0")
                object.__setattr__(self, key, read_only(value))
        object.__setattr__(self, "num_actions", count)
        object.__setattr__(self, "action_labels", labels)
        timeout = timeout & ~terminal
        timeout[-1] = not terminal[-1]
        try:
            json.dumps(self.provenance)
        except (TypeError, ValueError) as error:
            raise SappError(
                f"{where}: provenance must be JSON ({error}); keep text, numbers, lists and dicts"
            ) from None
        for key, value in {
            "observation": observation,
            "action": action,
            "reward": reward,
            "next_observation": next_observation,
            "terminal": terminal,
            "timeout": timeout,
            "action_low": low,
            "action_high": high,
        }.items():
            object.__setattr__(self, key, read_only(value))
        extras = {key: read_only(np.asarray(value)) for key, value in self.extras.items()}
        object.__setattr__(self, "extras", extras)
        object.__setattr__(self, "provenance", dict(self.provenance))

    @classmethod
    def from_arrays(
        cls,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        terminal: ArrayLike,
        *,
        next_observation: ArrayLike | None = None,
        timeout: ArrayLike | None = None,
        episode: ArrayLike | None = None,
        max_episode_steps: int | None = None,
        tolerance: float = 1e-5,
        name: str = "dataset",
        environment: str | None = None,
        physics: str | None = None,
        action_low: ArrayLike = -1.0,
        action_high: ArrayLike = 1.0,
        provenance: Mapping[str, Any] | None = None,
        extras: Mapping[str, ArrayLike] | None = None,
        source: str | None = None,
        num_actions: int | None = None,
        action_labels: Sequence[str] | None = None,
    ) -> Dataset:
        """Build a dataset from arrays as real files have them.

        Rewards and flags may be (N,) or (N, 1); any numeric dtype is taken; flags may be bool, integer or float 0/1.

        Where episodes end without a terminal is known from ``episode`` (an id per row: it ends where the id changes) or
        ``timeout``; ``max_episode_steps`` adds a time-out every so many steps of an episode. With none of the three, it
        is inferred: a boundary lies where ``next_observation[i]`` differs from ``observation[i + 1]`` by more than
        ``tolerance`` (relative to max(1, |value|)). Without ``next_observation`` either, only terminals and the end
        of the data count.

        Without ``next_observation`` the successor is the next row's observation. The last row of a timed-out episode
        then has no known successor: that row is dropped and the row before becomes the time-out; an episode of one such
        row vanishes. A terminal row is kept with a copy of its own observation, which no target ever uses. What was
        inferred and dropped is stated in ``provenance``.

        Args:
            observation: [N, O].
            action: [N, A] (or [N] for one dimension); whole numbers [N] where ``num_actions`` is given.
            reward: [N].
            terminal: [N].
            next_observation: [N, O], if recorded.
            timeout: [N], if recorded.
            episode: [N] ids (numbers or text), if recorded; rows of an episode must be consecutive.
            max_episode_steps: the environment's step limit.
            tolerance: for the inference of boundaries.
            name: see ``Dataset``.
            environment: see ``Dataset``.
            physics: see ``Dataset``.
            action_low: see ``Dataset``.
            action_high: see ``Dataset``.
            provenance: see ``Dataset``.
            extras: see ``Dataset``; rows are dropped along with the rest.
            source: what error messages call the input (a path), ``name`` by default.
            num_actions: see ``Dataset``.
            action_labels: see ``Dataset``.
        """
        where = source or name
        count, labels = _choices(num_actions, action_labels, where)
        arrays = {
            "observation": _matrix(observation, "observation", where),
            "action": _matrix(action, "action", where) if count is None else _chosen(action, count, where),
            "reward": _vector(reward, "reward", where),
            "terminal": _flags(terminal, "terminal", where),
        }
        if next_observation is not None:
            arrays["next_observation"] = _matrix(next_observation, "next_observation", where)
        if timeout is not None:
            arrays["timeout"] = _flags(timeout, "timeout", where)
        if episode is not None:
            arrays["episode"] = np.asarray(episode).reshape(-1)
        more = {key: np.asarray(value) for key, value in (extras or {}).items()}
        _check_rows({**arrays, **{f"extras[{key!r}]": value for key, value in more.items()}}, where)
        if next_observation is not None:
            _check_width(arrays["observation"], arrays["next_observation"], where)
        low, high = np.asarray(action_low), np.asarray(action_high)
        if count is None:
            low, high = _bounds(action_low, action_high, arrays["action"].shape[1], where)
            arrays["action"] = _within(arrays["action"], low, high, where)

        notes = dict(provenance or {})
        arrays["timeout"], found = _timeouts(arrays, max_episode_steps, tolerance, where)
        if found is not None:
            notes["timeouts_from"] = found
        if next_observation is None:
            # a time-out on the first row of an episode: dropping the row leaves nothing of it
            alone = arrays["timeout"] & np.append(True, (arrays["terminal"] | arrays["timeout"])[:-1])
            keep = _fill_successors(arrays, where)
            notes["next_observation_from"] = "the next row's observation"
            notes["rows_dropped_without_successor"] = int(np.count_nonzero(~keep))
            notes["episodes_dropped_without_successor"] = int(np.count_nonzero(alone))
            arrays = {key: value[keep] for key, value in arrays.items()}
            more = {key: value[keep] for key, value in more.items()}
        return cls(
            **{key: arrays[key] for key in ARRAYS},
            name=name,
            environment=environment,
            physics=physics,
            action_low=low,
            action_high=high,
            provenance=notes,
            extras=more,
            num_actions=count,
            action_labels=labels,
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
        """Whether actions are choices, numbered from 0, rather than vectors."""
        return self.num_actions is not None

    @property
    def action_size(self) -> int:
        """Width A of an action as a network takes it: its dimensions, or the number of choices (one-hot)."""
        return int(self.action.shape[1]) if self.num_actions is None else self.num_actions

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
        """SHA-256 over the six arrays and the action bounds, the same everywhere; name and extras do not count."""
        digest = hashlib.sha256()
        for key in (*ARRAYS, "action_low", "action_high"):
            value: np.ndarray = getattr(self, key)
            digest.update(f"{key}{value.shape}".encode())
            kind = {"b": "?", "i": "<i4"}.get(value.dtype.kind, "<f4")
            digest.update(np.ascontiguousarray(value, kind).tobytes())
        if self.observation_offset is not None and self.observation_scale is not None:
            for value in (self.observation_offset, self.observation_scale):
                digest.update(np.ascontiguousarray(value, "<f4").tobytes())
        return digest.hexdigest()

    def raw(self, observation: ArrayLike) -> np.ndarray:
        """Stored observations [..., O] as they were logged, float32."""
        values = np.asarray(observation, np.float32)
        if self.observation_offset is None or self.observation_scale is None:
            return values
        return values * self.observation_scale + self.observation_offset

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
        return replace(
            self,
            observation=(self.observation - offset) / scale,
            next_observation=(self.next_observation - offset) / scale,
            observation_offset=offset,
            observation_scale=scale,
        )

    def scaled_action(self) -> np.ndarray:
        """Actions mapped linearly from [low, high] to [-1, 1], float32 [N, A]; unchanged where that is the range.

        Discrete actions are choices, not numbers: int32 [N], as they are.
        """
        if self.discrete:
            return self.action
        if np.all(self.action_low == -1) and np.all(self.action_high == 1):
            return self.action
        low, high = self.action_low.astype(np.float64), self.action_high.astype(np.float64)
        scaled = (2 * (self.action - low) / (high - low) - 1).astype(np.float32)
        return np.clip(scaled, -1, 1)

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
        provenance={"loader": "concatenate", "parts": [dict(each.provenance, name=each.name) for each in datasets]},
        extras={key: np.concatenate([each.extras[key] for each in datasets]) for key in shared},
    )


def _listed(value: np.ndarray | None) -> list[float] | None:
    return None if value is None else value.tolist()


def _numeric(value: ArrayLike, key: str, where: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise SappError(f"{where}: {key} has rows of different widths; every row needs the same width") from None
    if array.dtype.kind not in "biuf":
        raise SappError(f"{where}: {key} holds {array.dtype}, not numbers; convert it to float32")
    return array


def _finite(array: np.ndarray, key: str, where: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(array, np.float32)
    good = np.isfinite(small)
    if not good.all():
        index = tuple(int(i) for i in np.argwhere(~good)[0])
        at = f"row {index[0]}" + (f", dimension {index[1]}" if len(index) > 1 else "")
        bad = int(np.count_nonzero(~good.reshape(len(good), -1).all(axis=1)))
        also = f" ({bad} such rows)" if bad > 1 else ""
        raise SappError(f"{where}: {key} is {array[index]} at {at}{also}; remove or repair that episode")
    return small


def _matrix(value: ArrayLike, key: str, where: str) -> np.ndarray:
    array = _numeric(value, key, where)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise SappError(f"{where}: {key} has shape {array.shape}; it must be (rows, width) with width 1 or more")
    return _finite(array, key, where)


def _choices(count: int | None, labels: Sequence[str] | None, where: str) -> tuple[int | None, tuple[str, ...] | None]:
    """The number of discrete actions and their names, checked against each other."""
    names = None if labels is None else tuple(str(label) for label in labels)
    if names is not None and len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise SappError(f"{where}: action label {double!r} appears more than once; give each action its own")
    if count is None:
        count = None if names is None else len(names)
    if count is not None and int(count) < 1:
        raise SappError(f"{where}: num_actions is {count}; it must be 1 or more")
    if names is not None and count is not None and len(names) != count:
        raise SappError(f"{where}: {len(names)} action labels for num_actions {count}; give one label per action")
    return (None if count is None else int(count)), names


def _chosen(value: ArrayLike, count: int, where: str) -> np.ndarray:
    """Discrete actions as int32 [N]."""
    array = _column(value, "action", where)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array)) & (array >= 0) & (array < count)))
    if len(wrong):
        raise SappError(
            f"{where}: action is {array[wrong[0]]} at row {wrong[0]}; the {count} discrete actions are whole numbers "
            f"from 0 to {count - 1}"
        )
    return array.astype(np.int32)


def _column(value: ArrayLike, key: str, where: str) -> np.ndarray:
    array = _numeric(value, key, where)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise SappError(f"{where}: {key} has shape {array.shape}; it must be (rows,) or (rows, 1)")
    return array


def _vector(value: ArrayLike, key: str, where: str) -> np.ndarray:
    return _finite(_column(value, key, where), key, where)


def _flags(value: ArrayLike, key: str, where: str) -> np.ndarray:
    array = _column(value, key, where)
    if array.dtype == bool:
        return array
    wrong = np.flatnonzero((array != 0) & (array != 1))
    if len(wrong):
        raise SappError(f"{where}: {key} is {array[wrong[0]]} at row {wrong[0]}; flags must be 0 or 1")
    return array == 1


def _check_rows(arrays: Mapping[str, np.ndarray], where: str) -> None:
    rows = len(arrays["observation"])
    if rows == 0:
        raise SappError(f"{where}: no transitions (0 rows), so no episode starts; give at least one row")
    for key, value in arrays.items():
        if value.ndim == 0 or len(value) != rows:
            have = "no rows" if value.ndim == 0 else f"{len(value)} rows"
            raise SappError(f"{where}: {key} has {have} but observation has {rows}; all fields need the same length")


def _check_width(observation: np.ndarray, next_observation: np.ndarray, where: str) -> None:
    if next_observation.shape != observation.shape:
        raise SappError(
            f"{where}: next_observation is {next_observation.shape[1]} wide but observation is "
            f"{observation.shape[1]}; they must be the same width"
        )


def _bounds(low: ArrayLike, high: ArrayLike, width: int, where: str) -> tuple[np.ndarray, np.ndarray]:
    both = []
    for key, value in (("action_low", low), ("action_high", high)):
        array = _numeric(value, key, where).astype(np.float32)
        if array.shape not in ((), (1,), (width,)):
            raise SappError(f"{where}: {key} has shape {array.shape}; give one number or {width}, one per dimension")
        if not np.isfinite(array).all():
            raise SappError(f"{where}: {key} is not finite ({array.tolist()}); give the environment's action bounds")
        both.append(np.broadcast_to(array, (width,)))
    wrong = np.flatnonzero(both[0] >= both[1])
    if len(wrong):
        i = int(wrong[0])
        raise SappError(f"{where}: action_low {both[0][i]} is not below action_high {both[1][i]} in dimension {i}")
    return both[0], both[1]


def _within(action: np.ndarray, low: np.ndarray, high: np.ndarray, where: str) -> np.ndarray:
    over = (action < low) | (action > high)
    if not over.any():
        return action
    slack_low, slack_high = (ACTION_SLACK * np.maximum(1, np.abs(bound)) for bound in (low, high))
    wrong = (action < low - slack_low) | (action > high + slack_high)
    if wrong.any():
        row, dimension = (int(i) for i in np.argwhere(wrong)[0])
        raise SappError(
            f"{where}: action is {action[row, dimension]:.6g} at row {row}, dimension {dimension}, outside "
            f"[{low[dimension]:g}, {high[dimension]:g}]; give action_low and action_high if the bounds are others"
        )
    return np.clip(action, low, high)


def _steps(ends: np.ndarray) -> np.ndarray:
    """Step index of each row, where ``ends`` marks the last row of each episode."""
    rows = np.arange(len(ends))
    starts = np.where(np.concatenate([[True], ends[:-1]]), rows, 0)
    return rows - np.maximum.accumulate(starts)


def _timeouts(
    arrays: Mapping[str, np.ndarray], max_episode_steps: int | None, tolerance: float, where: str
) -> tuple[np.ndarray, str | None]:
    """Time-outs from whatever tells of them, and in words from what (None when they were simply given)."""
    terminal, timeout, found = arrays["terminal"], arrays.get("timeout"), None
    if timeout is None:
        timeout, found = np.zeros_like(terminal), "nothing: only terminals and the end of the data"
    if "episode" in arrays:
        identity = arrays["episode"]
        last = np.append(identity[1:] != identity[:-1], True)
        early = np.flatnonzero((terminal | timeout) & ~last)
        if len(early):
            row = int(early[0])
            kind = "terminal" if terminal[row] else "timeout"
            raise SappError(
                f"{where}: episode {identity[row]} goes on after its {kind} at row {row}; "
                f"give each episode its own id, or leave the episode column out"
            )
        timeout, found = last, "episode ids"
    if max_episode_steps is not None:
        if max_episode_steps < 1:
            raise SappError(f"{where}: max_episode_steps is {max_episode_steps}; it must be 1 or more")
        timeout = timeout | ((_steps(terminal | timeout) + 1) % max_episode_steps == 0)
        found = f"max_episode_steps={max_episode_steps}"
    elif "timeout" not in arrays and "episode" not in arrays and "next_observation" in arrays:
        after, successor = arrays["observation"][1:], arrays["next_observation"][:-1]
        far = np.abs(after - successor) > tolerance * np.maximum(1, np.abs(after))
        timeout = np.append(far.any(axis=1), False)
        found = "next_observation differing from the next row's observation"
    timeout = timeout & ~terminal
    timeout[-1] = not terminal[-1]
    return timeout, found


def _fill_successors(arrays: dict[str, np.ndarray], where: str) -> np.ndarray:
    """Set ``next_observation`` and shift time-outs back by a row, in place; return the rows to keep."""
    observation, terminal, timeout = arrays["observation"], arrays["terminal"], arrays["timeout"]
    successor = np.concatenate([observation[1:], observation[-1:]])
    successor[terminal] = observation[terminal]
    keep = ~timeout
    if not keep.any():
        raise SappError(
            f"{where}: no transitions left, every episode is one row long without a terminal or a next_observation; "
            f"give next_observation or terminal flags"
        )
    # Row i becomes the end of its episode when row i + 1, the dropped one, belonged to the same episode.
    arrays["timeout"] = np.append(timeout[1:], False) & ~(terminal | timeout)
    arrays["next_observation"] = successor
    return keep
