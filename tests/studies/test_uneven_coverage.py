"""Uneven coverage: its ratio and losses are known, CQL's minimiser is one, and the comparison finds what it should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.core.spec import Batch
from sapp.weights.transforms import Identity
from studies.uneven_coverage import __main__ as command
from studies.uneven_coverage import learned as networks
from studies.uneven_coverage.__main__ import tuned
from studies.uneven_coverage.exact import SPREADS, conservative_values, exact_losses
from studies.uneven_coverage.learned import KnownRatio
from studies.uneven_coverage.worlds import CASES, Setting, make_world

SETTING = Setting(episodes=60, length=20)


def test_a_world_counts_its_own_logs_and_knows_its_ratio() -> None:
    world = make_world(SETTING, 3)
    state = world.data.observation.argmax(1)
    assert len(world.data) == 60 * 20
    assert world.visits.sum() == len(world.data)
    np.testing.assert_array_equal(world.visits.sum(1), np.bincount(state, minlength=20))
    for s, a in ((0, 1), (7, 4), (15, 2)):
        rows = (state == s) & (world.data.action == a)
        if rows.any():
            assert world.mean[s, a] == pytest.approx(world.data.reward[rows].mean(), rel=1e-5)
    assert world.occupancy.sum() == pytest.approx(1.0)
    assert (world.share * world.ratio).sum() == pytest.approx(1.0)
    # half of the discounted visits are to the entrance, one row in twenty is
    assert (world.share[:10]).sum() == pytest.approx(1 / 20)
    starts = np.arange(len(world.data)) % 20 == 0
    assert set(state[starts]) == set(range(10))
    assert state[~starts].min() >= 10


def test_the_behaviour_prefers_good_actions_if_it_has_skill() -> None:
    def preference(skill: float) -> float:
        worlds = [make_world(replace(SETTING, length=200, skill=skill), seed) for seed in range(3)]
        return float(np.mean([np.corrcoef(w.reward[10:].ravel(), w.visits[10:].ravel())[0, 1] for w in worlds]))

    assert preference(3.0) > 0.6
    assert abs(preference(0.0)) < 0.2


def test_what_is_lost_is_zero_for_the_truth_and_the_gap_for_one_wrong_choice() -> None:
    world = make_world(SETTING, 0)
    assert world.lost(world.reward) == 0.0
    wrong = world.reward.copy()
    worst = int(wrong[12].argmin())
    wrong[12, worst] = 100.0
    gap = world.reward[12].max() - world.reward[12, worst]
    assert world.lost(wrong) == pytest.approx(0.5 / 10 * gap)


@pytest.mark.parametrize("charge", [0.01, 1.0, 30.0])
def test_conservative_values_minimise_their_loss(charge: float) -> None:
    world = make_world(SETTING, 1)
    behaviour = jnp.asarray(world.visits / world.visits.sum(1, keepdims=True))
    seen = world.visits > 0
    charges = charge * np.linspace(0.5, 2.0, 20)

    def loss(values: jax.Array) -> jax.Array:
        whole = jnp.where(seen, values, -jnp.inf)
        error = jnp.where(seen, values - world.mean, 0.0)
        penalty = jax.nn.logsumexp(whole, axis=1) - jnp.sum(jnp.where(seen, behaviour * values, 0.0), axis=1)
        return jnp.sum(jnp.sum(behaviour * jnp.square(error), axis=1) + charges * penalty)

    found = conservative_values(world, charges, iterations=400)
    slope = jax.grad(loss)(jnp.asarray(np.where(seen, found, 0.0)))
    assert float(jnp.abs(slope).max()) < 1e-4 * charge
    assert np.isneginf(found[~seen]).all()


def test_without_a_charge_the_values_are_the_logs_means_and_with_a_large_one_the_behaviour_is_followed() -> None:
    world = make_world(SETTING, 2)
    seen = world.visits > 0
    free = conservative_values(world, np.zeros(20))
    np.testing.assert_allclose(free[seen], world.mean[seen])
    bound = conservative_values(world, np.full(20, 1e5), iterations=400)
    policy = np.exp(bound - bound.max(1, keepdims=True))
    policy /= policy.sum(1, keepdims=True)
    np.testing.assert_allclose(policy, world.visits / world.visits.sum(1, keepdims=True), atol=2e-3)


def test_alpha_is_tuned_on_the_first_half_of_the_worlds_and_judged_on_the_second() -> None:
    losses = {
        "CQL": np.array([[1.0, 1.0, 5.0, 5.0], [2.0, 2.0, 0.0, 0.0]]),
        "other": np.array([[3.0, 3.0, 0.0, 0.0], [1.0, 1.0, 4.0, 3.0]]),
    }
    first, second = tuned(losses, [0.1, 10.0])
    assert (first.alpha, first.lost, first.difference.estimate) == (0.1, 5.0, 0.0)
    assert (second.alpha, second.lost, second.difference.estimate) == (10.0, 3.5, -1.5)


def test_the_ratio_helps_where_coverage_is_uneven_and_its_controls_do_not() -> None:
    alphas = np.geomspace(0.1, 100, 10).tolist()
    worlds = [make_world(CASES["uneven coverage"], seed) for seed in range(60)]
    rows = {row.variant: row for row in tuned(exact_losses(worlds, alphas), alphas)}
    assert rows["SA-CQL, log-min–max"].difference.high < 0.0
    assert rows["SA-CQL, √w"].difference.high < 0.0
    assert rows["√w shuffled"].difference.high > 0.0
    assert rows["random"].difference.high > 0.0


def test_known_ratios_weigh_a_batch_by_its_states() -> None:
    ratio = np.linspace(0.5, 3.0, 20).astype(np.float32)
    state = jnp.asarray([4, 0, 19, 4])
    one_hot = jnp.eye(20)[state]
    zero = jnp.zeros(4)
    batch = Batch(one_hot, zero, zero, one_hot, zero, one_hot)
    weights, _ = KnownRatio(ratio, Identity()).weights((), batch, None, jax.random.PRNGKey(0))  # type: ignore[arg-type]
    np.testing.assert_allclose(weights, ratio[np.asarray(state)])


def test_the_command_writes_exact_and_learned_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CASES", {"uneven coverage": Setting(episodes=20, length=10)})
    monkeypatch.setattr(networks, "HIDDEN", (8, 8))
    monkeypatch.setattr(networks, "RATIO_HIDDEN", (8, 8))
    common = ["--out", str(tmp_path), "--cases", "uneven coverage"]
    command.main([*common, "--worlds", "4"])
    command.main([*common, "--worlds", "2", "--learned", "--steps", "5"])
    exact = (tmp_path / "exact-uneven-coverage.md").read_text()
    learned = (tmp_path / "learned-uneven-coverage.md").read_text()
    assert [line.split(" | ")[0] for line in exact.splitlines()[4:11]] == [f"| {name}" for name in SPREADS]
    assert "| DualDICE ratio, matched |" in learned
    assert "correlate with the truth by" in learned
    some = ["--learned", "--steps", "5", "--alphas", "1", "30"]
    command.main([*common, "--worlds", "2", *some, "--estimators", "known"])
    fewer = (tmp_path / "learned-uneven-coverage.md").read_text()
    assert "DualDICE" not in fewer
    assert "| known ratio, shuffled |" in fewer
    assert all(line.split(" | ")[1] in ("1", "30") for line in fewer.splitlines()[4:9])
    with pytest.raises(SappError, match="'known' comes first"):
        command.main([*common, *some, "--estimators", "DualDICE"])
    with pytest.raises(SappError, match="at least 2"):
        command.main([*common, "--worlds", "1"])
