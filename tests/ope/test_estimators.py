"""One step of the estimators by hand: what FQE regresses on, and how its target follows."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ward_logs import logs, targets_of

from sapp.core.errors import SappError
from sapp.core.spec import Batch
from sapp.data import Dataset
from sapp.networks import MLP
from sapp.ope.dice import ADAM as DICE_ADAM
from sapp.ope.dice import RatioScale
from sapp.ope.estimators import (
    FQE_ADAM,
    Fit,
    Scales,
    Settings,
    _Numbers,
    _pick,
    _Shape,
    _step,
    bag_counts,
    decay,
    fit,
    standardisation,
)
from sapp.ope.fqe import ValueScale
from sapp.tabular.tasks import Task


def table(values: list[list[float]]) -> MLP:
    """A network without hidden layers: of one-hot states, one output per action."""
    made = MLP(jax.random.PRNGKey(0), 2, (), 2)
    return eqx.tree_at(
        lambda n: (n.layers[0].weight, n.layers[0].bias), made, (jnp.asarray(values, jnp.float32), jnp.zeros(2))
    )


def test_fqe_regresses_on_its_target_network_which_follows_at_its_rate() -> None:
    """One transition, state 0 to state 1 by action 1, reward ½, γ = 0.8, the policy ¼ and ¾; values are 10 + 2·output.

    Q(0, 1) = 10 + 2·3 and V̄(1) = 10 + 2·(¼·1 + ¾·5) = 18, so y = ½ + 0.8·18 = 14.9.
    """
    value, target = table([[1.0, 3.0], [7.0, 7.0]]), table([[0.0, -1.0], [1.0, 5.0]])
    ones = table([[1.0, 1.0], [1.0, 1.0]])
    optimisers = FQE_ADAM.init(value), DICE_ADAM.init((ones, ones))
    fit = Fit(value, target, optimisers[0], ones, ones, ones, optimisers[1], jnp.float32(0.0), jnp.bool_(True))
    scale = ValueScale(jnp.float32(10.0), jnp.float32(2.0))
    here, there = jnp.eye(2)[:1], jnp.eye(2)[1:]
    batch = Batch(here, jnp.array([1], jnp.int32), jnp.array([0.5]), there, jnp.zeros(1), here)
    policy = jnp.array([[0.25, 0.75]])
    numbers = _Numbers.of(Settings(discount=0.8, target_rate=0.25))
    new = _step(numbers, Scales(scale, RatioScale(jnp.float32(1.0), scale)), batch, policy, policy, fit, 0.1)
    gradient = -2.0 * ((14.9 - 10.0) / 2.0 - 3.0)  # of the one squared difference, in the network's units
    moment = np.asarray(new.value_optimiser.mu.layers[0].weight)
    np.testing.assert_allclose(moment, [[0.0, 0.1 * gradient], [0.0, 0.0]], rtol=1e-4, atol=1e-6)
    assert float(new.value.layers[0].weight[0, 1]) == pytest.approx(3.0 - 0.1 * np.sign(gradient), rel=1e-4)
    followed = 0.75 * target.layers[0].weight + 0.25 * new.value.layers[0].weight
    np.testing.assert_allclose(new.target.layers[0].weight, followed, rtol=1e-6)


def test_the_learning_rate_stays_for_half_of_the_steps_and_falls_to_a_tenth() -> None:
    assert [float(decay(step, 100)) for step in (0, 50, 75, 100)] == pytest.approx([1.0, 1.0, 0.55, 0.1])


@pytest.mark.parametrize(("episodes", "bags"), [(2, 2), (20, 8), (60, 3)])
def test_every_episode_is_missed_by_some_bag_and_bags_keep_their_size(episodes: int, bags: int) -> None:
    for seed in range(100):
        counts = bag_counts(episodes, bags, seed)
        assert counts.min() >= 0
        assert (counts == 0).any(0).all()
        # where two bags hold both of two episodes, nothing else can take their places
        assert (counts.sum(1) == episodes).all() or episodes == 2


def test_policies_that_are_fitted_together_differ_by_what_they_do_alone(
    task: Task, policies: dict[str, np.ndarray]
) -> None:
    data = logs(task, 12)
    settings = Settings(discount=0.9, steps=20, bags=2, hidden=(), batch_size=8)
    three = {"better": policies["better"], "worse": policies["worse"], "as the first": policies["better"]}
    found = fit(data, targets_of(three, data), settings)
    for name in ("start_value", "weighted_reward", "weighted_error", "weight", "nu_size", "history"):
        values = np.moveaxis(getattr(found, name), int(name == "history"), 0)
        np.testing.assert_array_equal(values[2], values[0])
        assert np.abs(values[1] - values[0]).max() > 0
    for bags in (found.start_value, found.weight, found.nu_size):
        assert np.abs(bags[:, 0] - bags[:, 1]).max() > 0


@pytest.mark.parametrize(
    ("steps", "discount", "given", "expected"),
    [
        (20_000, 0.99, {}, {"value_lr": 3e-4, "nu_lr": 3e-4, "zeta_lr": 1e-3, "target_rate": 0.05}),
        (80_000, 0.99, {}, {"value_lr": 3e-4, "nu_lr": 3e-4, "zeta_lr": 1e-3, "target_rate": 0.0125}),
        (5_000, 0.9, {}, {"value_lr": 6e-4, "nu_lr": 6e-4, "zeta_lr": 2e-3, "target_rate": 0.02}),
        (100, 0.9, {}, {"value_lr": 9.9e-4, "nu_lr": 9.9e-4, "zeta_lr": 3.3e-3, "target_rate": 0.1}),
        (80_000, 0.5, {}, {"value_lr": 3e-4, "nu_lr": 3e-4, "zeta_lr": 1e-3, "target_rate": 0.005}),
        (20_000, 0.99, {"value_lr": 0.5, "target_rate": 0.0},
         {"value_lr": 0.5, "nu_lr": 3e-4, "zeta_lr": 1e-3, "target_rate": 0.0}),
    ],
)  # fmt: skip
def test_rates_follow_from_steps_and_discount_unless_they_are_given(
    steps: int, discount: float, given: dict[str, float], expected: dict[str, float]
) -> None:
    assert Settings(steps=steps, discount=discount, **given).rates() == pytest.approx(expected)  # type: ignore[arg-type]


def test_the_least_of_every_setting() -> None:
    least = {"steps": 1, "bags": 2, "batch_size": 1, "draws": 1}
    assert Settings(**least).draws == 1  # type: ignore[arg-type]
    for name, value in least.items():
        with pytest.raises(SappError, match=f"{name} is {value - 1}; it must be at least {value}"):
            Settings(**{**least, name: value - 1})  # type: ignore[arg-type]


def test_flags_stay_as_they_are_and_small_deviations_are_not_blown_up() -> None:
    rows = np.arange(8)
    seen = np.column_stack([rows % 2, np.zeros(8), np.ones(8), rows, 2.0 + 1e-5 * rows, rows % 2 * 2.0])
    data = Dataset(seen, seen[:, :1] * 0, rows, seen, rows == 7, rows < 0)
    mean, std = standardisation(data)
    np.testing.assert_allclose(mean, [0, 0, 0, 3.5, 2.000035, 1], rtol=1e-6)
    np.testing.assert_allclose(std, [1, 1, 1, rows.std(), 1e-3, 1], rtol=1e-5)


def test_each_of_the_draws_of_a_state_is_picked_as_often() -> None:
    draws = jnp.tile(jnp.arange(5.0)[None, :, None], (4000, 1, 2)) + 10 * jnp.arange(2.0)
    picked = np.asarray(_pick(_Shape(3, 2, False, (), "auto", 1), draws, jax.random.PRNGKey(0)))
    assert picked.shape == (4000, 1, 2)
    np.testing.assert_array_equal(picked[..., 1], picked[..., 0] + 10)  # of one draw, all of it
    np.testing.assert_allclose(np.bincount(picked[:, 0, 0].astype(int), minlength=5) / 4000, 0.2, atol=0.03)
    np.testing.assert_array_equal(_pick(_Shape(3, 5, True, (), "auto", 1), draws, jax.random.PRNGKey(0)), draws)
