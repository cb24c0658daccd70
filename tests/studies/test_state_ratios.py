"""The ground-truth bench: its statistics, its truths, and one run of it at a small scale."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sapp import SappError
from sapp.weights.classifier import Standard, log_ratio
from studies.state_ratios.__main__ import bench, load, main
from studies.state_ratios.judging import batch_weights, correlation, judge, rank_correlation, tables
from studies.state_ratios.problems import Finite, make_problem, simulate
from studies.state_ratios.truth import SMALL, Ground, Truth, classify, ground

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("ties", [False, True])
def test_rank_correlation_is_scipys(ties: bool) -> None:
    one, other = RNG.normal(size=200), RNG.normal(size=200)
    other = one + other
    if ties:
        one, other = one.round(0), other.round(1)
    assert rank_correlation(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert correlation(one, other) == pytest.approx(stats.pearsonr(one, other).statistic)


def test_an_estimate_that_says_nothing_has_no_correlation() -> None:
    truth = RNG.normal(size=50)
    assert rank_correlation(np.zeros(50), truth) == 0.0
    assert rank_correlation(np.full(50, np.nan), truth) == 0.0


def test_batch_weights_are_log_min_max_in_batches() -> None:
    weights = batch_weights(RNG.normal(size=1024))
    assert weights.shape == (1024,)
    for part in np.split(weights, 4):
        assert (part.min(), part.max()) == (0.0, pytest.approx(1.0, abs=1e-6))


def test_the_truth_judges_itself_perfect() -> None:
    problem = make_problem("corridors")
    data = simulate(problem.env, problem.logging(), 8, 64, seed=0).dataset("corridors")
    log = RNG.normal(size=len(data))
    rows = np.arange(len(data))
    value = float((np.exp(log) * data.reward).sum() / np.exp(log).sum())
    at = Ground(data, rows, {2.0: Truth(log, value, data.observation)})
    row = judge(at, "corridors", "truth", 2.0, 0, log + 3.0, 0.0, 0.0, 0.0, 0.0)
    assert row.spearman == pytest.approx(1.0)
    assert row.weights == pytest.approx(1.0)
    assert row.value_error < 1e-3


def test_simulated_data_restart_at_terminals_and_time_limits() -> None:
    problem = make_problem("corridors")
    trace = simulate(problem.env, problem.logging(), 64, 120, seed=0)
    ended = trace.terminal | trace.timeout
    jump = np.abs(trace.observation[1:] - trace.next_observation[:-1]).max(-1) > 1e-6
    np.testing.assert_array_equal(jump, ended[:-1])
    assert trace.terminal.any()
    assert not np.any(trace.terminal & trace.timeout)
    assert trace.dataset("corridors").num_episodes == ended[:-1].sum() + 64


def test_the_exact_ratio_of_the_finite_problem_is_that_of_its_simulation() -> None:
    problem = make_problem("finite")
    assert isinstance(problem.env, Finite)
    policy = problem.policy(2.0)
    data = simulate(problem.env, problem.logging(), 64, 200, seed=0).dataset("finite")
    visits = data.observation.mean(0)
    sampled = simulate(problem.env, policy, 2048, 60, seed=1, burn=300, discount=0.9).observation.mean((0, 1))
    exact = problem.env.ratio(policy, visits, 0.9) * visits
    np.testing.assert_allclose(sampled, exact / exact.sum(), atol=0.01)
    assert exact.sum() < 0.99  # terminals took the rest


def test_target_policies_move_away_from_the_behaviour() -> None:
    problem = make_problem("corridors")
    states = jnp.asarray(RNG.uniform(-1, 1, (16, 2)), jnp.float32)
    logged, moved = problem.logging()(states), problem.policy(2.0)(states)
    np.testing.assert_allclose(moved.mean - logged.mean, 2.0 * np.exp(logged.log_std), rtol=1e-5)
    np.testing.assert_allclose(np.exp(moved.log_std), 0.5 * np.exp(logged.log_std), rtol=1e-5)


@pytest.mark.parametrize("decay", [False, True])
def test_the_truth_by_classifiers_is_the_log_ratio_of_the_two_laws(decay: bool) -> None:
    """N(½, 1) against N(0, 1): x/2 − 1/8. Two sets, two seeds each, all alike."""
    theirs = RNG.normal(size=(2, 20_000, 1)).astype(np.float32)
    ours = RNG.normal(0.5, 1.0, size=(2, 20_000, 1)).astype(np.float32)
    standard = Standard(jnp.zeros(1), jnp.ones(1))
    networks = classify((16,), 600, 512, decay, jnp.arange(2), jnp.asarray(ours), jnp.asarray(theirs), standard)
    x = jnp.linspace(-1.5, 2.0, 15)[:, None]
    found = jax.vmap(jax.vmap(lambda network: log_ratio(network, x)))(networks)
    np.testing.assert_allclose(found, np.broadcast_to(0.5 * x[:, 0] - 0.125, (2, 2, 15)), atol=0.15)


def test_unknown_problems_are_refused_by_name() -> None:
    with pytest.raises(SappError, match="corridors"):
        make_problem("maze")


def test_the_bench_runs_writes_and_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--small", "--problems", "corridors", "--shifts", "2", "--out", str(tmp_path)]
    main([*options, "--estimators", "occupancy"])
    assert "occupancy, mean model" in capsys.readouterr().out
    rows = load(tmp_path)
    assert {row.estimator for row in rows} == {f"occupancy{which}" for which in ("", ", half noise", ", mean model")}
    assert all(np.isfinite([row.spearman, row.weights, row.value_error, row.largest]).all() for row in rows)
    assert len((tmp_path / "state-ratios.csv").read_text().splitlines()) == 1 + len(rows)
    assert json.loads((tmp_path / "state-ratios.json").read_text())["scale"]["steps"] == SMALL.steps
    again = bench(["corridors"], ["occupancy"], [2.0], SMALL, tmp_path)  # nothing is left to do
    assert again == rows
    (found,) = tables(rows)
    assert found.markdown().count("\n| occupancy") == 3


def test_out_of_time_keeps_what_is_finished(tmp_path: Path) -> None:
    assert bench(["corridors"], ["occupancy"], [2.0], SMALL, tmp_path, limit=-1.0) == []


def test_the_truth_of_corridors_ranks_states_by_where_the_policy_goes() -> None:
    """Moved upwards by two standard deviations, π is more often than the data in the upper corridor."""
    scale = replace(SMALL, truth_copies=256, truth_steps=100, burn=200)
    at = ground(make_problem("corridors"), [2.0], scale)
    height = at.data.observation[at.rows, 1]
    log = at.truth[2.0].log_ratio
    assert log[height > 0.3].mean() > log[height < -0.3].mean() + 0.5
