"""The table of the datasets: what it says of one, its way through a file, its place in the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.collect.benchmark.make import load, make
from sapp.collect.benchmark.recipes import recipe
from sapp.collect.benchmark.shipped import shipped
from sapp.core.errors import SappError
from sapp.data.benchmark_names import NAMES, parse
from sapp.report.marked_sections import sections_of
from studies.benchmark_data import table
from studies.benchmark_data.levels import d4rl_return
from studies.benchmark_data.shares import expected, measured

ROWS = Path(table.__file__).parent / "rows" / "datasets.csv"


def test_a_row_says_what_the_data_hold(tmp_path) -> None:
    make("hopper-medium-replay", transitions=3_000, root=tmp_path)
    data = load("hopper-medium-replay", root=tmp_path)
    found = table.rows(tmp_path)
    assert list(found) == ["hopper-medium-replay"]
    row = found["hopper-medium-replay"]
    assert row["return_mean"] == pytest.approx(data.episode_returns.mean())
    assert row["return_deviation"] == pytest.approx(data.episode_returns.std(), rel=1e-4)
    assert row["length_mean"] == pytest.approx(data.episode_lengths.mean())
    assert row["episodes"] == data.num_episodes
    assert row["recipe"] == 2
    table.write(tmp_path / "rows.csv", found)
    assert table.markdown(table.read(tmp_path / "rows.csv")) == table.markdown(found)
    assert table.markdown(found).count("not made") == 17


def test_a_line_of_the_table() -> None:
    row = dict.fromkeys(table.FIELDS, 0.0) | {
        "name": "hopper-medium-replay", "episodes": 100, "return_mean": 500.0, "return_deviation": 50.0,
        "length_mean": 200.0,
    }  # fmt: skip
    lines = table.markdown({"hopper-medium-replay": row}).splitlines()
    cells = lines[4 + NAMES.index("hopper-medium-replay")].strip("| ").split(" | ")
    assert cells == ["hopper-medium-replay", "500.0 ± 5.0", "467.3", "1.070", "yes", "100", "2,041", "200.0", "197.0",
                     "16.0", "15.0", "50", "511"]  # fmt: skip
    assert "published one: 1 of 1." in lines[0]
    lines = table.markdown({"hopper-full-replay": row, "hopper-expert": row}).splitlines()
    assert "| (estimate) |" in lines[4 + NAMES.index("hopper-full-replay")]
    assert "| no |" in lines[4 + NAMES.index("hopper-expert")]
    assert "published one: 0 of 1." in lines[0]


def test_near_is_within_a_tenth_of_d4rls_even_below_nought() -> None:
    assert table.is_near("hopper-expert", 3511.36 * 0.901)
    assert not table.is_near("hopper-expert", 3511.36 * 0.899)
    assert table.is_near("halfcheetah-random", -288.80 * 1.09)
    assert not table.is_near("halfcheetah-random", -288.80 * 1.11)


def test_the_committed_rows_keep_the_promise() -> None:
    """All eighteen at D4RL's size; mean return within 5 % of D4RL's, and what the recipes predict is what came out."""
    rows = table.read(ROWS)
    assert list(rows) == list(NAMES)
    for name, row in rows.items():
        which = parse(name)
        assert row["transitions"] == which.transitions
        assert row["return_mean"] == pytest.approx(d4rl_return(name), rel=0.05)
        _, training, entry = shipped(which.environment)
        policies = measured(which.environment, entry)
        predicted = expected(recipe(which, which.transitions, training), policies)
        assert row["return_mean"] == pytest.approx(predicted.return_mean, rel=0.04)
        assert row["episodes"] == pytest.approx(predicted.episodes, rel=0.04)


def test_the_table_has_a_place_in_the_page(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- made: eighteen by me -->\nold\n<!-- end of eighteen -->\nafter\n")
    table.main(["--read", str(ROWS), str(page)])
    assert sections_of(page) == {"eighteen": table.markdown(table.read(ROWS))}
    assert page.read_text().endswith("after\n")
    page.write_text("a,b\n1,2\n")
    with pytest.raises(SappError, match="not a table of datasets"):
        table.read(page)
    assert np.isfinite([d4rl_return(name) for name in NAMES]).all()
