"""Datasets on the device: what is drawn, how often, and what a target makes of terminals and time-outs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from sapp.algorithms.actor_critic import bootstrap_target
from sapp.data import Dataset
from sapp.training.device_data import DeviceData, spec_of


def episodes(lengths: list[int], ends: str, offset: float = 0.0, high: float = 1.0) -> Dataset:
    """Episodes that end in t(erminal) or o (time-out), a letter each; observations number the rows."""
    count = sum(lengths)
    last = np.cumsum(lengths) - 1
    terminal, timeout = np.zeros(count, bool), np.zeros(count, bool)
    for row, end in zip(last, ends, strict=True):
        (terminal if end == "t" else timeout)[row] = True
    row = offset + np.arange(count, dtype=np.float32)
    return Dataset(
        np.stack([row, -row], 1), np.linspace(-high, high, count)[:, None], row / 10, np.stack([row + 1, -row - 1], 1),
        terminal, timeout, action_low=np.float32(-high), action_high=np.float32(high), name=f"d{count}",
    )  # fmt: skip


SHORT, LONG = episodes([3, 2, 4], "tot"), episodes([10, 7, 20, 3], "oott", offset=100.0, high=2.0)


@pytest.fixture(scope="module")
def data() -> DeviceData:
    return DeviceData.of([SHORT, LONG])


@pytest.fixture(scope="module")
def draw(data: DeviceData):
    return jax.jit(lambda dataset, key: (data.draw(dataset, key, 4000), data.batch(dataset, key, 4000)))


def test_timeout_bootstraps_and_terminal_does_not(draw) -> None:
    """The whole path: episodes, upload, batch, target."""
    _, batch = draw(0, jax.random.PRNGKey(0))
    row = np.asarray(batch.observation[:, 0]).astype(int)
    target = np.asarray(bootstrap_target(batch, 100.0 + batch.next_observation[:, 0], 0.5))
    # rows 0-2 end in a terminal, 3-4 in a time-out, 5-8 in a terminal
    for r in range(9):
        expected = r / 10 if r in (2, 8) else r / 10 + 0.5 * (100.0 + r + 1)
        np.testing.assert_allclose(target[row == r], expected, rtol=1e-6)
    assert set(row) == set(range(9))


def test_a_row_that_is_both_counts_as_terminal() -> None:
    both = Dataset(np.zeros((2, 1)), np.zeros((2, 1)), [1.0, 1.0], np.zeros((2, 1)), [False, True], [False, True])
    np.testing.assert_array_equal(DeviceData.of([both]).terminal, [[0.0, 1.0]])


@pytest.mark.parametrize("number", [0, 1])
def test_padding_is_never_drawn(data: DeviceData, draw, number: int) -> None:
    """The shorter dataset is padded to the longer one's length; its padding is zeros, which row 0 alone has too."""
    truth = (SHORT, LONG)[number]
    assert data.observation.shape[1] == len(LONG)
    (rows, _), batch = draw(number, jax.random.PRNGKey(1))
    rows = np.asarray(rows)
    assert rows.min() == 0
    assert rows.max() == len(truth) - 1
    for name in ("observation", "reward", "next_observation", "terminal"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(truth, name)[rows].astype(np.float32))
    np.testing.assert_allclose(batch.action, truth.scaled_action()[rows])


@pytest.mark.parametrize("number", [0, 1])
def test_starts_are_episode_starts(draw, number: int) -> None:
    truth = (SHORT, LONG)[number]
    (_, starts), batch = draw(number, jax.random.PRNGKey(2))
    assert set(np.asarray(starts).tolist()) == set(truth.episode_starts.tolist())
    np.testing.assert_array_equal(batch.initial_observation, truth.observation[np.asarray(starts)])


@pytest.mark.parametrize("number", [0, 1])
def test_rows_and_starts_are_uniform(draw, number: int) -> None:
    truth = (SHORT, LONG)[number]
    drawn = [draw(number, jax.random.PRNGKey(seed))[0] for seed in range(10)]
    rows, starts = (np.concatenate([np.asarray(each[i]) for each in drawn]) for i in (0, 1))
    assert chisquare(np.bincount(rows, minlength=len(truth))).pvalue > 1e-3
    counts = np.bincount(starts, minlength=len(truth))[truth.episode_starts]
    assert counts.sum() == len(starts)
    assert chisquare(counts).pvalue > 1e-3
    together = np.zeros((len(truth), truth.num_episodes))  # which rows a draw has says nothing of its starts
    np.add.at(together, (rows, np.searchsorted(truth.episode_starts, starts)), 1)
    assert chi2_contingency(together).pvalue > 1e-3


def test_keys_decide_the_batch(draw) -> None:
    same, again, other = (np.asarray(draw(1, jax.random.PRNGKey(seed))[0][0]) for seed in (5, 5, 6))
    np.testing.assert_array_equal(same, again)
    assert np.mean(same == other) < 0.1


def test_actions_are_scaled_to_the_unit_box(data: DeviceData) -> None:
    np.testing.assert_allclose(data.action[1, : len(LONG), 0], LONG.action[:, 0] / 2.0, atol=1e-6)
    lopsided = Dataset(
        np.zeros((3, 1)), [[0.0, 10.0], [2.0, 20.0], [4.0, 30.0]], np.zeros(3), np.zeros((3, 1)), [0, 0, 1], [0, 0, 0],
        action_low=np.array([0.0, 10.0], np.float32), action_high=np.array([4.0, 30.0], np.float32),
    )  # fmt: skip
    np.testing.assert_allclose(DeviceData.of([lopsided]).action[0], [[-1, -1], [0, 0], [1, 1]])


def test_a_group_finds_its_datasets_by_their_number_in_the_run() -> None:
    data = DeviceData.of([SHORT, LONG], numbers=[2, 5], total=6)
    for number, truth in ((2, SHORT), (5, LONG)):
        batch = data.batch(jnp.int32(number), jax.random.PRNGKey(0), 50)
        assert set(np.asarray(batch.observation[:, 0]).tolist()) <= set(truth.observation[:, 0].tolist())


def test_spec_holds_the_datasets_statistics_with_a_floor_on_the_deviation() -> None:
    observation, none = np.c_[np.arange(4.0), np.full(4, 7.0)], np.zeros(4)
    spec = spec_of(Dataset(observation, none[:, None], none, observation, none, none))
    assert (spec.observation_size, spec.action_size) == (2, 1)
    np.testing.assert_allclose(spec.observation_mean, [1.5, 7.0])
    np.testing.assert_allclose(spec.observation_std, [np.std(np.arange(4)), 1e-3], rtol=1e-6)


def test_rows_know_when_they_are_in_their_episode_and_whether_it_was_cut_off_there() -> None:
    """Episodes of three rows (a terminal), two (a time-out) and one (the end of the data)."""
    terminal = np.array([0, 0, 1, 0, 0, 0], bool)
    timeout = np.array([0, 0, 0, 0, 1, 0], bool)
    observation = np.arange(7.0)[:, None]
    rows = Dataset(observation[:-1], np.zeros((6, 1)), np.zeros(6), observation[1:], terminal, timeout)
    batch = DeviceData.of([rows]).at(jnp.int32(0), jnp.arange(6), jnp.zeros(6, jnp.int32))
    np.testing.assert_array_equal(batch.elapsed, [0, 1, 2, 0, 1, 0])
    np.testing.assert_array_equal(batch.cut, [0, 0, 0, 0, 1, 1])
