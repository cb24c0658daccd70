"""One member's step: which key and which batch goes where, and that weights come from before the ratio's update."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms import Algorithm
from sapp.core.spec import Batch
from sapp.training.step import DIVERGENCE_LIMIT, Kind, MemberState, draw, member_keys, step
from sapp.weights import StateWeights, Uniform

ROWS = 4
BATCH = Batch(*(jnp.arange(float(ROWS)) + number for number in range(6)))


class Noting(Algorithm):
    """Its state: how often it learned, the weights it was given, and a number drawn with the key it was given."""

    discount: float = 0.9
    weights: StateWeights = Uniform()
    batch_size: int = eqx.field(static=True, default=ROWS)
    loss: float = 0.0

    def update(self, state: Any, batch: Batch, weights: jax.Array, key: jax.Array) -> tuple[Any, dict]:
        new = {"count": state["count"] + 1, "weights": weights, "drawn": jax.random.uniform(key)}
        return new, {"loss": jnp.asarray(self.loss, jnp.float32)}

    def policy(self, state: Any) -> Any:
        return state["count"]


class Counting(StateWeights):
    """Its state: how often it learned, the policy it saw and a number drawn; the weights are the count."""

    @property
    def learns(self) -> bool:
        return True

    def update(self, state: Any, batch: Batch, policy: Any, discount: jax.Array, key: jax.Array) -> tuple[Any, dict]:
        new = {"count": state["count"] + 1, "policy": policy, "drawn": jax.random.uniform(key)}
        return new, {"seen": discount}

    def weights(self, state: Any, batch: Batch, policy: Any, key: jax.Array) -> tuple[jax.Array, dict]:
        return jnp.full(ROWS, state["count"]), {"policy": policy, "drawn": jax.random.uniform(key)}


START = MemberState(
    base={"count": jnp.float32(5.0), "weights": jnp.zeros(ROWS), "drawn": jnp.float32(0.0)},
    ratio={"count": jnp.float32(3.0), "policy": jnp.float32(0.0), "drawn": jnp.float32(0.0)},
    alive=jnp.bool_(True),
)
KEYS = member_keys(jax.random.PRNGKey(7), jnp.int32(0), jnp.int32(11))
JOINT = Kind(base=True, ratio=True, weighted=True)


def test_batch_ratio_weights_and_algorithm_draw_with_keys_of_their_own() -> None:
    new, metrics = step(JOINT, jnp.int32(11), Noting(weights=Counting()), KEYS, BATCH, START)
    found = [new.ratio["drawn"], metrics["drawn"], new.base["drawn"]]
    np.testing.assert_array_equal(found, [jax.random.uniform(key) for key in KEYS[1:]])
    assert len({tuple(key) for key in np.asarray(KEYS).tolist()}) == 4


def test_weights_are_those_from_before_the_ratios_update() -> None:
    new, metrics = step(JOINT, jnp.int32(11), Noting(weights=Counting()), KEYS, BATCH, START)
    np.testing.assert_array_equal(new.base["weights"], 3.0)
    assert (float(new.ratio["count"]), float(new.base["count"])) == (4.0, 6.0)
    assert float(metrics["weights/mean"]) == 3.0


def test_the_ratio_learns_of_the_policy_from_before_the_algorithms_update() -> None:
    new, metrics = step(JOINT, jnp.int32(11), Noting(weights=Counting(), discount=0.75), KEYS, BATCH, START)
    assert (float(new.ratio["policy"]), float(metrics["policy"]), float(metrics["seen"])) == (5.0, 5.0, 0.75)


@pytest.mark.parametrize("kind", [Kind(True, False, False), Kind(True, True, False), Kind(False, True, False)])
def test_what_a_phase_does_not_use_stays_as_it_was(kind: Kind) -> None:
    new, _ = step(kind, jnp.int32(0), Noting(weights=Counting()), KEYS, BATCH, START)
    assert float(new.base["count"]) == 5.0 + kind.base
    assert float(new.ratio["count"]) == 3.0 + kind.ratio
    np.testing.assert_array_equal(new.base["weights"], float(kind.base))  # unweighted is 1


@pytest.mark.parametrize(
    ("loss", "alive"),
    [(0.0, True), (-0.5 * DIVERGENCE_LIMIT, True), (-2.0 * DIVERGENCE_LIMIT, False), (float("nan"), False)],
)
def test_a_loss_beyond_the_limit_stops_its_member_for_good(loss: float, alive: bool) -> None:
    algorithm, kind = Noting(loss=loss), Kind(True, False, False)
    once, _ = step(kind, jnp.int32(0), algorithm, KEYS, BATCH, START)
    twice, _ = step(kind, jnp.int32(1), algorithm, KEYS, BATCH, once)
    assert bool(once.alive) is alive
    assert float(twice.base["count"]) == (7.0 if alive else 6.0)


class Rows:
    """A feed whose rows are drawn from a million."""

    def draw(self, dataset: jax.Array, key: jax.Array, count: int) -> jax.Array:
        return jax.random.randint(key, (count,), 0, 1_000_000)


def test_a_phase_of_the_ratio_alone_draws_batches_that_the_algorithm_never_sees() -> None:
    """The n-th batch of either, for the same n; the joint phase goes on with the algorithm's own."""
    member, algorithm = jax.random.PRNGKey(0), Noting()

    def rows(kind: Kind, update: int) -> list[int]:
        return draw(kind, algorithm, Rows(), member, jnp.int32(0), jnp.int32(update))[1].tolist()

    for update in (0, 1, 40):
        assert rows(JOINT, update) == rows(Kind(True, False, False), update)
        assert not set(rows(JOINT, update)) & set(rows(Kind(False, True, False), update))
    assert len({tuple(rows(JOINT, update)) for update in range(5)}) == 5
