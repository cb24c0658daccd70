"""CSV tables that survive being cut off anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp import SappError
from sapp.runs.metric_tables import Table, read

ROWS = [{"step": step, "member": f"a/{step % 2}", "loss": step / 3} for step in (10, 20, 30)]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table(tmp_path / "metrics.csv", ("step", "member", "loss", "extra"))
    table.rewind(0)
    table.append(ROWS)
    return table


def test_rows_come_back_with_nine_digits(table: Table) -> None:
    assert [float(row["loss"]) for row in read(table.path)] == pytest.approx([10 / 3, 20 / 3, 10], rel=5e-9)
    assert [row["extra"] for row in read(table.path)] == [""] * 3


def test_rewind_drops_what_came_after_the_checkpoint(table: Table) -> None:
    table.rewind(20)
    assert [row["step"] for row in read(table.path)] == ["10", "20"]


def test_rewind_drops_half_a_last_line_and_appending_continues(table: Table) -> None:
    whole = table.path.read_bytes()
    with open(table.path, "ab") as handle:
        handle.write(b"40,a/0,13.3")  # killed within a write: no newline yet
    assert len(read(table.path)) == 3
    table.rewind(1000)
    assert table.path.read_bytes() == whole
    table.append([{"step": 40, "member": "a/0", "loss": 1.0}])
    assert [row["step"] for row in read(table.path)] == ["10", "20", "30", "40"]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_rewind_after_a_cut_anywhere_restores_a_prefix_of_whole_rows(table: Table, cut: int) -> None:
    content = table.path.read_bytes()
    table.path.write_bytes(content[:-cut])
    table.rewind(1000)
    assert content.startswith(table.path.read_bytes())
    kept = content[: len(content) - cut].count(b"\n")
    assert len(read(table.path)) == max(0, kept - 1)


def test_a_table_cut_within_its_header_starts_over(table: Table) -> None:
    table.path.write_text("step,mem")
    table.rewind(1000)
    assert table.path.read_text() == "step,member,loss,extra\n"


def test_text_with_commas_survives(table: Table) -> None:
    table.append([{"step": 50, "member": 'sa-cql "b0, b1"/x/0', "loss": 0.5}])
    assert read(table.path)[-1]["member"] == 'sa-cql "b0, b1"/x/0'


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"gone\.csv: cannot read"):
        read(tmp_path / "gone.csv")
