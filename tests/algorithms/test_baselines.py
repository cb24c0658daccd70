"""Every baseline on problems with known answers: what it learns, cut in two, in company, and when a member diverges."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from baseline_cases import CASES, LEFT, MEAN, PHASE, RIGHT, SPREAD, Trained, by_case, population, run
from scipy import stats

from sapp import ConstantWeights, Phase, SappError, preset
from sapp.algorithms.registry import ALGORITHMS
from sapp.networks import ensemble

pytestmark = pytest.mark.usefixtures("long_training")
trained = by_case(lambda name: Trained(CASES[name]))
STRONG, WEAK, HILL, LOOP, BROKEN = range(5)
everyone = pytest.mark.parametrize("name", CASES)
PENALISED = [name for name, case in CASES.items() if case.weighted]


def assert_same_bits(a: Any, b: Any) -> None:
    for (path, x), (_, y) in zip(*(jax.tree_util.tree_flatten_with_path(t)[0] for t in (a, b)), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), jax.tree_util.keystr(path)


def take(tree: Any, *members: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[list(members)], tree)


@pytest.mark.parametrize("name", [name for name in CASES if name != "edac"])
def test_pessimistic_it_stays_with_the_logs(name: str) -> None:
    """Reward grows with the action everywhere, the logs stay near −0.5 (left) and 0.3 (right)."""
    found = trained(name)
    assert found.mode(STRONG, LEFT) == pytest.approx(MEAN["left"], abs=3 * SPREAD)
    assert found.mode(STRONG, RIGHT) == pytest.approx(MEAN["right"], abs=3 * SPREAD)


@pytest.mark.parametrize("name", ["td3bc", "rebrac", "bear", "uwac", "brac", "edac"])
def test_bold_it_leaves_the_logs_for_reward(name: str) -> None:
    found = trained(name)
    assert found.mode(WEAK, LEFT) > MEAN["left"] + 0.5
    assert found.mode(WEAK, RIGHT) > MEAN["right"] + 0.25


def test_bcq_moves_no_further_than_its_limit() -> None:
    found = trained("bcq")
    for place, mean in ((LEFT, MEAN["left"]), (RIGHT, MEAN["right"])):
        assert found.mode(WEAK, place) == pytest.approx(mean + 0.5, abs=3 * SPREAD)


def test_iql_tilts_the_behaviour_by_the_advantage() -> None:
    """r = a, a ~ N(m, s²): the clone weighted by exp(β·a) is N(m + β·s², s²); V is the mean reward at τ = ½."""
    found = trained("iql")
    for place, mean in ((LEFT, MEAN["left"]), (RIGHT, MEAN["right"])):
        assert found.mode(WEAK, place) == pytest.approx(mean + 20.0 * SPREAD**2, abs=0.04)
        value = found.base(WEAK).value.network(jnp.asarray(place)[None])[0, 0]
        assert float(value) == pytest.approx(mean, abs=0.03)
    np.testing.assert_allclose(np.exp(found.base(STRONG).actor.network.log_std), SPREAD, rtol=0.25)


def test_fisher_brc_flattens_its_offset_and_fits_the_behaviours_density() -> None:
    found = trained("fisher-brc")
    behaviour = found.base(STRONG).behaviour.network
    action = np.float32([[-0.55], [-0.5], [-0.45]])
    density = behaviour.log_prob(jnp.repeat(jnp.asarray(LEFT)[None], 3, 0), jnp.asarray(action))
    np.testing.assert_allclose(density, stats.norm.logpdf(action[:, 0], MEAN["left"], SPREAD), atol=0.6)
    where = jnp.asarray(LEFT)[None], jnp.asarray(np.linspace(-1, 1, 9, dtype=np.float32))[None, :, None]
    flat, free = (np.ptp(ensemble(found.base(i).offsets.network, *where), axis=-1).max() for i in (STRONG, WEAK))
    assert flat < 0.2 * free


@pytest.mark.parametrize("name", [name for name in CASES if name != "bc"])
def test_it_finds_the_top_of_the_hill(name: str) -> None:
    assert trained(name).mode(HILL, LEFT) == pytest.approx(0.4, abs=0.15)


@pytest.mark.parametrize("name", [name for name in CASES if name != "bc"])
def test_a_timed_out_loop_is_worth_the_infinite_sum(name: str) -> None:
    """r/(1−γ) = 2 everywhere: a time-out ends the recording, not the task."""
    found = trained(name)
    base = found.base(LOOP)
    action = jnp.asarray(np.linspace(-0.8, 0.8, 5), jnp.float32)[:, None]
    place = jnp.repeat(jnp.asarray(LEFT)[None], 5, 0)
    place = base.normaliser(place) if hasattr(base, "normaliser") else place
    critics = base.offsets if name == "fisher-brc" else base.critics
    values = ensemble(critics.network, place, action)
    if name == "fisher-brc":
        values = values + base.behaviour.network.log_prob(place, action)
    np.testing.assert_allclose(values, 2.0, atol=0.25)


@everyone
def test_a_member_that_diverges_stops_and_the_others_do_not_notice(name: str) -> None:
    found = trained(name)
    alive = np.asarray(found.learner.alive)
    if name != "bc":  # which does not look at rewards
        assert alive.tolist() == [True, True, True, True, False]
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found.base(BROKEN)))


@everyone
def test_a_cut_run_and_other_neighbours_give_the_same_bits(name: str) -> None:
    found = trained(name)
    whole, _ = run(found.population, 41)
    cut, _ = run(found.population, 17, 24)
    assert_same_bits(whole, cut)
    changes = [found.changes[i] for i in (0, 1)] + [(found.case.strong, "loop")] * 3
    company = population(found.case.algorithm, changes)
    other, _ = run(company, 41)
    assert_same_bits(take(whole.base, 0, 1), take(other.base, 0, 1))


@pytest.mark.parametrize("name", PENALISED)
def test_weights_of_one_change_no_bit(name: str, usual_fusion: None) -> None:
    found = trained(name)
    chosen = population(dataclasses.replace(found.case.algorithm, weights=ConstantWeights(1.0)), found.changes)
    learner = found.population.init()
    whole, _ = run(found.population, 30)
    learner, _ = chosen.run(learner, chosen.empty_sums(PHASE), PHASE, 30)
    assert_same_bits(whole.base, learner.base)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.weighted])
def test_algorithms_without_a_penalty_refuse_weights(name: str) -> None:
    with pytest.raises(SappError, match="takes no state weights"):
        dataclasses.replace(CASES[name].algorithm, weights=ConstantWeights(1.0))


WEIGHTED = ("cql", "td3bc", "rebrac", "bear", "brac", "brac-p", "brac-mmd", "fisher-brc", "uwac", "edac")


@pytest.mark.parametrize("name", WEIGHTED)
def test_every_penalised_preset_takes_ratio_weights(name: str) -> None:
    """Traced, not run: DualDICE draws from each policy and each penalty is multiplied with its weights."""
    chosen = population(preset(name, "hopper-medium-v2", "dualdice"), [({}, "narrow"), ({}, "hill")])
    logged = chosen.empty_sums(Phase("joint", 0)).values
    assert {"loss", "ratio/zeta_mean", "weights/mean"} <= set(logged)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in (*WEIGHTED, "discrete-cql")])
def test_every_other_preset_refuses_them(name: str) -> None:
    with pytest.raises(SappError, match="takes no state weights"):
        preset(name, weights="dualdice")
