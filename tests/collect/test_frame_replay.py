"""The ring of frames on the device."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sapp.collect.frame_replay import FrameRing


def test_the_ring_gives_the_stacks_of_a_plain_list() -> None:
    """Two environments, episodes of length 5 and 4 (the latter by time-out), a ring of eight rounds gone round."""
    rng = np.random.default_rng(0)
    ring, rounds = FrameRing.empty(8, 2, (3, 2), 3), 19
    frames = rng.integers(1, 256, (rounds, 2, 3, 2)).astype(np.uint8)
    lengths = (5, 4)
    age = np.stack([np.arange(rounds) % length for length in lengths], 1).astype(np.int32)
    last = np.stack([age[:, i] == lengths[i] - 1 for i in range(2)], 1)
    terminal, timeout = last & [True, False], last & [False, True]
    action, reward = rng.integers(0, 5, (rounds, 2)), rng.normal(size=(rounds, 2)).astype(np.float32)
    for t in range(rounds):
        if t:
            before = [jnp.asarray(each[t - 1]) for each in (action, reward, terminal, timeout)]
            ring = ring.record(jnp.int32(t - 1), *before)
        ring = ring.see(jnp.int32(t), jnp.asarray(frames[t]), jnp.asarray(age[t]))

    def stack(t: int, row: int) -> np.ndarray:
        wanted = [frames[t - k, row] if k <= age[t, row] else np.zeros((3, 2), np.uint8) for k in (2, 1, 0)]
        return np.stack(wanted)

    now = rounds - 1
    batch = jax.jit(lambda key: ring.draw(key, jnp.int32(now), 400))(jax.random.PRNGKey(0))
    seen = set()
    known = {reward[t, row].tobytes(): (t, row) for t in range(rounds) for row in range(2)}
    for i in range(400):
        t, row = known[np.asarray(batch.reward[i]).tobytes()]
        seen.add((t, row))
        np.testing.assert_array_equal(batch.observation[i], stack(t, row))
        assert batch.action[i] == action[t, row]
        assert bool(batch.terminal[i]) == terminal[t, row]
        if not terminal[t, row]:
            np.testing.assert_array_equal(batch.next_observation[i], stack(t + 1, row))
    # a ring of eight with the newest at 18 has whole stacks from 13 on, and 18 has no successor yet
    assert seen == {(t, row) for t in range(13, 18) for row in range(2) if not timeout[t, row]}
