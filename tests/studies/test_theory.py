"""The study of the theory: its rows are read as they were written, its pages say what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.theory.audit import audit
from sapp.theory.chain_tuned import METHODS, tuned_chain
from studies.theory.__main__ import CASES, main
from studies.theory.comparison import compare
from studies.theory.rows import (
    read_audit,
    read_chain,
    read_comparison,
    write_audit,
    write_chain,
    write_comparison,
)
from studies.theory.tables import ROWS


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = audit(["garnet", "arms"], ["tv"], [0.1], [0.9], ["paper"], mdps=4)
    write_audit(made, tmp_path / "counts.csv", tmp_path / "verdicts.csv")
    read = read_audit(tmp_path / "counts.csv", tmp_path / "verdicts.csv")
    for found, row in zip(read, made.rows(), strict=True):
        assert replace(found, worst=0.0, frequency=None) == replace(row, worst=0.0, frequency=None)
        assert found.worst == pytest.approx(row.worst, rel=1e-5, nan_ok=True)
        assert found.frequency == (None if row.frequency is None else pytest.approx(row.frequency, rel=1e-5))
    chain = {(20, "outwards", "knowing"): tuned_chain(4)}
    write_chain(tmp_path / "chain.csv", chain)
    (rows,) = read_chain(tmp_path / "chain.csv").values()
    assert [row.method for row in rows] == list(METHODS)
    assert rows[0].loss == pytest.approx(chain[20, "outwards", "knowing"][0].loss, rel=1e-5)
    compared = compare("sparse", mdps=6, policies=5)
    write_comparison(tmp_path / "comparison.csv", compared)
    assert [row.alpha for row in read_comparison(tmp_path / "comparison.csv")] == pytest.approx(
        [row.alpha for row in compared], rel=1e-5
    )


def test_what_the_pages_say_of_the_audit() -> None:
    rows = {row.statement.key: row for row in read_audit(ROWS / "audit.csv", ROWS / "verdicts.csv")}
    for key, row in rows.items():
        if row.statement.proved:
            assert row.verdict == "proved", key
            assert row.violated < 0.001, key
        else:
            assert row.verdict == "refuted", key
            assert row.counterexample, key
    for number in (1, 3, 5, 7):
        outside = {k: v for k, v in rows[f"theorem{number}-repaired"].within.items() if k not in ("plenty", "arms")}
        assert max(outside.values()) < 0.02, number
    for key in ("theorem2-repaired", "theorem6-repaired", "theorem6-log"):
        assert rows[key].informative < 0.0005, key
    assert rows["theorem6-log"].holds == 0
    assert rows["theorem2-repaired"].holds > 0  # in numbers that no loss reaches


def test_what_the_pages_say_of_the_chain() -> None:
    made = read_chain(ROWS / "chain.csv")
    assert set(made) == set(CASES)
    for (_, arms, behaviour), rows in made.items():
        difference = {row.method: row.difference for row in rows}
        if behaviour == "ignorant":
            assert difference["log"].low < 0 < difference["log"].high
        elif arms == "uniform":
            assert all(difference[name].high < 0 for name in ("w", "sqrt-w", "log"))
        else:
            (log,) = (row for row in rows if row.method == "log")
            assert log.difference.low > 0
            assert log.alpha == 0
            assert difference["log-one"].high < 0
            assert difference["log-held"].high < 0


def test_what_the_pages_say_of_random_problems() -> None:
    for row in read_comparison(ROWS / "comparison.csv"):
        if row.method == "sa":
            assert row.interval[0] <= 0 <= row.interval[1], row.family
        if row.family == "arms":
            assert (row.loss < 0.001) == (row.method != "none")


def test_the_command_says_what_it_takes() -> None:
    with pytest.raises(SappError, match="nothing given: use audit"):
        main([])
