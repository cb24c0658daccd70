"""How much of a policy's mass lies where the logs have no actions."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.data import Dataset
from sapp.ope.support import fit_behaviour, off_data
from sapp.ope.targets import TargetPolicy, Targets


def discrete_logs() -> Dataset:
    """The state says which of three actions was taken, always; the third never is."""
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, 600)
    seen = np.eye(2, dtype=np.float32)[state]
    return Dataset(
        seen, state.astype(np.int32), np.ones(600), seen, np.zeros(600, bool), np.arange(600) % 20 == 19, num_actions=3
    )


def test_the_behaviour_is_on_the_data_and_what_nobody_did_is_off() -> None:
    data = discrete_logs()

    def policy(name: str, table: list[list[float]]) -> TargetPolicy:
        return TargetPolicy(name, lambda seen, seed, count: np.float32(table)[seen.argmax(1)])

    same, half, never = (
        policy("same", [[1, 0, 0], [0, 1, 0]]), policy("half", [[0.5, 0, 0.5], [0, 0.5, 0.5]]),
        policy("never", [[0, 0, 1], [0, 0, 1]]),
    )  # fmt: skip
    found = off_data(fit_behaviour(data, 200, (16,), 64), data, Targets.of([same, half, never], data))
    np.testing.assert_allclose(found, [0.0, 0.5, 1.0], atol=1e-6)


def test_continuous_actions_far_from_the_logged_ones_are_off() -> None:
    rng = np.random.default_rng(1)
    seen = rng.normal(size=(800, 1)).astype(np.float32)
    action = np.tanh(0.3 * rng.normal(size=(800, 1)))
    data = Dataset(seen, action, np.ones(800), seen, np.zeros(800, bool), np.arange(800) % 20 == 19)
    near, far = (
        TargetPolicy(name, lambda seen, seed, count, at=at: np.full((len(seen), 1, 1), at, np.float32))
        for name, at in (("near", 0.0), ("far", 0.98))
    )
    found = off_data(fit_behaviour(data, 300, (16,), 128), data, Targets.of([near, far], data))
    assert found[0] == pytest.approx(0.0, abs=0.01)
    assert found[1] > 0.95
