"""Regenerated against genuine data: the tests find differences where there are some, and none where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from d4rl_files import sample

from sapp.core.errors import SappError
from sapp.data.dataset import Dataset
from studies.benchmark_data import comparison
from studies.benchmark_data.two_sample import ks_distance


def episodes(count: int, seed: int, shift: float = 0.0) -> Dataset:
    """Episodes whose states wander about an episode's own mean: far from independent."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(20, 60, count)
    states = np.concatenate([rng.normal(shift + rng.normal(size=2), 0.3, (n, 2)) for n in lengths])
    ends = np.zeros(len(states), bool)
    ends[np.cumsum(lengths) - 1] = True
    return Dataset(states, np.zeros((len(states), 1)), np.ones(len(states)), states, ends, np.zeros_like(ends))


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(comparison, "EXCHANGES", 299)
    monkeypatch.setattr(comparison, "POOL", 60)


def test_alike_is_not_told_apart_and_p_values_are_level() -> None:
    """With whole episodes exchanged, p-values of equal distributions are spread evenly; single states would reject."""
    found = []
    for seed in range(20):
        one, other = episodes(6, seed), episodes(50, 1000 + seed)
        found.append((comparison.ks_tests(one, other, 0)[3], comparison.energy_test(one, other, 0)[2]))
    values = np.asarray(found)
    assert (values < 0.05).mean(0).max() <= 0.2
    assert (np.abs(values.mean(0) - 0.5) < 0.2).all()


def test_a_shift_is_found() -> None:
    one, other = episodes(6, 0, shift=2.0), episodes(50, 1)
    ks, null, p, any_p = comparison.ks_tests(one, other, 0)
    assert min(ks) > max(null)
    assert max(p) < 0.05
    assert any_p < 0.02
    energy, quantile, energy_p = comparison.energy_test(one, other, 0)
    assert energy > quantile
    assert energy_p < 0.02


def test_distances_on_the_grid_are_the_true_ones() -> None:
    one, other = episodes(6, 0, shift=0.5), episodes(50, 1)
    np.testing.assert_allclose(
        comparison.ks_tests(one, other, 0)[0], ks_distance(one.observation, other.observation), atol=0.02
    )


def test_a_genuine_file_against_its_own_policy(genuine, tmp_path) -> None:
    found, data, made = comparison.compare(genuine / "d4rl" / "hopper_medium-v2.hdf5", transitions=15_000)
    np.testing.assert_allclose(found.genuine_returns, [1465, 1413], atol=1)
    assert found.genuine_lengths == [470, 441]
    assert len(made) >= 15_000
    assert made.num_episodes == found.regenerated.episodes
    assert found.regenerated.return_mean == pytest.approx(made.episode_returns.mean())
    assert found.difference[1] < 0 < found.difference[2]  # the published mean is within the interval
    assert all(0.01 < rank < 0.99 for rank in (*found.return_ranks, *found.length_ranks))
    assert found.ks_any_p > 0.01
    assert found.energy_p > 0.01
    assert data.num_episodes == 2
    files = comparison.save([(found, data, made)], tmp_path / "out")
    assert [file.name for file in files] == ["comparison.json", "comparison.md", "comparison.png"]
    assert "hopper-medium" in files[1].read_text()


def test_a_file_of_ours_against_its_own_policy(d4rl_folder, tmp_path) -> None:
    """What made the file makes its like again; D4RL's published returns are of another policy, and it is seen."""
    file = sample("regenerated", d4rl_folder, "hopper_medium-v2")
    found, data, made = comparison.compare(file, transitions=8_000)
    assert found.genuine_returns == pytest.approx(data.episode_returns, abs=0.01)
    assert made.num_episodes == found.regenerated.episodes
    assert found.regenerated.return_mean == pytest.approx(made.episode_returns.mean())
    gap = found.regenerated.return_mean - found.published_return[0]
    assert found.difference == pytest.approx((gap, gap - (found.difference[2] - gap), found.difference[2]))
    files = comparison.save([(found, data, made)], tmp_path / "out")
    assert [file.name for file in files] == ["comparison.json", "comparison.md", "comparison.png"]
    assert "hopper-medium" in files[1].read_text()


def test_a_file_without_a_policy_is_refused(d4rl_folder) -> None:
    with pytest.raises(SappError, match="no metadata/policy"):
        comparison.compare(sample("regenerated", d4rl_folder, "hopper_random-v1"), transitions=100)
