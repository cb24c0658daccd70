"""What a run remembers of a dataset: enough to build and play its policies without the data."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from sapp.core.decode import check_least, decode
from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.data.action_units import from_unit, to_unit
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Ledger
from sapp.data.normalised_scores import base_name, normalized_score, recorded_references

if TYPE_CHECKING:
    from sapp.data import Dataset


@dataclass(frozen=True)
class Problem:
    """A dataset without its rows: sizes, scales, and where to find it again."""

    name: str
    source: Any
    fingerprint: str
    environment: str | None
    physics: str | None
    observation_size: int
    action_size: int
    action_low: list[float]
    action_high: list[float]
    transitions: int
    episodes: int
    num_actions: int | None = None
    action_labels: list[str] | None = None
    observation_offset: list[float] | None = None
    observation_scale: list[float] | None = None
    frame: list[int] | None = None
    """Frames of an observation, their height and width, where observations are stacks of frames."""
    observation_mean: list[float] | None = None
    observation_std: list[float] | None = None
    ledger: dict[str, Any] | None = None
    """What became of the columns and rows of the logs, see ``sapp.data.ledger.Ledger``."""
    reference_scores: list[float] | None = None
    """Returns that count as 0 and as 100, where the data say so (Minari's metadata do)."""
    mask_at: int | None = None
    """Where in an observation the mask of the possible actions begins, where it holds one."""
    play_limit: int | None = None
    """Steps after which an episode is cut where the environment has no limit of its own."""

    @classmethod
    def of(cls, dataset: Dataset | FrameDataset, source: Any) -> Problem:
        """Describe a dataset; ``source`` is what ``sapp.load`` takes to find it again."""
        if isinstance(dataset, FrameDataset):
            return cls(
                name=dataset.name,
                source=source,
                fingerprint=dataset.fingerprint,
                environment=dataset.environment,
                physics=None,
                observation_size=int(np.prod(dataset.observation_shape)),
                action_size=dataset.num_actions,
                action_low=[0.0],
                action_high=[dataset.num_actions - 1.0],
                transitions=len(dataset.sampled_rows),
                episodes=dataset.num_episodes,
                num_actions=dataset.num_actions,
                action_labels=None if dataset.action_labels is None else list(dataset.action_labels),
                frame=list(dataset.observation_shape),
            )
        return cls(
            name=dataset.name,
            source=source,
            fingerprint=dataset.fingerprint,
            environment=dataset.environment,
            physics=dataset.physics,
            observation_size=dataset.observation.shape[1],
            action_size=dataset.action_size,
            action_low=[float(x) for x in dataset.action_low],
            action_high=[float(x) for x in dataset.action_high],
            transitions=len(dataset),
            episodes=dataset.num_episodes,
            num_actions=dataset.num_actions,
            action_labels=None if dataset.action_labels is None else list(dataset.action_labels),
            observation_offset=_floats(dataset.observation_offset),
            observation_scale=_floats(dataset.observation_scale),
            observation_mean=_floats(dataset.raw(dataset.observation_mean)),
            observation_std=_floats(dataset.observation_std * dataset.raw_scale),
            ledger=dataset.provenance.get("ledger"),
            reference_scores=recorded_references(dataset.provenance),
            mask_at=dataset.mask_at,
            play_limit=dataset.play_limit,
        )

    @property
    def discrete(self) -> bool:
        """Whether actions are discrete rather than vectors."""
        return self.num_actions is not None

    def empty_spec(self) -> Spec:
        """A spec of the right shape; the true statistics are part of the checkpoint."""
        if self.frame is not None:
            return Spec.of_frames(self.frame, self.action_size)
        zeros = jnp.zeros(self.observation_size)
        ones = jnp.ones_like(zeros)
        return Spec(self.observation_size, self.action_size, zeros, ones, self.discrete, mask_at=self.mask_at)

    def scores(self, returns: np.ndarray) -> np.ndarray | None:
        """Returns on the scale of 0 to 100, where reference returns are known."""
        known = base_name(self.environment or "")
        if known is not None:
            return normalized_score(known, returns)
        if self.reference_scores is None:
            return None
        low, high = self.reference_scores
        return np.asarray(100.0 * (np.asarray(returns, np.float64) - low) / (high - low))

    def to_network(self, observation: np.ndarray) -> np.ndarray:
        """Observations as they are logged, scaled as the data was when it was loaded."""
        if self.observation_offset is None or self.observation_scale is None:
            return observation
        offset = np.asarray(self.observation_offset, np.float32)
        return np.asarray((observation - offset) / np.asarray(self.observation_scale, np.float32), np.float32)

    def batch(self, observation: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """One observation or many as a batch, refused where they are not this problem's.

        ``mask`` says which actions are possible, where that is part of an observation and not in it already.
        """
        if mask is not None:
            observation = self._masked(observation, mask)
        if self.frame is not None:
            stacks = np.asarray(observation)
            if stacks.dtype != np.uint8 or stacks.ndim not in (3, 4) or list(stacks.shape[-3:]) != self.frame:
                raise SappError(
                    f"observation is {stacks.dtype} {stacks.shape}; {self.name} has stacks of frames, uint8 "
                    f"{tuple(self.frame)}"
                )
            return stacks.reshape(-1, *self.frame)
        try:
            batch = np.atleast_2d(np.asarray(observation, np.float32))
        except (TypeError, ValueError):
            raise SappError(
                f"observation is no array of numbers; {self.name} has vectors of {self.observation_size} values: "
                "flatten parts as gymnasium.spaces.flatten(env.observation_space, observation) does"
            ) from None
        if batch.ndim != 2 or batch.shape[1] != self.observation_size:
            told = f", {self.num_actions} of them say which actions are possible: give action_mask"
            raise SappError(
                f"observation has shape {np.shape(observation)}; {self.name} has {self.observation_size} values"
                + ("" if self.mask_at is None else told)
            )
        return batch

    def _masked(self, observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Observations with the mask where the data have it."""
        if self.mask_at is None:
            raise SappError(f"{self.name} says nothing of which actions are possible: leave action_mask out")
        seen, possible = np.asarray(observation, np.float32), np.asarray(mask, np.float32)
        if possible.shape != (*seen.shape[:-1], self.action_size):
            raise SappError(
                f"action_mask has shape {possible.shape}; give {self.action_size} values of 0 and 1 per observation"
            )
        return np.concatenate([seen[..., : self.mask_at], possible, seen[..., self.mask_at :]], axis=-1)

    def from_units(self, action: np.ndarray, count: int) -> np.ndarray:
        """``count`` actions in the data's units as networks take them; see ``to_units``."""
        given = np.asarray(action)
        shape = (count,) if self.discrete else (count, self.action_size)
        if given.size != np.prod(shape) or (self.discrete and given.dtype.kind not in "iu"):
            kind = f"whole numbers below {self.num_actions}" if self.discrete else f"{self.action_size} values"
            raise SappError(f"action has shape {given.shape}; {self.name} has {kind} for each of {count} observations")
        if self.discrete:
            numbers = given.reshape(shape).astype(np.int32)
            if numbers.min() < 0 or numbers.max() >= self.action_size:
                raise SappError(f"actions of {self.name} are 0 to {self.action_size - 1}; one is outside")
            return numbers
        return to_unit(given.reshape(shape), self.action_low, self.action_high, clip=False)

    def to_units(self, action: np.ndarray) -> np.ndarray:
        """Actions of a policy in the data's own units; discrete ones are numbers and stay as they are."""
        if self.discrete:
            return np.asarray(action)
        low, high = np.asarray(self.action_low, np.float32), np.asarray(self.action_high, np.float32)
        return np.asarray(from_unit(np.asarray(action), low, high))


def _floats(values: np.ndarray | None) -> list[float] | None:
    return None if values is None else [float(x) for x in values]


def problem(content: Any, where: str) -> Problem:
    """A problem of config.json, whose parts fit each other."""
    found = decode(Problem, content, where)
    least = {"transitions": 0, "episodes": 0}
    least |= dict.fromkeys(("observation_size", "action_size", "num_actions", "play_limit"), 1)
    check_least(found, least, where)
    size = found.observation_size
    lengths = {"observation_offset": size, "observation_scale": size, "observation_mean": size, "observation_std": size,
               "frame": 3, "reference_scores": 2, "action_labels": found.num_actions}  # fmt: skip
    if not found.discrete:
        lengths |= {"action_low": found.action_size, "action_high": found.action_size}
    for name, length in lengths.items():
        values = getattr(found, name)
        if values is not None and len(values) != (length or 0):
            raise SappError(f"{where}: {name!r} has {len(values)} values, not {length or 0}")
    if len(found.action_low) != len(found.action_high) or any(
        not low < high for low, high in zip(found.action_low, found.action_high, strict=True) if not found.discrete
    ):
        raise SappError(f"{where}: 'action_low' must be below 'action_high'")
    if found.num_actions not in (None, found.action_size):
        raise SappError(f"{where}: 'num_actions' is {found.num_actions}, 'action_size' {found.action_size}")
    if found.frame is not None and (min(found.frame) < 1 or math.prod(found.frame) != size):
        raise SappError(f"{where}: 'frame' {found.frame} does not make observations of {size} values")
    if found.observation_scale is not None and not all(value > 0 for value in found.observation_scale):
        raise SappError(f"{where}: 'observation_scale' must be above 0")
    if (found.observation_offset is None) != (found.observation_scale is None):
        raise SappError(f"{where}: 'observation_offset' and 'observation_scale' belong together")
    if found.mask_at is not None and not (found.discrete and 0 <= found.mask_at <= size - found.action_size):
        raise SappError(f"{where}: 'mask_at' is {found.mask_at}: no mask of the actions can begin there")
    if found.ledger is not None:
        Ledger.from_json(found.ledger)
    if found.reference_scores is not None and found.reference_scores[0] == found.reference_scores[1]:
        raise SappError(f"{where}: 'reference_scores' are equal")
    texts = (found.name, found.environment or "", found.physics or "", *(found.action_labels or ()))
    if not all(each.isprintable() for each in texts) or re.fullmatch("[0-9a-f]*", found.fingerprint) is None:
        raise SappError(f"{where}: its names hold control characters, or its fingerprint is none")
    return found
