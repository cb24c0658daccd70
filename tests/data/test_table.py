"""Columns of times, episodes and numbers: what is none is named by its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from value_logs import DATES, NAN, STEPS, log, read, refusal, with_

from sapp.core.errors import SappError
from sapp.data.table import Table


@pytest.mark.parametrize("missing", [None, "drop", "fill"])
@pytest.mark.parametrize(
    ("step", "found"),
    [
        (with_(STEPS, 2, NAN), "'step' is empty or NaN at row 2"),
        (with_(STEPS, 5, None), "'step' is empty or NaN at row 5"),
        (with_(STEPS, 6, float("inf")), "'step' is inf at row 6"),
        (np.array(with_(DATES, 2, np.datetime64("NaT"))).astype("datetime64[us]"), "'step' is empty or NaN at row 2"),
        # not a null in the file: the number that stands for NaT
        (
            pa.array(with_(list(range(8)), 3, np.iinfo(np.int64).min)).view(pa.timestamp("us")),
            "'step' is empty or NaN at row 3",
        ),
    ],
)
def test_times_that_are_none(tmp_path: Path, step: Any, found: str, missing: str | None) -> None:
    assert found in refusal(tmp_path, log(step=step), missing=missing)


@pytest.mark.parametrize("value", [NAN, None])
@pytest.mark.parametrize("missing", [None, "drop", "fill"])
def test_episodes_that_are_none(tmp_path: Path, value: float | None, missing: str | None) -> None:
    table = log(episode=pa.array(with_([0.0] * 4 + [1.0] * 4, 2, value), from_pandas=False))
    assert "'episode' is empty or NaN at row 2" in refusal(tmp_path, table, missing=missing)


def test_float_ids_and_times_without_holes_are_good(tmp_path: Path) -> None:
    data = read(tmp_path, log(episode=[0.0] * 4 + [1.0] * 4, step=STEPS))
    assert data.episode_lengths.tolist() == [4, 4]


@pytest.mark.parametrize("name", ["obs", "action", "reward"])
@pytest.mark.parametrize("first", ["-0.13", None])
def test_numbers_stored_as_text(tmp_path: Path, name: str, first: str | None) -> None:
    message = refusal(tmp_path, log(**{name: [first, *["-0.13"] * 7]}), missing="drop")
    row = 0 if first else 1
    assert f"column {name!r} holds numbers stored as text ('-0.13' at row {row})" in message
    assert "convert the column to numbers" in message


def test_times_stored_as_text(tmp_path: Path) -> None:
    days = [f"2024-01-0{day}T12:00:00" for day in (1, 2, 3, 4)] * 2
    assert "'step' holds dates stored as text ('2024-01-01T12:00:00' at row 0); convert the column to dates" in refusal(
        tmp_path, log(step=days)
    )
    assert "'step' holds numbers stored as text ('0' at row 0)" in refusal(tmp_path, log(step=list("01230123")))
    slip = refusal(tmp_path, log(step=with_(days, 5, "noon")))
    assert "'step' is 'noon' at row 5, not a number or a date" in slip


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        (["1,152.5", "2.5", "3.5"], "write numbers without marks between thousands"),
        (["1.152.500,5", "2.5", "3.5"], "write numbers without marks between thousands"),
        (["1,5", "2.5", "3.5"], "decimals are read with a point"),
        (["\u22121.5", "2.5", "3.5"], "write minus as a hyphen (-)"),
        (["50.0%", "2 %", "3.5 bar"], "write numbers without a unit"),
        (["-", "2.5", "3.5"], "most others are numbers: correct it, or leave the cell empty if the value is missing"),
        (["heart", "2.5", "3.5"], "the names of the columns stand there again"),
        (["l\x00\ufffd", "\x01", "\x02"], "it seems to hold packed bytes"),
        (["low", "high", "low"], "for a feature in words, give one_hot = ['heart'] (--map one_hot=heart)"),
    ],
)
def test_cells_that_are_no_numbers_come_with_their_own_cure(cells: list[str], advice: str) -> None:
    table = Table.of_arrays({"heart": np.array(cells, object)}, 3, "log")
    with pytest.raises(SappError) as caught:
        table.numbers("heart")
    assert f"column 'heart' is {cells[0]!r} at row 0, not a number; " in str(caught.value)
    assert advice in str(caught.value)


def test_ids_that_are_rounded_are_refused() -> None:
    table = Table.of_arrays({"eps_id": np.array([12345678901234567890.0, 12345678901234567891.0])}, 2, "log")
    with pytest.raises(SappError, match="'eps_id' holds numbers so large that neighbours are rounded to one"):
        table.identities("eps_id")


def test_what_is_whole_and_how_large_ids_may_be() -> None:
    columns = {
        "whole": np.array([0, 3, 7]), "flags": np.array([True, False, True]), "floats": np.array([0.0, 3.0, 7.0]),
        "gaps": np.array([0.0, NAN, 7.0]), "parts": np.array([0.5, NAN, 7.0]), "none": np.full(3, NAN),
        "wide": np.arange(6).reshape(3, 2), "tall": np.arange(3).reshape(3, 1),
        "words": np.array(["a", "b", "c"], object),
    }  # fmt: skip
    table = Table.of_arrays(columns, 3, "log")
    assert [name for name in columns if table.is_whole(name)] == ["whole", "flags", "gaps", "tall"]
    assert [name for name in columns if table.is_text(name)] == ["words"]
    assert table.identities("tall").tolist() == [0, 1, 2]
    assert table.times("tall").tolist() == [0, 1, 2]
    assert table.identities("words").tolist() == ["a", "b", "c"]
    ids = Table.of_arrays({"fine": np.array([0.0, 2.0**53 - 1]), "far": np.array([0.0, -(2.0**53)])}, 2, "log")
    assert ids.identities("fine").tolist() == [0.0, 2.0**53 - 1]
    with pytest.raises(SappError, match=r"rounded to one \(-9007199254740992\)"):
        ids.identities("far")
