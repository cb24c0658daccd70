"""The study of arithmetic at toy size, and its figures recomputed from made-up rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import sapp
from sapp.envs.point import behaviour_dataset
from studies.arithmetic import arithmetic
from studies.arithmetic.arithmetic import Row, agreement, read_rows, rows_of, table, write_rows


def test_both_precisions_train_from_one_start_and_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sapp.save_npz(behaviour_dataset(20, seed=0), tmp_path / "point.npz")
    options = [
        "train", "--out", str(tmp_path / "run"), "--steps", "300", "--seeds", "1", "--hidden", "16,16",
        "--datasets", str(tmp_path / "point.npz"), "--precisions", "float32", "tf32", "--float32", "point",
    ]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["arithmetic", *options])
    arithmetic.main()
    rows = rows_of(tmp_path / "run")
    assert {row.precision for row in rows} == {"float32", "tf32"}
    assert len(rows) == 2 * 150
    exact, rounded = ([row for row in rows if row.precision == name] for name in ("float32", "tf32"))
    assert exact[0].value == pytest.approx(rounded[0].value, rel=1e-2, abs=1e-3)
    assert exact[-1].value != rounded[-1].value
    assert sum(row.score is not None for row in exact) == 6
    write_rows(rows, tmp_path / "rows.csv")
    again = read_rows(tmp_path / "rows.csv")
    assert [row.step for row in again] == [row.step for row in rows]
    assert "point" in table(again, "float32", "tf32")


def test_the_default_follows_from_the_committed_rows() -> None:
    """What a GPU takes by default: values within 1 % of TF32's, TD errors within 10 %, nobody leaves."""
    folder = Path(arithmetic.__file__).parent
    rows = read_rows(folder / "rows.csv")
    found = agreement(rows, "tf32", "mixed")
    assert {each.dataset for each in found} == set(arithmetic.DATASETS)
    for each in found:
        assert abs(each.value_difference) < 0.01
        assert abs(each.td_difference) < 0.1
        assert each.largest_value[1] < 1.01 * each.largest_value[0]
    assert all(abs(each.td_difference) > 1.0 for each in agreement(rows, "tf32", "float16"))


def test_the_last_third_is_compared() -> None:
    rows = [
        Row("d", seed, precision, step, value * (1.0 if step > 200 else 9.0), td, None)
        for seed in (0, 1)
        for precision, value, td in (("float32", 100.0, 5.0), ("mixed", 101.0, 4.0))
        for step in (100, 200, 250, 300)
    ]
    (found,) = agreement(rows, "float32", "mixed")
    assert found.value_difference == pytest.approx(0.01)
    assert found.td_difference == pytest.approx(-0.2)
    assert found.largest_value == (100.0, 101.0)
