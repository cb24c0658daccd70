"""Each reading is what its name says, no run is in two parts, and the page answers from both studies' rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_rows import made_rows

from sapp.algorithms import config
from sapp.experiments import text_store
from sapp.experiments.parts import seconds
from sapp.runs.members import MemberId
from sapp.weights import ConstantWeights, Control, DualDICE, RandomWeights
from sapp.weights.registry import state_weights
from studies.readings import page
from studies.readings.grid import ALPHAS, LITERAL, MEAN, NARROW, RANGE, WEIGHTS
from studies.readings.part import STEPS, STUDY
from studies.table1.part import METHODS
from studies.table1.part import STUDY as TABLE1

GRID = STUDY.whole()
MAKERS = {name: make for family in GRID.families for name, make in family.variants.items()}


def bounds(variant: str, dataset: str) -> tuple[float, float]:
    low, high = MAKERS[variant](dataset).weights.bounds()
    return float(low), float(high)


def test_ranges_are_those_of_the_readings() -> None:
    added = TABLE1.whole().families[0].variants["SA-CQL"]("walker2d-medium").weights
    assert [float(bound) for bound in added.bounds()] == [0.5, 1.5]
    assert bounds("upper", "walker2d-medium") == bounds("upper matched", "walker2d-medium") == (0.5, 1.0)
    assert bounds(LITERAL, "walker2d-medium") == (0.5, 1.0)
    assert bounds(MEAN, "walker2d-medium") == (0.75, 0.75)
    assert bounds("upper", "walker2d-expert") == (0.5, 5.0)
    literal, mean = (MAKERS[name]("walker2d-medium").weights for name in (LITERAL, MEAN))
    assert isinstance(literal, RandomWeights)
    assert isinstance(mean, ConstantWeights)


@pytest.mark.parametrize("route", ["zeta", "density"])
def test_weights_by_another_route_have_both_controls(route: str) -> None:
    made = [MAKERS[name]("hopper-medium").weights for name in (route, f"{route} shuffled", f"{route} matched")]
    assert [each.kind for each in made] == [0, 1, 2]
    for each in made:
        assert isinstance(each, Control)
        assert isinstance(each.of, DualDICE)
        assert each.of.route == route
        assert [float(bound) for bound in each.bounds()] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("variant", "weights", "changes"),
    [
        ("upper", "dualdice", {"weights.f.span": "upper"}),
        ("zeta", "dualdice", {"weights.route": "zeta"}),
        ("density", "dualdice", {"weights.route": "density"}),
        ("zeta shuffled", "shuffled:dualdice", {"weights.of.route": "zeta"}),
        ("upper matched", "matched:dualdice", {"weights.of.f.span": "upper"}),
        (LITERAL, "random-b0-b1", {}),
        (MEAN, "constant:0.75", {}),
        ("CQL α=12.5", "uniform", {"alpha": 12.5}),
        ("CQL α=15", "uniform", {"alpha": 15.0}),
    ],
)
def test_every_reading_has_a_name_on_the_command_line(variant: str, weights: str, changes: dict[str, object]) -> None:
    mine = MAKERS[variant]("walker2d-medium")
    theirs = config.override(MAKERS["CQL α=15"]("walker2d-medium"), {"alpha": 5.0})
    theirs = config.override(config.override(theirs, {"weights": state_weights(weights, "walker2d-medium")}), changes)
    ours, other = (config.describe(each) for each in (mine, theirs))
    if ours["weights"]["class"] == "Control" and other["weights"]["class"] != "Control":
        assert ours["weights"]["kind"] == 0
        ours["weights"] = ours["weights"]["of"]
    assert ours == other


def test_every_run_is_in_one_part_and_each_part_fits() -> None:
    runs = [run for part in STUDY.parts for run in part.members]
    assert len(runs) == len(set(runs))
    wanted = {(variant, name) for each in page.QUESTIONS for variant in each.variants for name in each.datasets}
    assert {(run.algorithm, run.dataset) for run in runs} == {
        (variant, name) for variant, name in wanted if variant not in page.BASE
    }  # fmt: skip
    assert {run.seed for run in runs} == {0, 1, 2}
    assert max(seconds(STUDY, part) for part in STUDY.parts) < 25 * 60
    assert STEPS >= 300_000
    assert {name for each in page.QUESTIONS for name in each.datasets} == {*RANGE, *WEIGHTS, *NARROW}
    assert len(ALPHAS) == 2


def test_table1_is_evaluated_at_the_step_that_is_compared() -> None:
    assert STEPS % TABLE1.scale.eval_every == 0
    assert STEPS % STUDY.scale.eval_every == 0


def gain(member: MemberId) -> float:
    """Of made-up runs: α = 15 is 8 below SA-CQL, zeta 3 above its shuffled control."""
    gains = {"CQL α=15": 42.0, "zeta": 53.0, "zeta shuffled": 50.0}
    return gains.get(member.algorithm, 50.0) + 0.3 * member.seed


def test_the_page_compares_runs_of_both_studies_at_one_step(tmp_path: Path) -> None:
    own, table1 = tmp_path / "own", tmp_path / "table1"
    for part in STUDY.parts:
        text_store.add(made_rows(STUDY, part.members, gain), own)
    wanted = {(name, seed) for name in (*RANGE, *WEIGHTS, *NARROW) for seed in (0, 1, 2)}
    runs = [MemberId(method, name, seed) for method in METHODS for name, seed in wanted]
    # at 300,000 of their million steps these are at three fifths
    text_store.add(made_rows(TABLE1, runs, lambda member: gain(member) / 0.6), table1)
    made = page.sections(own, table1)
    assert made["standing"].startswith("**114 of 114 runs**")
    lines = made["alpha-differences"].splitlines()
    (mean,) = (line.split(" | ") for line in lines if line.startswith("| SA-CQL − CQL α=15 | mean of 6"))
    assert float(mean[2].split()[0]) == pytest.approx(8.0, abs=1.5)
    (zeta,) = (
        line.split(" | ")
        for line in made["weights-differences"].splitlines()
        if line.startswith("| zeta − zeta shuffled | mean of 3")
    )
    assert float(zeta[2].split()[0]) == pytest.approx(3.0, abs=1.5)
    assert sum(line.startswith("| walker2d") for line in made["range"].splitlines()) == 2
    assert "300,000 steps" in made["range"]


def test_a_page_without_rows_says_nothing_but_that(tmp_path: Path) -> None:
    made = page.sections(tmp_path / "none", tmp_path / "none")
    assert made["standing"].startswith("**0 of 114 runs**")
    assert not any(text for name, text in made.items() if name != "standing")
