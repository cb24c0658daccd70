"""Values that stand for something else are found; those of healthy logs are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sapp.data import Dataset
from sapp.data.value_findings import bare_ends, codes_of_missing, names_alike, never_filled

ENDS = np.arange(240) % 12 == 11


def logs(**changes: Any) -> Dataset:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "observation": rng.normal(300, 20, (240, 3)), "action": rng.uniform(-1, 1, (240, 1)),
        "reward": rng.normal(size=240), "next_observation": rng.normal(300, 20, (240, 3)),
        "terminal": ENDS, "timeout": np.zeros(240, bool),
    }  # fmt: skip
    return Dataset(**{**arrays, **changes})


def test_healthy_logs_hold_none() -> None:
    data = logs()
    for question in (codes_of_missing, never_filled, bare_ends, names_alike):
        assert not list(question(data))


@pytest.mark.parametrize(("code", "rows", "sure"), [(-999, 1, "likely"), (-999, 40, "likely"), (0, 5, "possible")])
@pytest.mark.parametrize("standardised", [True, False])
def test_codes_for_missing_values(code: float, rows: int, sure: str, standardised: bool) -> None:
    observation = logs().observation.copy()
    observation[7 : 7 + rows, 1] = code
    data = logs(observation=observation)
    (found,) = codes_of_missing(data.standardised() if standardised else data)
    assert (found.what.split(", far")[0], found.sure) == (
        f"feature 1 is {code} in {rows} row{'s' if rows > 1 else ''}", sure
    )  # fmt: skip


def test_a_sensor_at_its_limit_and_a_switch_are_no_codes() -> None:
    observation = logs().observation.copy()
    observation[:, 0] = np.minimum(observation[:, 0], 310)
    observation[:, 1] = np.arange(240) % 7 == 0
    assert not list(codes_of_missing(logs(observation=observation)))


def test_rows_never_filled() -> None:
    data = logs()
    zero = {key: getattr(data, key).copy() for key in ("observation", "next_observation", "action", "reward")}
    for value in zero.values():
        value[200:] = 0
    flags = {"terminal": ENDS & (np.arange(240) < 200), "timeout": np.arange(240) == 239}
    (found,) = never_filled(replace(data, **zero, **flags))
    assert found.what == "the last 40 rows are zero throughout"


def test_last_rows_without_action_and_reward() -> None:
    data = logs()
    action, reward = data.action.copy(), data.reward.copy()
    action[ENDS], reward[ENDS] = 0, 0
    (found,) = bare_ends(logs(action=action, reward=reward))
    assert found.what == "action and reward are 0 in the last rows of all 20 episodes that end"
    assert not list(bare_ends(logs(action=np.zeros((240, 1)), reward=np.zeros(240))))


def test_names_that_are_alike() -> None:
    labels = ("Hold", "down", "hold", "hold ")
    data = logs(action=np.arange(240) % 4, num_actions=4, action_labels=labels)
    (found,) = names_alike(data)
    assert found.what == "actions differ in capitals or blanks only: 'Hold', 'hold', 'hold '"
