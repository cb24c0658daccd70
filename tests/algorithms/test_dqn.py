"""DQN's family: targets and losses of double DQN, QR-DQN and REM by hand-computed numbers, and cloning."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms import DQN, REM, DiscreteCQL, MLPScores
from sapp.algorithms.dqn import DQNState, quantile_huber
from sapp.algorithms.registry import preset
from sapp.core.errors import SappError
from sapp.core.spec import Batch, Spec
from sapp.weights import DualDICE, LogMinMax, RandomWeights


class Heads(eqx.Module):
    """A network given by a table: state i has the heads table[i] [n, K]; states are one-hot."""

    table: jnp.ndarray = eqx.field(converter=lambda table: jnp.asarray(table, jnp.float32))

    def many(self, state: jnp.ndarray) -> jnp.ndarray:
        return jnp.einsum("bs,snk->bnk", state, self.table)


# two states, two actions
ONLINE = Heads([[[1.0], [2.0]], [[5.0], [4.0]]])
TARGET = Heads([[[0.5], [7.0]], [[-1.0], [3.0]]])
BATCH = Batch(
    jnp.eye(2),
    jnp.array([1, 0], jnp.int32),
    jnp.array([0.5, -1.0]),
    jnp.eye(2)[::-1],
    jnp.array([0.0, 1.0]),
    jnp.eye(2),
)


def test_double_dqn_asks_the_online_network_which_and_the_target_how_much() -> None:
    state = DQNState(ONLINE, TARGET, None, jnp.int32(0))
    # row 0 goes to state 1: the online network's best there is action 0, the target values it at −1
    np.testing.assert_allclose(DQN(discount=0.9).bootstrap(state, BATCH, None), [[0.5 - 0.9], [-1.0]], rtol=1e-6)
    # without it, the target's own best: 3
    single = DQN(discount=0.9, double=False).bootstrap(state, BATCH, None)
    np.testing.assert_allclose(single, [[0.5 + 2.7], [-1.0]], rtol=1e-6)


def test_the_huber_loss_by_hand() -> None:
    loss, metrics = DQN().loss(ONLINE, BATCH, jnp.array([[1.5], [2.0]]), jnp.ones(2), None)
    # Q(s,a) are 2 and 5; errors 0.5 and 3
    assert float(loss) == pytest.approx((0.125 + 2.5) / 2)
    assert float(metrics["critic/value"]) == pytest.approx(3.5)
    # action 0 is worth 1 and 5 in the two states, action 1 is worth 2 and 4
    assert float(metrics["critic/spread"]) == pytest.approx((2.0 + 1.0) / 2)


def test_quantile_huber_by_hand() -> None:
    # θ = (0, 2), levels ¼ and ¾; y = (1, 4): u = y_j − θ_i = [[1, 4], [−1, 2]]
    found = quantile_huber(jnp.array([[0.0, 2.0]]), jnp.array([[1.0, 4.0]]))
    first = (0.25 * 0.5 + 0.25 * 3.5) / 2
    second = (abs(0.75 - 1) * 0.5 + 0.75 * 1.5) / 2
    assert float(found[0]) == pytest.approx(first + second)


def test_qr_targets_are_the_quantiles_of_the_best_mean() -> None:
    online = Heads([[[0.0, 0.0], [0.0, 0.0]], [[1.0, 3.0], [2.5, 1.0]]])  # means 2 and 1.75 in state 1
    target = Heads([[[0.0, 0.0], [0.0, 0.0]], [[10.0, 20.0], [30.0, 40.0]]])
    state = DQNState(online, target, None, jnp.int32(0))
    found = DQN(quantiles=2, discount=0.5).bootstrap(state, BATCH, None)
    np.testing.assert_allclose(found, [[0.5 + 5.0, 0.5 + 10.0], [-1.0, -1.0]])
    loss, metrics = DiscreteCQL(quantiles=2, alpha=2.0).loss(online, BATCH, found, jnp.array([1.0, 0.5]), None)
    # penalties: row 0 has equal means (log 2), row 1 log(e² + e^1.75) − 2
    penalty = np.array([np.log(2.0), np.log(np.exp(2.0) + np.exp(1.75)) - 2.0])
    td = np.asarray(quantile_huber(jnp.array([[0.0, 0.0], [1.0, 3.0]]), found)).mean()
    assert float(loss) == pytest.approx(td + 2.0 * (penalty * [1.0, 0.5]).mean(), rel=1e-5)
    assert float(metrics["critic/penalty"]) == pytest.approx(penalty.mean(), rel=1e-5)


@pytest.mark.parametrize(("name", "eps"), [("adam", 1e-8), ("adam", 3.125e-4), ("rmsprop", 1e-8)])
def test_optimisers_by_their_own_formulas(name: str, eps: float) -> None:
    algorithm = DQN(optimiser=name, adam_eps=eps, lr=0.1, network=MLPScores((4,)))  # type: ignore[arg-type]
    gradient = {"x": jnp.array([0.5, -2e-4])}
    direction = algorithm.direction()
    found, _ = direction.update(gradient, direction.init(gradient))
    g = np.asarray(gradient["x"])
    adam = g / (np.abs(g) + eps)  # the first step, bias corrected
    rmsprop = g / np.sqrt(0.05 * g**2 - (0.05 * g) ** 2 + 1e-5)
    np.testing.assert_allclose(found["x"], adam if name == "adam" else rmsprop, rtol=1e-4)


def test_presets_have_the_published_numbers() -> None:
    cql = preset("sa-discrete-cql", "ALE/Pong-v5")
    assert (cql.alpha, cql.lr, cql.batch_size, cql.target_every) == (1.0, 6.25e-5, 64, 8000)
    assert isinstance(cql.weights, DualDICE)
    assert cql.weights.f == LogMinMax(0.5, 2.0)
    assert (cql.weights.zeta_lr, cql.weights.nu_lr) == (1e-3, 1e-4)
    assert preset("s-sa-discrete-cql", "pong-1pct").weights == RandomWeights(LogMinMax(0.5, 2.0))
    assert preset("sa-discrete-cql", "ward").weights.f == LogMinMax(0.0, 1.0)
    rem = preset("rem", "ALE/Pong-v5")
    assert (rem.ensemble, rem.lr, rem.adam_eps, rem.target_every, rem.double) == (200, 5e-5, 3.125e-4, 2000, False)
    qr = preset("qr-dqn")
    assert (qr.quantiles, qr.lr, qr.adam_eps, qr.target_every) == (200, 5e-5, 3.125e-4, 2000)


def test_the_target_is_a_copy_at_the_start_and_after_every_so_many_updates() -> None:
    algorithm = DQN(target_every=2, lr=0.1, network=MLPScores((2,)))
    state = algorithm.init(jax.random.PRNGKey(0), Spec(2, 2, jnp.zeros(2), jnp.ones(2), True))
    update = jax.jit(algorithm.update)
    copies = []
    for _ in range(5):
        pairs = zip(*map(jax.tree.leaves, (state.scores, state.target)), strict=True)
        copies.append(all(bool(jnp.array_equal(*pair)) for pair in pairs))
        state, _ = update(state, BATCH, jnp.ones(2), jax.random.PRNGKey(1))
    assert copies == [True, False, True, False, True]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(SappError, match="REM takes no state weights"):
        REM(weights=RandomWeights())
    with pytest.raises(SappError, match="leave quantiles at 0"):
        REM(quantiles=5)
    with pytest.raises(SappError, match="use adam or rmsprop"):
        DQN(optimiser="sgd")  # type: ignore[arg-type]
    with pytest.raises(SappError, match="REM: the data's actions are continuous"):
        REM().init(jax.random.PRNGKey(0), Spec(3, 2, jnp.zeros(3), jnp.ones(3)))
