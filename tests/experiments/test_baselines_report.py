"""The tables of baselines are those that the committed rows make."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp import SappError
from sapp.experiments.baselines_report import baseline_rows, panels, state_aware_rows, tables

PAGE = Path(__file__).parents[2] / "docs" / "results" / "baselines.md"
ROWS = PAGE.parent / "baselines"
FOLDERS = ROWS, ROWS / "hopper"


def cells(row: str) -> list[str]:
    return [cell.strip().replace("-", "−") for cell in row.strip("|").split("|")]


def test_every_score_on_the_page_is_what_its_rows_say() -> None:
    """Final scores with their intervals and seeds, and state-aware variants minus their controls."""
    text = PAGE.read_text(encoding="utf-8")
    last = {}
    for folder in FOLDERS:
        for dataset, row in baseline_rows(folder):
            name, _, final, each, *_ = cells(row)
            last[dataset, name] = f"{final}: {each}"
    assert len(last) == 24
    for found in last.values():
        assert found in text
    for dataset, row in state_aware_rows(ROWS):
        _, _, final, difference = cells(row)
        assert final in text, dataset
        if difference:
            assert (difference if difference.startswith("−") else f"+{difference}") in text, (dataset, row)


def test_curves_are_the_means_of_seeds_along_training() -> None:
    found = panels(FOLDERS)
    assert list(found) == [f"{name}-medium-v2" for name in ("halfcheetah", "hopper", "walker2d")]
    edac = found["halfcheetah-medium-v2"]["edac"]
    assert list(edac) == [0, 1, 2]
    assert [step for step, _ in edac[0]] == list(range(50_000, 1_050_000, 50_000))
    assert edac[2][-1][1] == pytest.approx(67.909, abs=1e-3)


def test_a_folder_without_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(SappError, match=str(tmp_path)):
        tables([tmp_path])
