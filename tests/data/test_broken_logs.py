"""Logs as they come: each kind of trouble gives one clear line (exit 2) or a stated repair, by the real command."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.core.errors import SappError
from sapp.data import load

HEADER = "batch,minute,temperature,pressure,valve,yield,tripped"
COLUMNS = """episode = "batch"
time = "minute"
observation = ["temperature", "pressure"]
action = "valve"
reward = "yield"
terminal = "tripped"
action_low = 0
action_high = 1
"""


def rows(batches: int = 3, minutes: int = 4) -> list[list[str]]:
    """A good log: small numbers, the last minute of each batch is a terminal."""
    return [
        [str(b), str(t), f"{0.1 * t + b}", f"{1 - 0.2 * t}", f"{0.25 * (t % 4)}", f"{t}", str(int(t == minutes - 1))]
        for b in range(batches)
        for t in range(minutes)
    ]


def put(row: int, column: int, text: str):
    def change(table: list[list[str]]) -> list[list[str]]:
        table[row][column] = text
        return table

    return change


def check(folder: Path, table: list[list[str]], toml: str = COLUMNS, header: str = HEADER, mark: str = ",") -> int:
    lines = [header.replace(",", mark), *(mark.join(row) for row in table)]
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "map.toml").write_text(toml)
    return main(["data", "check", str(folder / "log.csv"), "--columns", str(folder / "map.toml")])


ERRORS = {
    "an empty value": (put(1, 2, ""), COLUMNS, "'temperature' is empty or NaN at row 1"),
    "NaN": (put(2, 3, "nan"), COLUMNS, "'pressure' is"),
    "infinity": (put(2, 3, "inf"), COLUMNS, "'pressure' is inf at row 2"),
    "a word in a number's place": (put(5, 2, "hot"), COLUMNS, "'temperature' is 'hot' at row 5, not a number"),
    "a decimal comma": (put(5, 2, '"1,5"'), COLUMNS, "'temperature' is '1,5' at row 5"),
    "an action out of bounds": (put(3, 4, "7"), COLUMNS, "outside [0, 1]"),
    "a flag of 2": (put(3, 6, "2"), COLUMNS, "flags must be 0 or 1"),
    "a flag in other words": (put(3, 6, "perhaps"), COLUMNS, "'tripped' is 'perhaps' at row 3"),
    "an end in the middle": (put(1, 6, "1"), COLUMNS, "goes on after its terminal"),
    "an empty episode id": (put(4, 0, ""), COLUMNS, "'batch' is empty or NaN at row 4"),
    "an empty time": (put(4, 1, ""), COLUMNS, "'minute' is empty or NaN at row 4"),
    "a time in words": (put(4, 1, "noon"), COLUMNS, "'minute' is 'noon' at row 4, not a number or a date"),
    "two rows for one minute": (put(1, 1, "0"), COLUMNS, "has minute 0 twice"),
    "an empty reward at an end": (put(3, 5, ""), COLUMNS, "'yield' is empty or NaN at row 3"),
    "no rows": (lambda table: [], COLUMNS, "0 rows below the header"),
    "a column that is not there": (lambda t: t, COLUMNS.replace('"pressure"', '"presure"'), "did you mean 'pressure'?"),
    "an unknown key": (lambda t: t, COLUMNS + 'colour = "red"\n', "unknown key 'colour'"),
    "broken TOML": (lambda t: t, COLUMNS + "gaps = split\n", "not valid TOML"),
    "an unknown choice": (lambda t: t, COLUMNS + 'gaps = "mend"\n', "gaps is 'mend'; use one of split, cut"),
    "gaps that may not be": (lambda t: t[:1] + t[2:], COLUMNS + 'gaps = "error"\n', "gaps in time"),
    "an unlisted action": (
        put(2, 4, "wide"), COLUMNS.replace("action_low = 0\naction_high = 1", 'action_labels = ["0.0", "0.25"]'),
        "which action_labels does not list",
    ),
    "choices that are not whole": (
        lambda t: t, COLUMNS.replace("action_low = 0\naction_high = 1", 'action_kind = "discrete"'), "whole numbers",
    ),
    "an action that cannot be filled": (put(1, 4, ""), COLUMNS + 'missing = "fill"\n', "cannot be filled"),
    "nothing left": (
        lambda t: [[*row[:2], "", *row[3:]] if row[1] == "0" else row for row in t], COLUMNS + 'missing = "drop"\n',
        "every episode has empty values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ERRORS)
def test_trouble_that_is_refused(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, toml, message = ERRORS[kind]
    assert check(tmp_path, change(rows()), toml) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


REPAIRS = {
    "missing steps": (lambda t: t[:2] + t[3:], 'gaps = "split"\n', "1 gaps in time in 1 episodes", 4),
    "missing steps, cut": (lambda t: t[:2] + t[3:], 'gaps = "cut"\n', "what follows a gap was cut off, 1 rows", 3),
    "rows out of order": (lambda t: t[::-1], "", "rows were sorted by batch and minute", 3),
    "exact copies": (lambda t: t[:2] + t[1:], "", "1 exact copies of rows were left out", 3),
    "flags in words": (
        lambda t: [[*row[:6], "yes" if row[6] == "1" else "no"] for row in t], "", "yes and true were taken as 1", 3,
    ),
    "rewards at the end only": (
        lambda t: [[*row[:5], row[5] if row[6] == "1" else "", row[6]] for row in t], "",
        "empty rewards before the ends", 3,
    ),
    "empty values, filled": (put(1, 2, ""), 'missing = "fill"\n', "1 empty values of observation were filled", 3),
    "empty values, dropped": (put(1, 2, ""), 'missing = "drop"\n', "1 of 3 episodes were dropped", 2),
    "unscaled features": (
        lambda t: [[*row[:3], str(1e5 + 1e3 * float(row[3])), *row[4:]] for row in t], "",
        "features are standardised to mean 0 and deviation 1", 3,
    ),
    "no bounds": (
        lambda t: [[*row[:4], str(5 * float(row[4])), *row[5:]] for row in t], None, "taken from the data", 3,
    ),
    "unfinished episodes": (lambda t: [[*row[:6], "0"] for row in t], 'last_step = "drop"\n', "3 rows were dropped", 3),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPAIRS)
def test_trouble_that_is_mended_and_said(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, more, message, episodes = REPAIRS[kind]
    toml = COLUMNS + more if more is not None else COLUMNS.replace("action_low = 0\naction_high = 1\n", "")
    assert check(tmp_path, change(rows()), toml) == 0
    captured = capsys.readouterr()
    assert message in captured.out
    assert f"{episodes} episodes" in captured.out
    assert captured.err == ""


def test_other_separators_are_read_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, rows(), mark=";") == 0
    assert "separated by semicolons" in capsys.readouterr().out


def test_actions_in_words_are_numbered_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"0.0": "shut", "0.25": "ajar", "0.5": "half", "0.75": "wide"}
    table = [[*row[:4], words[row[4]], *row[5:]] for row in rows()]
    assert check(tmp_path, table, COLUMNS.replace("action_low = 0\naction_high = 1\n", "")) == 0
    assert "ajar = 0, half = 1, shut = 2, wide = 3" in capsys.readouterr().out
    data = load(tmp_path / "log.csv", columns=tmp_path / "map.toml")
    assert data.num_actions == 4
    assert data.action_labels == ("ajar", "half", "shut", "wide")
    assert data.action[:4].tolist() == [2, 0, 1, 3]


def test_labels_keep_their_given_order(tmp_path: Path) -> None:
    words = {"0.0": "shut", "0.25": "ajar", "0.5": "half", "0.75": "wide"}
    table = [[*row[:4], words[row[4]], *row[5:]] for row in rows()]
    labels = 'action_labels = ["shut", "ajar", "half", "wide", "torn off"]\n'
    assert check(tmp_path, table, COLUMNS.replace("action_low = 0\naction_high = 1\n", labels)) == 0
    data = load(tmp_path / "log.csv", columns=tmp_path / "map.toml")
    assert data.num_actions == 5
    assert data.action[:4].tolist() == [0, 1, 2, 3]


def test_what_is_left_as_it_is_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = [[*row[:3], "4", *row[4:5], "1", row[6]] for row in rows()]
    assert check(tmp_path, table) == 0
    page = capsys.readouterr().out
    assert "feature 1 never changes" in page
    assert "the reward is 1 in every row" in page
    assert "only 3 episodes" in page


def test_a_damaged_file_and_an_empty_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    for name, message in (
        ("empty.csv", "0 bytes"),
        ("cut.parquet", "cannot be read as parquet"),
        ("no.csv", "no such"),
    ):
        assert main(["data", "check", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err


def test_gaps_split_and_cut_by_value(tmp_path: Path) -> None:
    table = rows(1, 6)
    del table[2]
    check(tmp_path, table, COLUMNS + 'gaps = "split"\n')
    split = load(tmp_path / "log.csv", columns=tmp_path / "map.toml")
    # minutes 0 1 | 3 4 5: the last row before the gap has no successor and is dropped, minute 5 is a terminal
    assert split.episode_lengths.tolist() == [1, 3]
    check(tmp_path, table, COLUMNS + 'gaps = "keep"\n')
    kept = load(tmp_path / "log.csv", columns=tmp_path / "map.toml")
    assert kept.episode_lengths.tolist() == [5]


def test_standardised_features_remember_their_units(tmp_path: Path) -> None:
    table = [[*row[:3], str(1e5 + 1e3 * float(row[3])), *row[4:]] for row in rows()]
    check(tmp_path, table)
    data = load(tmp_path / "log.csv", columns=tmp_path / "map.toml")
    np.testing.assert_allclose(data.observation.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(data.observation.std(0), 1, atol=1e-4)
    np.testing.assert_allclose(data.raw(data.observation)[:, 1], [float(row[3]) for row in table], rtol=1e-5)


@pytest.mark.parametrize(
    ("cells", "says"),
    [(["0.25", "x", "0.5"], "holds 'x' among numbers such as 0.25"), (["0.25", "['a']", "1"], "among numbers")],
)
def test_a_stray_word_makes_no_discrete_actions_of_numbers(tmp_path: Path, cells: list[str], says: str) -> None:
    rows = [f"{i},{cell},1,{int(i == 2)}" for i, cell in enumerate(cells)]
    (tmp_path / "log.csv").write_text("\n".join(["observation,action,reward,terminal", *rows]) + "\n")
    with pytest.raises(SappError, match=re.escape(says)):
        load(tmp_path / "log.csv")
    assert load(tmp_path / "log.csv", columns={"action_kind": "discrete"}).num_actions == 3
