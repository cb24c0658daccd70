"""A replay ring of frames on the device: each frame once, as bytes, many environments side by side."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.spec import Batch


class FrameRing(eqx.Module):
    """The last L rounds of R environments, [L, R, …]; round number t lies in slot t mod L.

    A round is written in two parts: the frame that is seen (``see``), and, once it was acted on, what followed
    (``record``). ``step`` is the frame's index in its episode: a stack reaches back no further.
    """

    frames: Array
    step: Array
    action: Array
    reward: Array
    terminal: Array
    timeout: Array
    stack: int = eqx.field(static=True)

    @classmethod
    def empty(cls, rounds: int, rows: int, frame_shape: tuple[int, int], stack: int) -> FrameRing:
        """Zeros; a ring must hold a stack and a successor."""
        flags = jnp.zeros((rounds, rows))
        numbers = jnp.zeros((rounds, rows), jnp.int32)
        frames = jnp.zeros((rounds, rows, *frame_shape), jnp.uint8)
        # each its own buffer: they are donated
        return cls(frames, numbers, numbers + 0, flags, flags + 0.0, flags + 0.0, stack)

    @property
    def rounds(self) -> int:
        """L, the length of the ring in rounds of all environments."""
        return int(self.frames.shape[0])

    def see(self, number: Array, frames: Array, step: Array) -> FrameRing:
        """Frames [R, H, W] of a round, and their indices in their episodes [R]."""
        slot = number % self.rounds
        return eqx.tree_at(
            lambda ring: (ring.frames, ring.step),
            self,
            (self.frames.at[slot].set(frames), self.step.at[slot].set(step)),
        )

    def record(self, number: Array, action: Array, reward: Array, terminal: Array, timeout: Array) -> FrameRing:
        """What was done in a round and what came of it, [R] each."""
        slot = number % self.rounds
        return eqx.tree_at(
            lambda ring: (ring.action, ring.reward, ring.terminal, ring.timeout),
            self,
            (
                self.action.at[slot].set(action),
                self.reward.at[slot].set(reward),
                self.terminal.at[slot].set(terminal.astype(jnp.float32)),
                self.timeout.at[slot].set(timeout.astype(jnp.float32)),
            ),
        )

    def stacks(self, number: Array, row: Array) -> Array:
        """Observations uint8 [B, stack, H, W] of rounds and environments [B], oldest frame first, zeros before the
        episode's first."""
        back = jnp.arange(self.stack - 1, -1, -1)
        inside = back <= self.step[number % self.rounds, row][:, None]
        found = self.frames[(number[:, None] - back) % self.rounds, row[:, None]]
        return jnp.where(inside[..., None, None], found, jnp.uint8(0))

    def draw(self, key: Array, now: Array, count: int) -> Batch:
        """A mini-batch of rounds before ``now``, the newest that was seen, drawn uniformly.

        A row that ended its episode by time-out has no successor; the row before it is taken instead.
        """
        round_key, row_key = jax.random.split(key)
        oldest = jnp.maximum(0, now - self.rounds + self.stack)
        number = jax.random.randint(round_key, (count,), oldest, now)
        row = jax.random.randint(row_key, (count,), 0, self.frames.shape[1])
        number = jnp.where(self.timeout[number % self.rounds, row] > 0, jnp.maximum(number - 1, oldest), number)
        slot = number % self.rounds
        observation = self.stacks(number, row)
        return Batch(
            observation=observation,
            action=self.action[slot, row],
            reward=self.reward[slot, row],
            next_observation=self.stacks(number + 1, row),
            # should the row before be one of those too, nothing is made of what comes after it
            terminal=jnp.maximum(self.terminal[slot, row], self.timeout[slot, row]),
            initial_observation=observation,
        )
