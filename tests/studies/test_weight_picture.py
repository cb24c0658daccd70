"""A picture of a run's state weights over the data's states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp import CQL
from sapp.envs.point import behaviour_dataset
from sapp.weights import OccupancyModel
from studies.state_ratios.weight_picture import draw, health, plane, state_weights


def test_states_are_drawn_in_named_coordinates_or_principal_components() -> None:
    states = np.random.default_rng(0).normal(size=(50, 4)) * np.array([1.0, 5.0, 1.0, 1.0])
    states[:, 2] = states[:, 0]
    points, names = plane(states, (3, 1))
    np.testing.assert_array_equal(points, states[:, [3, 1]])
    assert names == ["coordinate 3", "coordinate 1"]
    points, _ = plane(states, None)
    assert points.shape == (50, 2)
    assert points[:, 0].var() > points[:, 1].var()
    assert abs(np.corrcoef(points[:, 0], states[:, 0])[0, 1]) > 0.8
    with pytest.raises(sapp.SappError, match="coordinates"):
        plane(states, (0, 9))


def test_weights_of_a_run_are_drawn_with_what_its_estimator_says_of_itself(tmp_path: Path) -> None:
    data = behaviour_dataset(20)
    algorithm = CQL(
        hidden=(8,), batch_size=16, action_samples=1, weights=OccupancyModel(hidden=(8,), particles=16),
    )  # fmt: skip
    phases = sapp.sa_protocol(4, 2, 2)
    run = sapp.train(algorithm, data, phases=phases, out=tmp_path / "run", eval_every=0, log_every=2, progress=False)
    weights = state_weights(run, data, 0, np.arange(40))
    assert weights.shape == (40,)
    low, high = (float(bound) for bound in algorithm.weights.bounds())
    assert low <= weights.min() <= weights.max() <= high
    assert "clipped" in health(run, 0)
    draw(run, data, tmp_path / "weights.png", 0, None, 64)
    assert (tmp_path / "weights.png").read_bytes()[:4] == b"\x89PNG"
