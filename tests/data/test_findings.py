"""Each question finds what it asks about in logs made to have it, and nothing in logs that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sapp.collect.given_vectors import record
from sapp.data import Dataset, load_vectors
from sapp.data.findings import Sure, _densities, _ends_at_one_length, _few, _named, _running_sums, _successors, findings
from sapp.envs import make
from sapp.envs.data_check import compare
from sapp.tabular.estimator_logs import draw_logs
from sapp.tabular.tasks import ward


def walk(episodes: int = 40, length: int = 50, **change: Any) -> Dataset:
    """Slow random walks; every third ends its task early, the others stop at the limit."""
    rng = np.random.default_rng(1)
    lengths = [length - 7 - i % 11 if i % 3 == 0 else length for i in range(episodes)]
    rows = sum(lengths)
    paths = [np.cumsum(rng.normal(size=(n + 1, 3)) * 0.1, axis=0) for n in lengths]
    last = np.concatenate([np.arange(n) == n - 1 for n in lengths])
    terminal = last & np.repeat([i % 3 == 0 for i in range(episodes)], lengths)
    arrays: dict[str, Any] = {
        "observation": np.concatenate([path[:-1] for path in paths]),
        "next_observation": np.concatenate([path[1:] for path in paths]),
        "action": rng.uniform(-0.9, 0.9, (rows, 2)), "reward": rng.normal(size=rows), "terminal": terminal,
        "timeout": last & ~terminal,
    }  # fmt: skip
    for key, value in change.items():
        arrays[key] = value(arrays) if callable(value) else value
    kept = {key: value for key, value in arrays.items() if value is not None}
    return load_vectors(kept, last_step=None if "next_observation" in kept else "drop")


def said(data: Dataset) -> str:
    return " | ".join(str(each) for each in findings(data))


def test_good_logs_give_rise_to_nothing() -> None:
    assert said(walk()) == ""


def after_reset(arrays: dict[str, Any]) -> np.ndarray:
    ends = np.flatnonzero(arrays["terminal"] | arrays["timeout"])
    after = arrays["next_observation"].copy()
    after[ends[:-1]] = arrays["observation"][ends[:-1] + 1]
    return after


def test_successors_of_an_environment_that_resets_itself() -> None:
    (found,) = findings(walk(next_observation=after_reset))
    assert found.what == "at 26 of 26 time-outs the next observation is the first of the next episode"
    assert found.sure is Sure.LIKELY
    assert "leave next_observation out" in found.do


def test_auto_reset_without_time_outs_is_one_long_episode() -> None:
    data = walk(next_observation=after_reset, terminal=lambda a: np.zeros(len(a["reward"]), bool), timeout=None)
    assert data.num_episodes == 1
    assert "are one episode, in which observations jump" in said(data)


def unmarked(arrays: dict[str, Any]) -> np.ndarray:
    return np.concatenate([arrays["observation"][1:], arrays["observation"][:1]])


@pytest.mark.parametrize("after", [unmarked, None])
def test_time_outs_that_nothing_tells_of(after: Any) -> None:
    paths = 3.0 * np.repeat(np.random.default_rng(0).normal(size=(40, 3)), [43 - i % 11 if i % 3 == 0 else 50
                            for i in range(40)], axis=0)  # fmt: skip
    data = walk(observation=lambda a: a["observation"] + paths, next_observation=after, timeout=None)
    assert data.num_episodes == 14
    assert "observations jump within episodes whenever 50 steps have passed, 26 times (likely)" in said(data)
    assert "max_episode_steps = 50" in said(data)
    rows = {key: getattr(data, key) for key in ("observation", "action", "reward", "terminal")}
    cured = load_vectors(rows, max_episode_steps=50, last_step="drop")
    assert cured.num_episodes == 40
    assert "jump" not in said(cured)
    one = walk(observation=lambda a: a["observation"] + paths, next_observation=after, timeout=None,
               terminal=lambda a: np.zeros(len(a["reward"]), bool))  # fmt: skip
    assert "observations jump" in said(one)


def test_flags_the_other_way_round() -> None:
    (found,) = (
        each for each in findings(walk(terminal=lambda a: ~a["terminal"], timeout=None)) if "ends in" in each.what
    )
    assert found.what == "the task ends in 99% of rows"
    assert "one_row_episodes" in found.do


@pytest.mark.parametrize("after", [True, False])
def test_flags_that_come_a_row_late(after: bool) -> None:
    def late(arrays: dict[str, Any]) -> np.ndarray:
        return np.append(False, arrays["terminal"][:-1] | arrays["timeout"][:-1])

    away = 3.0 * np.repeat(np.random.default_rng(0).normal(size=(40, 3)), [43 - i % 11 if i % 3 == 0 else 50
                           for i in range(40)], axis=0)  # fmt: skip
    change: dict[str, Any] = {} if after else {"next_observation": None}
    if after:
        change["next_observation"] = lambda a: a["next_observation"] + away
    data = walk(terminal=late, timeout=None, observation=lambda a: a["observation"] + away, **change)
    assert "39 ends seem to be marked on the first row of the next episode (likely)" in said(data)


def test_rewards_that_are_sums_so_far() -> None:
    good = walk()
    so_far = np.concatenate(
        [
            np.cumsum(1 + 0.1 * good.reward[a : b + 1])
            for a, b in zip(good.episode_starts, good.episode_ends, strict=True)
        ]
    )
    assert "rewards rise from row to row in every episode, from" in said(walk(reward=so_far))
    assert "rewards fall from row to row in every episode, from" in said(walk(reward=-so_far))


def test_rows_that_were_shuffled() -> None:
    order = np.random.default_rng(0).permutation(1838)
    good = walk()
    rows = {
        key: getattr(good, key)[order] for key in ("observation", "next_observation", "action", "reward", "terminal")
    }
    assert len(order) == good.size
    assert "1,837 episodes for 1,838 rows: the next observation is hardly ever that of the next row (likely)" in said(
        load_vectors(rows)
    )
    ids = np.repeat(np.arange(40), good.episode_lengths)
    inside = np.lexsort((np.random.default_rng(0).random(good.size), ids))
    rows = {key: getattr(good, key)[inside] for key in ("observation", "next_observation", "action", "reward")}
    found = said(load_vectors({**rows, "episode": ids, "terminal": np.zeros(good.size)}))
    assert "of steps within episodes the next observation is not that of the next row (likely)" in found


def test_bounds_that_a_few_rows_have_set() -> None:
    def wild(arrays: dict[str, Any]) -> np.ndarray:
        out = arrays["action"].copy()
        out[::20, 1] = 8_000
        return out

    good = walk()
    rows = {key: getattr(good, key) for key in ("observation", "next_observation", "reward", "terminal", "timeout")}
    data = load_vectors({**rows, "action": wild({"action": good.action})}, action_low=-1, action_high=[1, 8_000])
    (found,) = findings(data)
    assert found.what.startswith("action dimension 1 may go from -1 to 8000, but most of it lies within -0.778 to")
    assert found.sure is Sure.LIKELY
    doses = np.where(np.arange(good.size)[:, None] % 10 == 0, good.action, 0.0)  # mostly none
    assert findings(load_vectors({**rows, "action": doses})) == []


def test_discrete_actions_as_ones_and_zeros() -> None:
    (found,) = findings(walk(action=lambda a: np.eye(3)[np.arange(len(a["reward"])) % 3]))
    assert found.what == "every action is a single 1 among 3 zeros"


def test_ends_at_one_length() -> None:
    data = walk(terminal=lambda a: a["terminal"] | a["timeout"], timeout=None)
    (found,) = findings(data)
    assert found.what == "26 of 40 terminal episodes are exactly 50 steps long, the longest there is"
    assert found.sure is Sure.LIKELY
    assert "max_episode_steps = 50" in found.do


@pytest.mark.parametrize(
    ("density", "words"),
    [
        (lambda rows: np.linspace(0.1, 0.9, rows), "between 0 and 1 in every row"),
        (lambda rows: np.full(rows, -2.0), "log_prob is -2 in every row"),
        (lambda rows: np.linspace(-3, 0.9, rows), ""),
        (lambda rows: np.linspace(0.01, 4, rows), "never below 0, and as near to it as 0.01 (possible)"),
        (lambda rows: np.linspace(0.1, 10, rows), "never below 0, and as near to it as 0.1 (possible)"),
        (lambda rows: np.linspace(0.3, 4, rows), ""),
        (lambda rows: np.linspace(0.0, 10, rows), ""),
        (lambda rows: np.linspace(2, 4, rows), ""),
    ],
)
def test_densities_that_are_none(density: Any, words: str) -> None:
    page = said(walk(log_prob=lambda a: density(len(a["reward"]))))
    assert words in page
    assert bool(words) == bool(page)


def test_the_reward_among_the_features() -> None:
    def leaky(arrays: dict[str, Any]) -> np.ndarray:
        return np.column_stack([arrays["observation"], 3 - 2 * arrays["reward"]])

    data = walk(observation=leaky, next_observation=lambda a: a["observation"] + 0.1)
    (found,) = (each for each in findings(data) if "reward of its own row" in each.what)
    assert found.what.startswith("feature 3 is")


def test_heavy_tails() -> None:
    def spiked(key: str, value: float) -> Any:
        def change(arrays: dict[str, Any]) -> np.ndarray:
            out = arrays[key].copy()
            out.flat[100] = value
            return out

        return change

    assert "a few rewards reach 1e+04" in said(walk(reward=spiked("reward", 1e4)))
    assert "feature 1 has outliers" in said(walk(observation=spiked("observation", -999.0)))


def test_constant_features_and_copies() -> None:
    data = walk(observation=lambda a: a["observation"] * [1, 0, 1])
    assert "feature 1 never changes in these logs (certain): they tell nothing about it: leave it out" in said(data)
    half = walk(30)
    double = load_vectors(
        {key: np.concatenate([getattr(half, key)] * 2)
         for key in ("observation", "action", "reward", "next_observation", "terminal", "timeout")}
    )  # fmt: skip
    assert "rows repeat another row's state, action and reward" in said(double)


def test_rows_out_of_the_order_of_time() -> None:
    rng = np.random.default_rng(0)

    def mixed(arrays: dict[str, Any]) -> np.ndarray:
        return rng.permutation(arrays["observation"])

    assert "no nearer to the next one than to any other" in said(walk(observation=mixed, next_observation=None))


def test_few_episodes() -> None:
    assert "only 9 episodes (certain)" in said(walk(9))


def ward_logs(episodes: int, states: int = 30) -> Dataset:
    task = ward(np.random.default_rng(0), states=states, actions=12)
    return draw_logs(task.mdp, task.behaviour, episodes, 50, 0, task.ends, task.paying)


@pytest.mark.parametrize(
    ("env", "steps", "words"),
    [
        ("Pendulum-v1", 6_400, []),
        ("CartPole-v1", 2_000, ["the reward is 1 in every row (certain): what differs is how long episodes last"]),
        ("MountainCar-v0", 6_400, ["nothing can be learned from it where no episode ends"]),
        ("hopper", 2_000, []),
        ("point", 2_000, []),
    ],
)
def test_healthy_logs_of_known_environments_give_rise_to_nothing_else(env: str, steps: int, words: list[str]) -> None:
    """Uniform actions, whose density is the same in every row."""
    data = record(env, steps=steps)
    assert "log_prob" in data.extras
    found = [str(each) for each in findings(data)]
    assert len(found) == len(words)
    for line, word in zip(found, words, strict=True):
        assert word in line
    assert compare(data, make(env)) == []


def test_logs_of_numbered_states_are_spoken_of_as_states() -> None:
    few = ward_logs(40, states=200)
    unseen = np.flatnonzero((few.observation.max(0) == 0) & (few.next_observation.max(0) == 0))
    assert 0 < len(unseen) < 201
    assert f"{len(unseen)} of 202 states are never visited ({unseen[0]}, {unseen[1]}" in said(few)
    assert "never changes" not in said(few)
    many = said(ward_logs(4_000))
    assert "never visited" not in many
    assert "taken in fewer than 1 % of steps" not in many
    assert "repeat" not in many


def test_a_density_of_other_bounds_is_none() -> None:
    assert said(walk(log_prob=lambda a: np.full(len(a["reward"]), -np.log(4.0)))) == ""  # [-1, 1] twice
    assert "these bounds give another" in said(walk(log_prob=lambda a: np.full(len(a["reward"]), -2.0)))


def few(lengths: list[int], reward: np.ndarray, **extras: np.ndarray) -> Dataset:
    """Episodes that stop unfinished, of one feature and one action."""
    rows, last = np.arange(sum(lengths), dtype=float)[:, None], np.zeros(sum(lengths), bool)
    last[np.cumsum(lengths) - 1] = True
    return Dataset(rows, np.zeros_like(rows), reward, rows + 1, np.zeros_like(last), last, extras=extras)


@pytest.mark.parametrize(
    ("rows", "density", "heard"),
    [(9, (0.5, 0.9), 0), (10, (0.5, 0.9), 1), (10, (0.5, 1.0), 1), (10, (0.0, 0.9), 0), (99, (0.1, 9), 0),
     (100, (0.1, 9), 1)],
)  # fmt: skip
def test_densities_are_asked_about_from_some_rows_on(rows: int, density: tuple[float, float], heard: int) -> None:
    data = few([rows], np.zeros(rows), log_prob=np.linspace(*density, rows))
    assert len(list(_densities(data))) == heard


@pytest.mark.parametrize(
    ("lengths", "start", "heard"),
    [
        ([34, 34, 35], 1.0, 1),  # 100 rows have one after them in their episode
        ([34, 34, 34], 1.0, 0),
        ([51, 51], 1.0, 0),
        ([34, 34, 35], 20.0, 0),  # from 20 to 54: less than three times as far
        ([34, 34, 35], 16.0, 1),
    ],
)
def test_sums_so_far_are_asked_about_from_some_rows_on(lengths: list[int], start: float, heard: int) -> None:
    rising = np.concatenate([start + np.arange(length) for length in lengths])
    assert len(list(_running_sums(few(lengths, rising)))) == heard
    assert len(list(_running_sums(few(lengths, -rising)))) == heard


@pytest.mark.parametrize(("different", "heard"), [(20, 1), (19, 0)])
def test_rewards_of_a_few_numbers_are_no_sums_so_far(different: int, heard: int) -> None:
    lengths = [different + 1] * 12
    reward = np.tile(np.append(1.0 + np.arange(different), 200.0), 12)
    assert len(list(_running_sums(few(lengths, reward)))) == heard


@pytest.mark.parametrize(
    ("at_longest", "others", "length", "sure"),
    [
        (5, 5, 10, Sure.LIKELY), (5, 6, 10, Sure.POSSIBLE), (5, 20, 10, Sure.POSSIBLE), (5, 21, 10, None),
        (4, 4, 10, None), (5, 5, 9, None),
    ],
)  # fmt: skip
def test_how_many_ends_at_one_length_are_doubtful(at_longest: int, others: int, length: int, sure: Sure | None) -> None:
    lengths = [length] * at_longest + [length - 1] * others
    data = few(lengths, np.zeros(sum(lengths)))
    ended = Dataset(data.observation, data.action, data.reward, data.next_observation, data.timeout, data.terminal)
    assert [each.sure for each in _ends_at_one_length(ended)] == ([] if sure is None else [sure])
    assert list(_ends_at_one_length(data)) == []


@pytest.mark.parametrize(
    ("off", "rows", "sure"),
    [(2, 100, None), (3, 100, Sure.POSSIBLE), (20, 100, Sure.POSSIBLE), (21, 100, Sure.LIKELY), (21, 48, None)],
)
def test_how_many_successors_may_be_others(off: int, rows: int, sure: Sure | None) -> None:
    """A hundred rows have one after them in their episode; of fewer than fifty rows nothing is asked."""
    data = few([rows + 1], np.zeros(rows + 1))
    after = data.next_observation.copy()
    after[:off] += 1
    changed = Dataset(data.observation, data.action, data.reward, after, data.terminal, data.timeout)
    assert [each.sure for each in _successors(changed)] == ([] if sure is None else [sure])


@pytest.mark.parametrize(("episodes", "heard"), [(29, 1), (30, 0)])
def test_how_many_episodes_are_few(episodes: int, heard: int) -> None:
    assert len(list(_few(few([2] * episodes, np.zeros(2 * episodes))))) == heard


def test_actions_are_named_by_their_labels_where_they_have_some_and_the_rest_is_counted() -> None:
    choices = {"obs": np.arange(6.0), "reward": np.arange(6.0), "done": [0, 1] * 3}
    words, numbers = (load_vectors({**choices, "action": action}) for action in (list("abcabc"), [0, 1, 2] * 2))
    assert _named(words, [0, 2], 2) == "a, c"
    assert _named(numbers, [0, 2], 2) == "0, 2"
    assert _named(words, [1], 3) == "b and 2 more"
