"""What a learner is told about its problem, and the batches it learns from."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jax import Array


class Spec(eqx.Module):
    """Sizes (structure) and observation statistics (numbers) of a dataset.

    ``action_size`` is the width of an action as a network takes it: its dimensions, or the number of actions where
    actions are ``discrete``.
    """

    observation_size: int = eqx.field(static=True)
    action_size: int = eqx.field(static=True)
    observation_mean: Array
    observation_std: Array
    discrete: bool = eqx.field(static=True, default=False)
    return_span: Array | float = 1.0
    """Largest minus smallest return of the dataset's episodes: what IQL scales rewards by."""
    frame: tuple[int, int, int] | None = eqx.field(static=True, default=None)
    """Frames of an observation, their height and width, where observations are stacks of frames rather than vectors."""
    mask_at: int | None = eqx.field(static=True, default=None)
    """Where in an observation the mask of the possible actions begins, where it holds one; see ``Dataset.mask_at``."""

    @classmethod
    def of_frames(cls, frame: Sequence[int], actions: int, return_span: float = 1.0) -> Spec:
        """The spec of a problem of frames: bytes are divided by 255, not standardised, so there are no statistics."""
        stack, height, width = (int(size) for size in frame)
        return cls(
            observation_size=stack * height * width,
            action_size=actions,
            observation_mean=jnp.float32(0.0),
            observation_std=jnp.float32(1.0),
            discrete=True,
            return_span=jnp.float32(return_span),
            frame=(stack, height, width),
        )


class Batch(eqx.Module):
    """A mini-batch of transitions, drawn uniformly, and as many episode starts, drawn uniformly.

    Actions are scaled to [−1, 1], float32 [B, A]; discrete ones are numbered from 0, int32 [B]. ``terminal`` is 1.0
    where bootstrapping stops; a time-out is not a terminal. Observations are float32 [B, O], or stacks of frames, uint8
    [B, stack, H, W].
    """

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminal: Array
    initial_observation: Array
    next_action: Array | None = None
    """The logged action of the next row, only for algorithms that ask for it (``Algorithm.needs_next_action``)."""
    next_logged: Array | None = None
    """1.0 where that action exists, 0.0 at the last row of an episode (``next_action`` is the row's own there)."""
    elapsed: Array | None = None
    """Steps since the row's episode began, where the data know of episodes."""
    cut: Array | None = None
    """1.0 at the last row of an episode that did not end in a terminal but was cut off, 0.0 elsewhere."""
