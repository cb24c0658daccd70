"""Controls share the real weights' histogram, mean or range, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp import SappError
from sapp.core.spec import Batch, Spec
from sapp.weights import (
    ConstantWeights,
    Control,
    ControlKind,
    DualDICE,
    FrozenWeights,
    Identity,
    LogMinMax,
    MatchedWeights,
    Power,
    RandomWeights,
    RescaledWeights,
    ShuffledWeights,
    StateWeights,
    Transform,
    Uniform,
    control,
)

B = 64


class FirstFeature(StateWeights):
    """Stands for an estimator: weights are f of the first feature."""

    f: Transform = LogMinMax(0.5, 2.0)

    @property
    def learns(self) -> bool:
        return True

    def bounds(self) -> tuple[jax.Array, jax.Array]:
        return self.f.bounds()

    def weights(self, state: Any, batch: Batch, policy: Any, key: jax.Array) -> tuple[jax.Array, dict]:
        return self.f(jnp.exp(batch.observation[:, 0]))[0], {"logged": jnp.float32(3.0)}


@pytest.fixture(scope="module")
def batch() -> Batch:
    rng = np.random.default_rng(0)
    observation = jnp.asarray(rng.normal(size=(B, 2)), jnp.float32)
    return Batch(observation, observation[:, :1], observation[:, 0], observation, jnp.zeros(B), observation)


def given(weights: StateWeights, batch: Batch, seed: int = 0) -> np.ndarray:
    return np.asarray(weights.weights((), batch, None, jax.random.PRNGKey(seed))[0])


def test_real_kind_is_the_weights_themselves(batch: Batch) -> None:
    np.testing.assert_array_equal(given(control(FirstFeature(), "real"), batch), given(FirstFeature(), batch))


def test_shuffled_has_the_same_sorted_batch_and_another_order(batch: Batch) -> None:
    real, shuffled = given(FirstFeature(), batch), given(ShuffledWeights(FirstFeature()), batch)
    np.testing.assert_array_equal(np.sort(shuffled), np.sort(real))
    assert np.mean(shuffled == real) < 0.2
    assert np.any(shuffled != given(ShuffledWeights(FirstFeature()), batch, seed=1))


def test_matched_is_the_batch_mean_everywhere(batch: Batch) -> None:
    matched = given(MatchedWeights(FirstFeature()), batch)
    assert np.ptp(matched) == 0
    assert matched[0] == pytest.approx(given(FirstFeature(), batch).mean(), rel=1e-6)


def test_random_lies_in_the_real_range_and_fills_it(batch: Batch) -> None:
    draws = np.concatenate([given(control(FirstFeature(), "random"), batch, seed) for seed in range(20)])
    assert draws.min() >= 0.5
    assert draws.max() <= 2.5
    assert draws.mean() == pytest.approx(1.5, abs=0.06)
    assert draws.std() == pytest.approx(2.0 / np.sqrt(12), rel=0.05)


def test_uniform_kind_and_uniform_weights_are_ones(batch: Batch) -> None:
    np.testing.assert_array_equal(given(control(FirstFeature(), "uniform"), batch), 1.0)
    np.testing.assert_array_equal(given(Uniform(), batch), 1.0)


def test_the_papers_random_weights(batch: Batch) -> None:
    draws = np.concatenate([given(RandomWeights(LogMinMax(0.5, 5.0)), batch, seed) for seed in range(20)])
    assert 0.5 <= draws.min() < 0.6
    assert 5.4 < draws.max() <= 5.5
    assert draws.mean() == pytest.approx(3.0, abs=0.15)
    assert [float(x) for x in RandomWeights(LogMinMax(0.5, 5.0)).bounds()] == [0.5, 5.5]


def test_constant_weights(batch: Batch) -> None:
    np.testing.assert_array_equal(given(ConstantWeights(0.25), batch), 0.25)
    assert [float(x) for x in ConstantWeights(0.25).bounds()] == [0.25, 0.25]


def test_a_control_learns_and_logs_as_what_it_controls(batch: Batch) -> None:
    chosen = ShuffledWeights(FirstFeature())
    assert chosen.learns
    assert not Control(Uniform()).learns
    assert float(chosen.weights((), batch, None, jax.random.PRNGKey(0))[1]["logged"]) == 3.0
    assert [float(x) for x in chosen.bounds()] == [0.5, 2.5]


def test_all_kinds_train_in_one_program(batch: Batch) -> None:
    """The kind is a number: vmapped over it, one trace gives every control."""
    kinds = jnp.arange(len(ControlKind))
    key = jax.random.PRNGKey(2)
    together = jax.vmap(lambda kind: Control(FirstFeature(), kind).weights((), batch, None, key)[0])(kinds)
    for row, name in zip(together, ControlKind, strict=True):
        np.testing.assert_allclose(row, given(control(FirstFeature(), name), batch, 2), rtol=1e-6)


def test_unknown_controls_are_refused_by_name() -> None:
    with pytest.raises(SappError, match=r"'inverted'.*shuffled"):
        control(Uniform(), "inverted")
    with pytest.raises(SappError, match="kind 7"):
        Control(Uniform(), 7)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ConstantWeights(float("nan")), "ConstantWeights: value is nan; it must be 0 or more"),
        (lambda: ConstantWeights(-0.5), "ConstantWeights: value is -0.5; it must be 0 or more"),
        (lambda: FrozenWeights(Uniform(), updates=-1), "FrozenWeights: updates is -1"),
        (lambda: RescaledWeights(Uniform(), mean=-0.5), "RescaledWeights: mean is -0.5"),
        (lambda: RescaledWeights(Uniform(), mean=float("nan")), "RescaledWeights: mean is nan"),
        (lambda: Control(Uniform(), 6), "control kind 6"),
        (lambda: Control(Uniform(), -1), "control kind -1"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(make: Callable[[], StateWeights], words: str) -> None:
    with pytest.raises(SappError, match=words):
        make()


def test_random_weights_need_a_range_with_an_end() -> None:
    for make in (lambda: RandomWeights(Identity()), lambda: control(FirstFeature(Power(0.5)), "random")):
        with pytest.raises(SappError, match="no largest weight"):
            make()


def test_the_literal_random_weights_of_the_paper_lie_between_b0_and_b1(batch: Batch) -> None:
    literal = RandomWeights(LogMinMax(0.5, 5.0, span="upper"))
    assert [float(x) for x in literal.bounds()] == [0.5, 5.0]
    draws = np.concatenate([given(literal, batch, seed) for seed in range(20)])
    assert draws.mean() == pytest.approx(2.75, abs=0.15)


def test_wrapped_weights_read_the_ratio_of_what_they_wrap_and_others_refuse(batch: Batch) -> None:
    dice = DualDICE(hidden=(8,))
    state = dice.init(jax.random.PRNGKey(0), Spec(2, 1, jnp.zeros(2), jnp.ones(2)))
    wanted = np.asarray(dice.ratio(state, batch, None))
    for around in (ShuffledWeights(dice), RescaledWeights(dice)):
        np.testing.assert_array_equal(around.ratio(state, batch, None), wanted)
    np.testing.assert_array_equal(FrozenWeights(dice).ratio((state, jnp.int32(3)), batch, None), wanted)
    with pytest.raises(SappError, match="ConstantWeights estimates no state ratio"):
        ConstantWeights(0.5).ratio((), batch, None)


def test_rescaled_weights_have_the_mean_asked_for_and_the_proportions_of_the_real_ones(batch: Batch) -> None:
    real = given(FirstFeature(), batch)
    for kind in ControlKind:
        within = control(FirstFeature(), kind)
        found = given(RescaledWeights(within, 0.7), batch)
        assert found.mean() == pytest.approx(0.7, rel=1e-6)
        np.testing.assert_allclose(found * given(within, batch).mean() / 0.7, given(within, batch), rtol=1e-5)
    assert real.mean() != pytest.approx(0.7, rel=0.1)
    nothing = given(RescaledWeights(ConstantWeights(0.0), 0.7), batch)
    np.testing.assert_allclose(nothing, 0.7)


def test_rescaled_weights_learn_log_and_range_as_what_they_rescale(batch: Batch) -> None:
    around = RescaledWeights(FirstFeature(), 3.0)
    assert around.learns
    assert not RescaledWeights(Uniform()).learns
    logged = around.weights((), batch, None, jax.random.PRNGKey(0))[1]
    assert float(logged["logged"]) == 3.0
    assert float(logged["weights/unscaled_mean"]) == pytest.approx(given(FirstFeature(), batch).mean())
    assert [float(x) for x in around.bounds()] == [1.0, 5.0]  # of [0.5, 2.5], moved to a middle of 3
    with pytest.raises(SappError, match="mean"):
        RescaledWeights(Uniform(), -1.0)


def test_only_weights_that_use_an_estimate_report_its_health() -> None:
    reporting = [kind.label for kind in ControlKind if control(FirstFeature(), kind).reports_health]
    assert reporting == ["real", "shuffled", "matched", "frozen"]
    assert RescaledWeights(control(FirstFeature(), "shuffled")).reports_health
    assert not RescaledWeights(control(FirstFeature(), "random")).reports_health
    assert not Control(Uniform()).reports_health
