"""DualDICE on images: a finite MDP whose states are pictures, through an encoder's features, beside exact ratios."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG

from sapp.algorithms import ConvScores, DiscreteCQL
from sapp.data.frames import FrameDataset
from sapp.tabular.dualdice import dualdice
from sapp.tabular.estimator_logs import draw_logs
from sapp.tabular.logs import empirical, log_of
from sapp.tabular.mdp import garnet
from sapp.training.device_frames import DeviceFrames, frame_spec
from sapp.weights import DualDICE

STATES, ACTIONS, DISCOUNT = 4, 2, 0.7


def pictures() -> np.ndarray:
    """State s lights a bar of its own in a picture of 4 by 4, uint8 [4, 4, 4]."""
    return np.repeat(np.eye(STATES, dtype=np.uint8)[:, :, None] * 255, 4, axis=2)


def test_ratios_through_an_encoder_converge_to_the_exact_ones() -> None:
    mdp = garnet(np.random.default_rng(4), 1, states=STATES, actions=ACTIONS, discount=DISCOUNT)[0]
    logs = draw_logs(mdp, np.full((STATES, ACTIONS), 0.5), 400, 20, 0)
    state_of = logs.observation.argmax(1)
    data = FrameDataset(
        pictures()[state_of], logs.action, logs.reward, logs.terminal, logs.timeout, num_actions=ACTIONS, stack=1
    )
    # the transitions that are drawn: each has its successor in the row behind it
    rows = data.sampled_rows
    counts = np.zeros(mdp.transition.shape, np.int64)
    np.add.at(counts, (state_of[rows], data.action[rows], state_of[rows + 1]), 1)
    start = np.bincount(state_of[data.episode_starts], minlength=STATES) / data.num_episodes

    # a policy that is not the behaviour's: softmax of a random network's scores, made larger
    base = DiscreteCQL(network=ConvScores((8,), (2,), (1,), 16), weights=DualDICE(hidden=(32,)))
    spec = frame_spec(data)
    learner = base.init(jax.random.PRNGKey(5), spec)
    learner = eqx.tree_at(lambda s: s.scores.head.linear.weight, learner, replace_fn=lambda weight: 15.0 * weight)
    stacks = jnp.asarray(pictures()[:, None])
    features = base.features(learner, stacks)
    assert features.shape == (STATES, 16)
    policy = np.asarray(base.feature_policy(learner)(features).probs, np.float64)
    np.testing.assert_allclose(policy, base.policy(learner)(stacks).probs, rtol=1e-4)
    assert np.abs(policy - 0.5).max() > 0.2
    _, exact = dualdice(empirical(log_of(mdp, counts), start, DISCOUNT), policy)

    algorithm = replace(base.weights, nu_lr=3e-3, zeta_lr=3e-3, ratio_lr=3e-3)
    state = algorithm.init(jax.random.PRNGKey(0), base.feature_spec(spec))
    device = DeviceFrames.of([data])

    @partial(jax.jit, compiler_options=LONG)
    def train(state):
        def body(step, state):
            key = jax.random.fold_in(jax.random.PRNGKey(1), step)
            batch = device.batch(jnp.int32(0), key, 256)
            seen = replace(
                batch,
                observation=base.features(learner, batch.observation),
                next_observation=base.features(learner, batch.next_observation),
                initial_observation=base.features(learner, batch.initial_observation),
            )
            return algorithm.update(state, seen, base.feature_policy(learner), jnp.float32(DISCOUNT), key)[0]

        return jax.lax.fori_loop(0, 1500, body, state)

    state = train(state)
    pairs = np.array([(s, a) for s in range(STATES) for a in range(ACTIONS)])
    found = np.asarray(algorithm.zeta(state, features[pairs[:, 0]], jnp.asarray(pairs[:, 1], jnp.int32)))
    visits = counts.sum(-1) / counts.sum()
    weighted = visits.reshape(-1) * np.abs(found - exact.reshape(-1))
    assert weighted.sum() < 0.12
    value = np.sum(visits.reshape(-1) * found * mdp.reward.reshape(-1))
    assert value == pytest.approx(np.sum(visits * exact * mdp.reward), abs=0.06)
    # and the state ratio by regression: ω(s) = Σ_a β̂(a|s)·ζ(s,a)
    behaviour = visits / visits.sum(-1, keepdims=True)
    wanted = (behaviour * exact).sum(-1)
    ratio = np.exp(np.asarray(state.ratio(features))[:, 0])
    assert np.sum(visits.sum(-1) * np.abs(ratio - wanted)) < 0.12
    assert np.corrcoef(ratio, wanted)[0, 1] > 0.9
    assert not bool(state.health.unreliable)
