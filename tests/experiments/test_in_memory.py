"""Learners in memory learn what a run's members learn, and are looked at along the way."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import sapp
from sapp import CQL, Phase
from sapp.envs.point import behaviour_dataset
from sapp.experiments.in_memory import Pupil, train_in_memory

SMALL = {"hidden": (8,), "batch_size": 16, "action_samples": 1}


def test_what_is_learned_is_what_a_run_learns(tmp_path: Path) -> None:
    data = behaviour_dataset(6)
    pupils = [Pupil(CQL(**SMALL, alpha=alpha), seed=seed) for alpha in (1.0, 5.0) for seed in (0, 3)]
    *_, last = train_in_memory(pupils, [data], Phase("train", 10, ratio=False))
    states = jnp.asarray(data.observation[:7])
    played = last.each(lambda algorithm, base, ratio: algorithm.policy(base)(states).mode())
    assert played.shape == (4, 7, data.action.shape[1])
    run = sapp.train(
        {"one": CQL(**SMALL, alpha=1.0), "five": CQL(**SMALL, alpha=5.0)}, data, seeds=[0, 3], steps=10,
        out=tmp_path / "run", eval_every=0, progress=False,
    )  # fmt: skip
    low, high = np.asarray(data.action_low), np.asarray(data.action_high)
    for number, unit in enumerate(played):
        learned = run.predict(data.observation[:7], number)
        np.testing.assert_allclose(learned, low + (unit + 1) * (high - low) / 2, atol=1e-5)


def test_a_look_every_so_many_steps_and_at_the_end() -> None:
    pupils = [Pupil(CQL(**SMALL, alpha=alpha), dataset) for alpha in (1.0, 5.0) for dataset in (0, 1)]
    looks = []
    for trained in train_in_memory(pupils, [behaviour_dataset(6), behaviour_dataset(7)], Phase("train", 10), every=4):
        assert trained.seconds > 0
        assert trained.metrics["critic/td"].shape == (4,)
        looks.append((trained.step, float(trained.each(lambda algorithm, base, ratio: algorithm.alpha)[2])))
    assert looks == [(4, 5.0), (8, 5.0), (10, 5.0)]


def test_learners_of_other_shapes_are_refused() -> None:
    pupils = [Pupil(CQL(**SMALL)), Pupil(CQL(**SMALL | {"hidden": (4,)}))]
    with pytest.raises((sapp.SappError, ValueError)):
        list(train_in_memory(pupils, [behaviour_dataset(6)], Phase("train", 2)))
