"""The tables of baselines are those that the committed rows make."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp import SappError
from studies.baselines.baselines_report import baseline_rows, panels, state_aware_rows, tables

PAGE = Path(__file__).parents[2] / "studies" / "baselines" / "README.md"
ROWS = PAGE.parent / "rows"
FOLDERS = ROWS, ROWS / "hopper"
PROCESSOR = ROWS / "processor", ROWS / "processor" / "in-values"


def cells(row: str) -> list[str]:
    return [cell.strip().replace("-", "−") for cell in row.strip("|").split("|")]


def test_every_score_on_the_page_is_what_its_rows_say() -> None:
    """Final scores with their intervals and seeds, and state-aware variants minus their controls."""
    text = PAGE.read_text(encoding="utf-8")
    last = {}
    for folder in (*FOLDERS, *PROCESSOR):
        for dataset, row in baseline_rows(folder):
            name, _, final, each, *_ = cells(row)
            last[dataset, name, folder in PROCESSOR and folder] = f"{final}: {each}"
    assert len(last) == 24 + 9
    for found in last.values():
        assert found in text
    for dataset, row in state_aware_rows(ROWS):
        _, _, final, difference = cells(row)
        assert final in text, dataset
        if difference:
            assert (difference if difference.startswith("−") else f"+{difference}") in text, (dataset, row)


def test_the_climb_of_edac_and_sac_n_is_what_their_rows_say() -> None:
    """The table of means over seeds along training."""
    part = PAGE.read_text(encoding="utf-8").split("### EDAC and SAC-N")[1]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
    steps = [1000 * int(cell.replace(",", "")) for cell in lines[0][1:]]
    found = panels(FOLDERS)
    for title, *values in lines[2:7]:
        name, dataset = title.split(" (")[0].lower().split(", ")
        seeds = [dict(curve) for curve in found[f"{dataset}-medium-v2"][name].values()]
        expected = [f"{np.mean([seed[at] for seed in seeds]):.1f}" if at in seeds[0] else "" for at in steps]
        assert [value.replace("−", "-") for value in values] == expected, title


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
