import d4rl_files
import h5py
import numpy as np
import pytest
from d4rl_files import SOURCES, sample
from scipy import integrate

from sapp.core.errors import SappError
from sapp.envs.policies import (
    ScaledPolicy,
    TanhGaussianPolicy,
    UniformPolicy,
    load_policy,
    policy_from_arrays,
)

NAMES = ["hopper", "halfcheetah", "walker2d"]


def small_policy(seed=0):
    rng = np.random.default_rng(seed)

    def pair(out, into):
        return rng.normal(size=(out, into)).astype(np.float32), rng.normal(size=out).astype(np.float32)

    return TanhGaussianPolicy((pair(8, 3), pair(8, 8)), pair(1, 8), (np.zeros((1, 8), np.float32), np.array([-0.5])))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", NAMES)
def test_log_densities_are_those_stored(d4rl_folder, source, name):
    path = sample(source, d4rl_folder, f"{name}_medium-v2")
    policy = load_policy(path)
    with h5py.File(path) as file:
        observation, action = file["observations"][()], file["actions"][()]
        stored = file["infos/action_log_probs"][()]
    found = policy.log_prob(observation, action)
    inside = np.abs(action).max(-1) < 0.999  # near ±1 a float32 action no longer determines its tanh's argument
    assert inside.mean() > 0.2
    assert np.corrcoef(found[inside], stored[inside])[0, 1] > 0.9999999
    assert np.median(np.abs(found - stored)) < 1e-4
    assert np.abs(found - stored)[inside].max() < 2e-3


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", NAMES)
def test_hdf5_and_npz_hold_the_same_policy(d4rl_folder, source, name, tmp_path):
    other = load_policy(sample(source, d4rl_folder, f"{name}_medium-v2"))
    np.savez(tmp_path / "own.npz", **other.arrays())
    kept = d4rl_files.SAMPLES / "policies" / f"d4rl_{name}-medium-v2.npz"
    one = load_policy(kept if source == "genuine" else tmp_path / "own.npz")
    observation = np.random.default_rng(0).normal(size=(5, one.observation_size))
    np.testing.assert_array_equal(one.mode(observation), other.mode(observation))


def test_dope_policies_load(genuine):
    files = sorted((genuine / "dope").glob("*.npz"))
    assert len(files) == 3
    for path in files:
        assert load_policy(path).action_size in (3, 6)


def test_samples_have_the_density_they_claim():
    policy, rng = small_policy(), np.random.default_rng(0)
    observation = np.array([[0.3, -0.2, 0.1]])
    grid = np.linspace(-1, 1, 20_001)
    density = np.exp(policy.log_prob(np.repeat(observation, len(grid), 0), grid[:, None]))
    mass = integrate.cumulative_trapezoid(density, grid, initial=0)
    assert mass[-1] == pytest.approx(1, abs=2e-3)
    action, log_prob = policy.sample(np.repeat(observation, 20_000, 0), rng)
    np.testing.assert_allclose(log_prob, policy.log_prob(observation, action), atol=1e-2)
    for bound in (-0.5, 0.2, 0.9):
        assert (action < bound).mean() == pytest.approx(np.interp(bound, grid, mass), abs=0.015)


def test_uniform_actions_fill_the_box():
    policy = UniformPolicy(np.array([-1.0, 0.0]), np.array([1.0, 4.0]))
    action, log_prob = policy.sample(np.zeros((4000, 3)), np.random.default_rng(0))
    np.testing.assert_allclose(log_prob, -np.log(8), rtol=1e-6)
    np.testing.assert_allclose(action.mean(0), [0, 2], atol=0.1)
    assert action.min(0) == pytest.approx([-1, 0], abs=0.01)
    assert action.max(0) == pytest.approx([1, 4], abs=0.01)


def test_bad_files_are_named(d4rl_folder, tmp_path):
    with pytest.raises(SappError, match="no such policy"):
        load_policy(tmp_path / "absent.npz")
    np.savez(tmp_path / "empty.npz", w_mean=np.zeros((1, 2)))
    with pytest.raises(SappError, match=r"empty\.npz: no array"):
        load_policy(tmp_path / "empty.npz")
    np.savez(tmp_path / "object.npz", w0=np.array([{}], object))
    with pytest.raises(SappError, match=r"object\.npz"):
        load_policy(tmp_path / "object.npz")
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(SappError, match=r"text\.npz"):
        load_policy(tmp_path / "text.npz")
    with pytest.raises(SappError, match="metadata/policy"):
        load_policy(sample("regenerated", d4rl_folder, "hopper_random-v1"))
    arrays = load_policy(sample("regenerated", d4rl_folder, "hopper_medium-v2")).arrays()
    np.savez(tmp_path / "turned.npz", **{**arrays, "w0": arrays["w0"].T})
    with pytest.raises(SappError, match=r"\(out, in\)"):
        load_policy(tmp_path / "turned.npz")
    np.savez(tmp_path / "nan.npz", **{**arrays, "b1": np.full(256, np.nan)})
    with pytest.raises(SappError, match="not finite"):
        load_policy(tmp_path / "nan.npz")


def test_a_scaled_policy_has_the_density_of_its_own_units():
    """Over ±4 the same action is a quarter as dense as over ±1."""
    policy, observation = small_policy(), np.random.default_rng(1).normal(size=(6, 3))
    wide = ScaledPolicy(policy, -4 * np.ones(1), 4 * np.ones(1))
    plain, density = policy.sample(observation, np.random.default_rng(2))
    action, scaled_density = wide.sample(observation, np.random.default_rng(2))
    np.testing.assert_allclose(action, 4 * plain, rtol=1e-6)
    np.testing.assert_allclose(scaled_density, density - np.log(4), rtol=1e-5)


def test_a_policy_as_arrays_and_back():
    policy = small_policy()
    again = policy_from_arrays("memory", policy.arrays())
    observation = np.random.default_rng(1).normal(size=(6, 3))
    np.testing.assert_array_equal(again.mode(observation), policy.mode(observation))
    assert list(policy.arrays()) == ["w0", "b0", "w1", "b1", "w_mean", "b_mean", "w_logstd", "b_logstd"]
