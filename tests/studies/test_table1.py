"""Table 1's parts are all of it and fit their time; its page says what the rows say, and nothing without rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_rows import made_rows

from sapp.data.benchmark_names import NAMES
from sapp.experiments import text_store
from sapp.experiments.merge import merge
from sapp.experiments.parts import seconds
from sapp.runs.members import MemberId
from studies.table1 import page
from studies.table1.part import METHODS, SEEDS, STUDY

MAIN = {MemberId(method, name, seed) for method in METHODS for name in NAMES for seed in SEEDS}


def score(member: MemberId) -> float:
    """Of made-up runs: SA-CQL 6 above CQL and 2 above matched, some points from seed to seed."""
    gain = {"CQL": 0.0, "SA-CQL": 6.0, "matched": 4.0, "shuffled": 4.5}[member.algorithm]
    wobble = np.random.default_rng([NAMES.index(member.dataset), member.seed, len(member.algorithm)]).normal()
    return 50.0 + 2.0 * NAMES.index(member.dataset) + gain + float(wobble)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows of all of the study, merged part by part."""
    folder = tmp_path_factory.mktemp("table1")
    for number, part in enumerate(STUDY.parts):
        text_store.add(made_rows(STUDY, part.members, score), folder / str(number))
    merge(STUDY, [folder / str(number) for number in range(len(STUDY.parts))], folder / "rows", say=lambda _: None)
    return folder / "rows"


def test_every_run_is_in_one_part_and_no_control_is_without_its_dataset() -> None:
    runs = [run for part in STUDY.parts for run in part.members]
    assert len(runs) == len(set(runs))
    assert set(runs) >= MAIN
    rest = set(runs) - MAIN
    assert {run.algorithm for run in rest} == {"shuffled"}
    assert len({run.dataset for run in rest}) >= 9
    assert len(rest) == len(SEEDS) * len({run.dataset for run in rest})


def test_methods_of_a_dataset_and_seed_are_trained_together() -> None:
    for part in STUDY.parts:
        own = part.members & MAIN
        pairs = {(run.dataset, run.seed) for run in own}
        assert own == {MemberId(method, name, seed) for method in METHODS for name, seed in pairs}


def test_each_part_ends_within_its_time_and_the_first_well_before() -> None:
    minutes = [seconds(STUDY, part) / 60 for part in STUDY.parts]
    assert max(minutes) < 25
    assert minutes[0] < 20


def test_the_rows_of_all_of_it_are_small_enough_to_commit(whole: Path) -> None:
    assert sum(file.stat().st_size for file in whole.rglob("*")) < 4e6


def test_a_page_of_all_rows_has_the_papers_table_beside_ours(whole: Path) -> None:
    made = page.sections(whole)
    assert made["standing"].startswith("**162 of 162 runs** of CQL, SA-CQL and matched are done; 18 of 18 datasets")
    lines = made["layout"].splitlines()
    assert sum(line.startswith(tuple(f"| {name} " for name in NAMES)) for line in lines) == 18
    assert lines[-1].startswith("| **average of 18** |")
    assert lines[-1].endswith("| 49.6 | 53.6 | 58.6 | 65.1 | 70.4 | 76.1 | **76.6** | **80.3** |")
    hopper = next(line for line in lines if line.startswith("| hopper-medium |")).split(" | ")
    assert hopper[-1] == "86.3 |"
    assert hopper[-5] == "**101.3**"
    assert "**" in hopper[2]
    assert "**" not in hopper[1]
    (sa,) = (line.split(" | ") for line in made["averages"].splitlines() if line.startswith("| SA-CQL"))
    expected = np.mean([score(run) for run in MAIN if run.algorithm == "SA-CQL"])
    assert float(sa[1].split()[0]) == pytest.approx(expected, abs=0.3)
    assert sa[4:6] == ["80.3", "80.3"]
    gaps = {line.split(" | ")[0]: line.split(" | ") for line in made["means"].splitlines() if "SA-CQL −" in line}
    assert gaps["| SA-CQL − CQL"][1] == "18"
    assert float(gaps["| SA-CQL − CQL"][2].split()[0]) == pytest.approx(6.0, abs=1.0)
    assert gaps["| SA-CQL − shuffled"][1] == "9"
    assert "comparisons: 45 differences by dataset" in made["differences"]
    assert len([line for line in made["diagnostics"].splitlines() if line.startswith("| h")]) > 36


def test_a_page_of_few_rows_says_what_is_there_and_nothing_else(tmp_path: Path) -> None:
    empty = page.sections(tmp_path / "nothing")
    assert empty["standing"].startswith("**0 of 162 runs**")
    assert {name for name, text in empty.items() if text} == {"standing", "cluster"}
    few = {run for run in STUDY.part(2).members if run.seed != 1}
    text_store.add(made_rows(STUDY, few, score), tmp_path / "rows")
    made = page.sections(tmp_path / "rows")
    assert made["standing"].startswith(f"**{len(few)} of 162 runs**")
    assert ", 2 of 3 seeds" in made["layout"]
    assert "average" not in made["layout"].splitlines()[-1]
    assert made["averages"] == ""
    only = {MemberId("matched", "hopper-medium", 0)}
    text_store.add(made_rows(STUDY, only, score), tmp_path / "one")
    made = page.sections(tmp_path / "one")
    assert made["differences"] == made["means"] == ""
    assert "hopper-medium" in made["layout"]


def test_runs_that_were_stopped_are_named_and_counted_nowhere(tmp_path: Path) -> None:
    members = {MemberId("CQL", "hopper-medium", 0)}
    text_store.add_unfinished(made_rows(STUDY, members, score, last=900_000), tmp_path / "rows")
    made = page.sections(tmp_path / "rows")
    assert "0 of 162 runs" in made["standing"]
    assert "CQL on hopper-medium, seed 0 (to step 900,000)" in made["standing"]
    assert made["layout"] == ""


def test_the_share_of_time_with_an_unreliable_estimate_is_that_between_events(whole: Path) -> None:
    experiment = page.experiment_of(STUDY, whole)
    assert experiment is not None
    assert page.unreliable(experiment.of("hopper-medium", "SA-CQL")[0]) == pytest.approx(0.25)


def test_curves_are_drawn_the_same_each_time(whole: Path, tmp_path: Path) -> None:
    experiment = page.experiment_of(STUDY, whole)
    assert experiment is not None
    for name in ("a.svg", "b.svg"):
        page.draw(experiment, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
