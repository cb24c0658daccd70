from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, concatenate
from sapp.data.ledger import Kind


def build(observation: Any, terminal: Any, **options: Any) -> Dataset:
    """One-dimensional observations, zero actions, rewards 1, 2, 3, …"""
    rows = len(observation)
    options = {"last_step": "drop", **options}
    return Dataset.from_arrays(observation, np.zeros((rows, 1)), np.arange(1, rows + 1), terminal, **options)


def test_derived_quantities_by_hand(small: Dataset) -> None:
    assert (len(small), small.size, small.num_episodes) == (6, 6, 3)
    assert (small.observation_size, small.action_size) == (2, 3)
    assert small.episode_starts.tolist() == [0, 3, 5]
    assert small.episode_ends.tolist() == [2, 4, 5]
    assert small.episode_lengths.tolist() == [3, 2, 1]
    assert small.episode_returns.tolist() == [6, 9, 6]
    assert small.episode_returns.dtype == np.float64
    assert small.first.tolist() == [True, False, False, True, False, True]
    assert small.step.tolist() == [0, 1, 2, 0, 1, 0]
    assert small.step.dtype == np.int32
    np.testing.assert_array_equal(small.initial_observation, small.observation[[0, 3, 5]])
    np.testing.assert_allclose(small.observation_mean, small.observation.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(small.observation_std, small.observation.astype(np.float64).std(axis=0), rtol=1e-6)


def test_types_and_read_only(small: Dataset) -> None:
    for key in ("observation", "action", "reward", "next_observation", "action_low", "action_high"):
        assert getattr(small, key).dtype == np.float32
    for key in ("terminal", "timeout"):
        assert getattr(small, key).dtype == bool
    with pytest.raises(ValueError, match="read-only"):
        small.reward[0] = 3
    mine = np.zeros((1, 1), np.float32)
    Dataset(mine, mine, mine, mine, [True], [False])
    mine[0, 0] = 1  # the caller's array stays the caller's


def test_terminal_wins_over_timeout_and_the_end_is_an_end() -> None:
    data = build([0, 1, 2, 3], [0, 1, 0, 0], timeout=[0, 1, 0, 0], next_observation=[1, 2, 3, 4])
    assert data.terminal.tolist() == [False, True, False, False]
    assert data.timeout.tolist() == [False, False, False, True]


def test_the_constructor_itself_lets_a_terminal_win_over_a_timeout() -> None:
    column = np.zeros((4, 1))
    data = Dataset(column, column, np.zeros(4), column, [0, 1, 0, 1], [1, 1, 0, 1])
    assert data.terminal.tolist() == [False, True, False, True]
    assert data.timeout.tolist() == [True, False, False, False]
    open_ended = Dataset(column, column, np.zeros(4), column, [0, 1, 0, 0], [1, 0, 0, 0])
    assert open_ended.timeout.tolist() == [True, False, False, True]  # nothing goes on behind the last row


def test_standardised_observations_remember_their_units() -> None:
    path = np.array([[1.0, 5.0], [3.0, 5.0], [8.0, 5.0]])
    data = Dataset(path, np.zeros((3, 1)), np.zeros(3), path + 1.0, [0, 0, 1], np.zeros(3))
    found = data.standardised()
    mean, std = np.array([4.0, 5.0]), np.array([np.sqrt(26 / 3), 1.0])  # a constant stays at 0
    np.testing.assert_allclose(found.observation, (path - mean) / std, rtol=1e-6)
    np.testing.assert_allclose(found.next_observation, (path + 1.0 - mean) / std, rtol=1e-6)
    np.testing.assert_allclose(found.raw(found.observation), path, rtol=1e-6)
    assert found.standardised() is found


def test_returns_are_summed_in_double_precision() -> None:
    column = np.zeros((2, 1))
    data = Dataset(column, column, [2.0**24, 1.0], column, [0, 1], [0, 0])
    assert data.episode_returns.tolist() == [2.0**24 + 1.0]


def test_shapes_and_types_of_real_files() -> None:
    data = Dataset.from_arrays(
        np.arange(3, dtype=np.float64)[:, None],
        np.zeros(3, np.int64),
        np.ones((3, 1)),
        np.array([[0.0], [0.0], [1.0]]),
        next_observation=np.arange(1, 4),
        timeout=np.zeros(3, np.int8),
    )
    assert data.reward.shape == (3,)
    assert data.action.shape == (3, 1)
    assert data.terminal.tolist() == [False, False, True]
    assert data.next_observation[:, 0].tolist() == [1, 2, 3]


def test_no_successors_drops_the_last_row_of_a_timeout_and_keeps_terminals() -> None:
    # Episodes: 0-2 terminal, 3-5 timed out, 6 timed out at once, 7-8 cut short by the end.
    data = build(
        np.arange(9.0),
        [0, 0, 1, 0, 0, 0, 0, 0, 0],
        timeout=[0, 0, 0, 0, 0, 1, 1, 0, 0],
        extras={"row": np.arange(9)},
    )
    assert data.extras["row"].tolist() == [0, 1, 2, 3, 4, 7]
    assert data.observation[:, 0].tolist() == [0, 1, 2, 3, 4, 7]
    assert data.next_observation[:, 0].tolist() == [1, 2, 2, 4, 5, 8]
    assert data.terminal.tolist() == [False, False, True, False, False, False]
    assert data.timeout.tolist() == [False, False, False, False, True, True]
    assert data.reward.tolist() == [1, 2, 3, 4, 5, 8]
    ledger = Ledger.of(data)
    assert (ledger.rows, ledger.dropped, len(data)) == (9, 3, 6)
    (entry,) = (each for each in ledger.entries if each.kind is Kind.DROPPED)
    assert (entry.rows, entry.episodes, entry.asked) == (3, 3, True)
    assert entry.reward == pytest.approx((6 + 7 + 9) / 45)


def test_no_timeouts_with_a_step_limit() -> None:
    data = build(np.arange(8.0), [0, 0, 0, 0, 1, 0, 0, 0], next_observation=np.arange(1, 9.0), max_episode_steps=3)
    # The terminal on row 4 restarts the count.
    assert data.timeout.tolist() == [False, False, True, False, False, False, False, True]
    assert data.episode_lengths.tolist() == [3, 2, 3]


def test_a_terminal_at_the_step_limit_stays_terminal() -> None:
    data = build(np.arange(3.0), [0, 0, 1], next_observation=np.arange(1, 4.0), max_episode_steps=3)
    assert data.terminal.tolist() == [False, False, True]
    assert not data.timeout.any()


def test_no_timeouts_inferred_from_a_jump() -> None:
    data = build([0, 1, 2, 10, 11], [0, 0, 0, 0, 0], next_observation=[1, 2, 3, 11.0000001, 12])
    assert data.timeout.tolist() == [False, False, True, False, True]
    assert any("inferred from: next_observation" in line for line in Ledger.of(data).lines(Kind.READ))


def test_tolerance_of_the_jump_is_relative_for_large_values() -> None:
    options: dict[str, Any] = {"next_observation": [1e4 + 0.05, 1e4 + 1]}
    assert build([1e4, 1e4], [0, 0], **options).num_episodes == 1
    assert build([1e4, 1e4], [0, 0], tolerance=1e-6, **options).num_episodes == 2


def test_nothing_tells_of_timeouts() -> None:
    data = build(np.arange(5.0), [0, 1, 0, 0, 0])
    assert data.episode_lengths.tolist() == [2, 2]
    assert data.timeout.tolist() == [False, False, False, True]


def test_episode_ids_mark_boundaries() -> None:
    data = build(np.arange(4.0), [0, 0, 0, 1], next_observation=np.arange(1, 5.0), episode=["a", "a", "b", "b"])
    assert data.timeout.tolist() == [False, True, False, False]


def test_actions_a_hair_outside_are_clipped() -> None:
    data = Dataset.from_arrays([[0.0]], [[1.000009]], [0.0], [True])
    assert data.action[0, 0] == 1


def test_scaled_action() -> None:
    data = Dataset.from_arrays(
        [[0.0]] * 3, [[0, -2], [5, 0], [10, 2]], [0] * 3, [0, 0, 1], action_low=[0, -2], action_high=[10, 2]
    )
    assert data.scaled_action().tolist() == [[-1, -1], [0, 0], [1, 1]]


def test_scaled_action_of_the_usual_range_is_untouched(small: Dataset) -> None:
    assert small.scaled_action() is small.action


def test_fingerprint_follows_the_data_alone(small: Dataset) -> None:
    assert replace(small, name="other", extras={}, provenance={}).fingerprint == small.fingerprint
    for key in ("observation", "action", "reward", "next_observation"):
        changed = getattr(small, key).copy()
        changed.flat[0] = 0.5
        assert replace(small, **{key: changed}).fingerprint != small.fingerprint
    assert replace(small, terminal=[0, 0, 0, 0, 0, 1], timeout=[0, 0, 1, 0, 1, 0]).fingerprint != small.fingerprint
    assert replace(small, action_high=2.0).fingerprint != small.fingerprint


def test_fingerprint_is_the_same_on_every_machine() -> None:
    data = Dataset([[0.0], [1.0]], [[0.5], [-0.5]], [1.0, 2.0], [[1.0], [2.0]], [False, True], [False, False])
    parts = [
        b"observation(2, 1)" + struct.pack("<2f", 0, 1),
        b"action(2, 1)" + struct.pack("<2f", 0.5, -0.5),
        b"reward(2,)" + struct.pack("<2f", 1, 2),
        b"next_observation(2, 1)" + struct.pack("<2f", 1, 2),
        b"terminal(2,)" + b"\0\1",
        b"timeout(2,)" + b"\0\0",
        b"action_low(1,)" + struct.pack("<f", -1),
        b"action_high(1,)" + struct.pack("<f", 1),
    ]
    assert data.fingerprint == hashlib.sha256(b"".join(parts)).hexdigest()


def test_take_episodes(small: Dataset) -> None:
    first = small.take_episodes(2)
    assert first.episode_returns.tolist() == [6, 9]
    picked = small.take_episodes([2, 1], name="picked")
    assert picked.episode_returns.tolist() == [6, 9]
    np.testing.assert_array_equal(picked.observation, small.observation[[5, 3, 4]])
    np.testing.assert_array_equal(picked.extras["log_prob"], small.extras["log_prob"][[5, 3, 4]])
    assert picked.name == "picked"
    assert small.take_episodes(3).fingerprint == small.fingerprint


def test_concatenate_undoes_take_episodes(small: Dataset) -> None:
    parts = [small.take_episodes([i]) for i in range(3)]
    assert concatenate(parts).fingerprint == small.fingerprint
    assert concatenate(parts, name="all").name == "all"
    np.testing.assert_array_equal(concatenate(parts).extras["log_prob"], small.extras["log_prob"])


def test_concatenate_joins_the_accounts_of_the_parts_that_have_one(small: Dataset) -> None:
    assert "ledger" not in small.provenance
    account = Ledger(rows=9)
    account.say(Kind.DROPPED, "three rows were dropped", rows=3)
    loaded = replace(small, name="loaded", provenance={"ledger": account.to_json()})
    assert "ledger" not in concatenate([small, small]).provenance
    for parts in ([small, loaded], [loaded, small], [loaded, loaded]):
        joined = Ledger.of(concatenate(parts))
        assert joined.lines(Kind.DROPPED) == ["loaded: three rows were dropped"] * parts.count(loaded)
        assert (joined.rows, joined.dropped) == (sum(Ledger.of(part).rows for part in parts), 3 * parts.count(loaded))


def test_concatenate_keeps_only_shared_extras(small: Dataset) -> None:
    assert concatenate([small, replace(small, extras={})]).extras == {}


NAN = [[0.0], [np.nan], [0.0]]
GOOD: dict[str, Any] = {
    "observation": [[0.0], [1.0], [2.0]],
    "action": [[0.0], [0.0], [0.0]],
    "reward": [0.0, 0.0, 0.0],
    "terminal": [0, 0, 1],
    "source": "log.x",
}
BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nan observation": ({"observation": NAN}, ["observation", "nan", "row 1", "dimension 0"]),
    "infinite action": ({"action": [[0.0], [0.0], [np.inf]]}, ["action", "inf", "row 2"]),
    "nan reward": ({"reward": [0.0, np.nan, 0.0]}, ["reward", "row 1"]),
    "nan successor": ({"next_observation": NAN}, ["next_observation", "row 1"]),
    "too large for float32": ({"reward": [1e300, 0, 0]}, ["reward", "1e+300", "row 0"]),
    "action out of range": ({"action": [[0.0], [1.5], [0.0]]}, ["action", "1.5", "row 1", "dimension 0", "action_low"]),
    "wrong length": ({"reward": [0.0, 0.0]}, ["reward", "2 rows", "observation has 3", "same length"]),
    "wrong flag length": ({"timeout": [0, 0]}, ["timeout", "2 rows"]),
    "wrong extra length": ({"extras": {"qpos": [1, 2]}}, ["qpos", "2 rows"]),
    "flag of two": ({"terminal": [0, 2, 1]}, ["terminal", "row 1", "0 or 1"]),
    "flag of nan": ({"terminal": [0, np.nan, 1]}, ["terminal", "row 1"]),
    "rewards of two columns": ({"reward": np.zeros((3, 2))}, ["reward", "(3, 2)"]),
    "observation of three axes": ({"observation": np.zeros((3, 2, 2))}, ["observation", "(3, 2, 2)"]),
    "observation of no width": ({"observation": np.zeros((3, 0))}, ["observation", "width"]),
    "uneven widths": ({"observation": [[0.0], [1.0, 2.0], [2.0]]}, ["observation", "different widths"]),
    "text": ({"reward": ["a", "b", "c"]}, ["reward", "not numbers"]),
    "no rows": (
        {"observation": np.zeros((0, 1)), "action": np.zeros((0, 1)), "reward": [], "terminal": []},
        ["no transitions", "0 rows"],
    ),
    "successors of another width": ({"next_observation": np.zeros((3, 2))}, ["next_observation", "2 wide", "1"]),
    "bounds swapped": ({"action_low": 1, "action_high": -1}, ["action_low", "action_high", "dimension 0"]),
    "bounds of another width": ({"action_low": [-1, -1]}, ["action_low", "(2,)"]),
    "bounds infinite": ({"action_high": np.inf}, ["action_high", "not finite"]),
    "step limit of zero": ({"max_episode_steps": 0}, ["max_episode_steps", "it must be 1 to"]),
    "step limit within an episode": (
        {"episode": [0, 0, 0], "max_episode_steps": 2}, ["episode 0 goes on after its step 2 at row 1"],
    ),
    "episode goes on": ({"episode": [1, 1, 1], "terminal": [0, 1, 0]}, ["episode 1", "terminal", "row 1"]),
    "nothing left": ({"terminal": [0, 0, 0], "timeout": [1, 1, 1]}, ["no transitions left", "next_observation"]),
    "provenance not JSON": ({"provenance": {"x": {1}}}, ["provenance", "JSON"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case: str) -> None:
    change, words = BAD[case]
    arguments = {**GOOD, **change}
    with pytest.raises(SappError) as caught:
        Dataset.from_arrays(**arguments)
    message = str(caught.value)
    assert "\n" not in message
    for word in [*words, *(["log.x"] if "provenance" not in change else [])]:
        assert word in message


def test_constructor_checks_too() -> None:
    with pytest.raises(SappError, match="mine: reward is nan at row 0"):
        Dataset([[0.0]], [[0.0]], [np.nan], [[0.0]], [True], [False], name="mine")


def test_bad_choices_of_episodes_and_parts(small: Dataset) -> None:
    with pytest.raises(SappError, match="small: cannot take 4 episodes, choose 1 to 3"):
        small.take_episodes(4)
    with pytest.raises(SappError, match="small: no episode 7, choose from 0 to 2"):
        small.take_episodes([0, 7])
    with pytest.raises(SappError, match="no datasets"):
        concatenate([])
    with pytest.raises(SappError, match="environment is 'Small-v0' in small but 'Other-v0' in b"):
        concatenate([small, replace(small, environment="Other-v0", name="b")])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30), st.booleans())
def test_invariants_hold_for_any_flags(flags: list[tuple[bool, bool]], successors: bool) -> None:
    terminal, timeout = (np.array(each) for each in zip(*flags, strict=True))
    rows = len(flags)
    options = {"next_observation": np.arange(1.0, rows + 1)} if successors else {}
    # Without successors every time-out row goes: that leaves nothing if all rows are time-outs or a lone last row.
    ends = terminal | timeout
    if not successors and np.all((timeout | (np.arange(rows) == rows - 1)) & ~terminal):
        with pytest.raises(SappError, match="no transitions left"):
            build(np.arange(0.0, rows), terminal, timeout=timeout)
        return
    data = build(np.arange(0.0, rows), terminal, timeout=timeout, **options)
    assert data.num_episodes <= ends.sum() + 1
    assert not (data.terminal & data.timeout).any()
    assert data.terminal[-1] or data.timeout[-1]
    assert data.first[0]
    np.testing.assert_array_equal(np.append(data.first[1:], True), data.terminal | data.timeout)
    assert data.episode_lengths.sum() == data.size
    assert data.terminal.sum() == terminal.sum()
    # Observations are row numbers, so the successor of any row that is not terminal must be the next number.
    going = ~data.terminal
    np.testing.assert_array_equal(data.next_observation[going, 0], data.observation[going, 0] + 1)
    np.testing.assert_array_equal(data.step == 0, data.first)
