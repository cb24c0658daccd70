"""What a learner is told about its problem, and the batches it learns from."""

from __future__ import annotations

import equinox as eqx
from jax import Array


class Spec(eqx.Module):
    """Sizes (structure) and observation statistics (numbers) of a dataset."""

    observation_size: int = eqx.field(static=True)
    action_size: int = eqx.field(static=True)
    observation_mean: Array
    observation_std: Array


class Batch(eqx.Module):
    """A mini-batch of transitions, drawn uniformly, and as many episode starts, drawn uniformly.

    Actions are scaled to [−1, 1]. ``terminal`` is 1.0 where bootstrapping stops; a time-out is not a terminal.
    """

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminal: Array
    initial_observation: Array
