"""Actions of logs: numbers, codes, words and combinations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_sources import frame, in_form, parquet, steps
from value_logs import log, read, refusal, write

from sapp.core.errors import SappError
from sapp.data import Ledger, load, load_vectors
from sapp.data.check import check
from sapp.data.ledger import Kind
from sapp.data.log_actions import infer_bounds


@pytest.mark.parametrize("values", [[0, 1, None, 1, 0, 1, 1, 0], ["a", "b", None, "b", "a", "b", "b", "a"]])
def test_choices_with_holes(tmp_path: Path, values: list[Any]) -> None:
    assert "'action' is empty or NaN at row 2" in refusal(tmp_path, log(action=values), action_kind="discrete")
    data = read(tmp_path, log(action=values), action_kind="discrete", missing="drop")
    assert data.num_actions == 2
    assert data.action.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("values", "found", "labels", "numbers"),
    [
        ([-1, 0, 1, -1] * 2, "'action' is -1 at row 0", ["-1", "0", "1"], [0, 1, 2, 0]),
        ([0.0, 2.0, -1.0, 0.0] * 2, "'action' is -1.0 at row 2", ["-1", "0", "2"], [1, 2, 0, 1]),
        ([0.5, 1.0, 0.5, 1.0] * 2, "'action' is 0.5 at row 0", ["0.5", "1"], [0, 1, 0, 1]),
    ],
)
def test_codes_that_are_no_numbers_from_zero(
    tmp_path: Path, values: list[float], found: str, labels: list[str], numbers: list[int]
) -> None:
    message = refusal(tmp_path, log(action=values), action_kind="discrete")
    assert f"{found}, but discrete actions are whole numbers from 0" in message
    assert "action_labels = [" + ", ".join(f'"{label}"' for label in labels) + "]" in message
    data = read(tmp_path, log(action=values), action_labels=labels)
    assert data.action[:4].tolist() == numbers
    assert data.action_labels == tuple(labels)


def test_many_codes_are_not_listed(tmp_path: Path) -> None:
    values = [-1.0 - i for i in range(24)]
    table = {key: list(value) * 3 for key, value in log().items()} | {"step": list(range(12)) * 2, "action": values}
    table |= {"episode": [0] * 12 + [1] * 12, "terminal": [0] * 24}
    message = refusal(tmp_path, table, action_kind="discrete")
    assert "set all 24 codes as action_labels" in message
    assert len(message) < 500


MAPPING = """
episode = "episode"
time = "step"
observation = "obs"
action = "action"
terminal = "terminal"
action_kind = "discrete"
"""


@pytest.mark.parametrize("number", [int, float])
def test_codes_with_holes_between_are_said(tmp_path: Path, number: type) -> None:
    path = write(tmp_path / "log.parquet", log(action=[number(code) for code in (7, 12, 17, 7, 7, 12, 17, 7)]))
    (tmp_path / "map.toml").write_text(MAPPING)
    page = " ".join(check(path, tmp_path / "map.toml").findings)
    assert (
        "actions count from 0 to 17, but 15 of these 18 are never taken (0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 13, 14, "
        '15, 16) (certain): if the numbers are codes, set action_labels = ["7", "12", "17"] in a column mapping'
    ) in page
    # what it advises works, and leaves nothing to say
    (tmp_path / "map.toml").write_text(MAPPING + 'action_labels = ["7", "12", "17"]\n')
    found = check(path, tmp_path / "map.toml")
    assert "3 discrete actions" in found.summary
    assert not any("never taken" in line for line in found.findings)


def test_labels_that_never_occur_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", log(action=list("abababab")))
    (tmp_path / "map.toml").write_text(MAPPING + 'action_labels = ["a", "b", "c"]\n')
    page = " ".join(check(path, tmp_path / "map.toml").findings)
    assert "never taken: c (certain): nothing can be learned of these actions" in page


@pytest.mark.parametrize("kind", [np.int64, np.uint8, bool])
@pytest.mark.parametrize("form", ["dictionary", "npz", "parquet", "arrow"])
def test_whole_numbers_are_choices_unless_said_otherwise(tmp_path: Path, kind: type, form: str) -> None:
    source = in_form(steps(action=np.array([0, 1] * 6).astype(kind)), form, tmp_path)
    assert load_vectors(source).num_actions == 2
    assert "taken as 2 discrete actions" in " ".join(Ledger.of(load_vectors(source)).lines(Kind.READ))
    assert load_vectors(source, columns={"action_kind": "continuous"}).num_actions is None
    assert load_vectors(source, action_low=0, action_high=1).action_high.tolist() == [1]


def test_whole_numbers_that_are_no_choices_are_asked_about() -> None:
    with pytest.raises(SappError, match=r"whole numbers from -3 to 9000: give action_kind = 'continuous'"):
        load(steps(action=np.array([-3, 9000] * 6)))


def test_codes_of_numbers_and_words_are_choices(tmp_path: Path) -> None:
    data = load_vectors(parquet(tmp_path / "log.parquet", steps(action=["1", "2", "stop"] * 4)))
    assert data.action_labels == ("1", "2", "stop")
    assert data.action[:3].tolist() == [0, 1, 2]


def test_several_columns_of_choices_are_one_choice(tmp_path: Path) -> None:
    table = steps(**{"heater": ["low", "high"] * 6, "valve": [0, 0, 1] * 4})
    del table["action"]
    data = load_vectors(parquet(tmp_path / "log.parquet", table), columns={"action": ["heater", "valve"]})
    assert data.action_labels == (
        "heater=high, valve=0", "heater=high, valve=1", "heater=low, valve=0", "heater=low, valve=1",
    )  # fmt: skip
    assert data.action[:6].tolist() == [2, 0, 3, 0, 2, 1]


def test_outliers_do_not_become_the_bounds(tmp_path: Path) -> None:
    table = frame([500, 500])
    table["terminal"] = table.pop("last")
    table["action"][17] = 8000
    path = parquet(tmp_path / "log.parquet", table)
    with pytest.raises(SappError, match=r"to 8000, but 99 % of it lies within .* would become the bounds"):
        load(path)
    data = load_vectors(path, columns={"action_low": -1, "action_high": 1, "clip_actions": True})
    assert data.action[17] == 1
    assert "actions of 1 rows lay beyond the bounds and were clipped" in Ledger.of(data).lines()


@pytest.mark.parametrize(
    ("rows", "beyond", "refused"),
    [(1000, 1e-5, False), (1000, 3e-5, True), (1000, 1e39, False), (100, 3e-5, False)],
)
def test_a_row_beside_actions_of_one_size_is_an_outlier_from_some_size_and_some_rows_on(
    rows: int, beyond: float, refused: bool
) -> None:
    """The last dimension is 5 but in one row: its range counts as a millionth, of which twenty are too many.

    One of a hundred rows is half of what lies beyond 99 %; a number that float32 cannot hold is refused elsewhere.
    """
    action = np.column_stack([np.linspace(-1, 1, rows), np.full(rows, 5.0)])
    action[0, 1] = min(5.0 + beyond, 1e39)
    if refused:
        with pytest.raises(SappError, match="action dimension 1 goes from 5 to 5"):
            infer_bounds(action, "log", False)
        return
    low, high, outside = infer_bounds(action, "log", False)
    assert low.tolist() == [-1, 5]
    np.testing.assert_allclose(high, [1, np.inf if beyond > 1e38 else 5 + beyond], rtol=1e-6)
    assert outside == [1]


def test_bounds_of_an_action_that_never_changes_are_one_either_way_and_small_ones_stay() -> None:
    action = np.column_stack([np.full(9, 5.0), np.full(9, 0.5), np.linspace(-0.2, 3, 9), np.linspace(-2, 0.1, 9)])
    low, high, outside = infer_bounds(action, "log", False)
    np.testing.assert_allclose(low, [4, -1, -0.2, -2])
    np.testing.assert_allclose(high, [6, 1, 3, 0.1])
    assert outside == [0, 2, 3]
