"""The baselines' grid declares what the page compares, and the page says what the rows say."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from sapp.data.normalised_scores import normalized_score
from sapp.experiments.grid import scaled
from sapp.weights import Control
from studies.baselines.grid import ALGORITHMS, STATE_AWARE, grid

STUDY = Path(__file__).parents[2] / "studies" / "baselines"
Scores = dict[tuple[str, str, str], dict[int, np.ndarray]]


def test_every_state_aware_variant_has_its_controls_and_shares_its_beginning() -> None:
    declared = grid(scaled("paper"))
    assert declared.datasets == ("halfcheetah-medium", "hopper-medium", "walker2d-medium")
    assert declared.variants[: len(ALGORITHMS)] == ALGORITHMS
    for name, family in zip(STATE_AWARE, declared.families[len(ALGORITHMS) :], strict=True):
        made = {each: make("hopper-medium") for each, make in family.variants.items()}
        assert len(made) == 4
        assert all(isinstance(each.weights, Control) for each in made.values())
        assert len({type(each) for each in made.values()}) == 1
        phases = family.phases(declared.scale, declared.datasets)
        clone = made[f"sa-{name}"].preparation
        assert [phase.steps for phase in phases] == [*([clone] if clone else []), 20_000, 100_000, 1_000_000]


def test_a_learning_rate_that_decays_does_so_over_the_scales_length() -> None:
    declared = grid(scaled("small"))
    assert declared.families[ALGORITHMS.index("iql")].variants["iql"]("hopper-medium").decay_steps == 200_000


@pytest.fixture(scope="module")
def scores() -> Scores:
    """Means over episodes [seeds] by step, of each run, method and dataset."""
    found: dict[tuple[str, str, str], dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with open(STUDY / "rows" / "scores.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            returns = np.array([float(value) for value in row["returns"].split(";")])
            score = normalized_score(row["dataset"].split("-")[0], returns).mean()
            found[row["run"], row["method"], row["dataset"]][int(row["step"])][int(row["seed"])] = float(score)
    return {
        key: {step: np.array([seeds[seed] for seed in sorted(seeds)]) for step, seeds in sorted(steps.items())}
        for key, steps in found.items()
    }


def test_every_final_score_on_the_page_is_what_its_rows_say(scores: Scores) -> None:
    page = (STUDY / "README.md").read_text(encoding="utf-8").replace("−", "-")
    checked = 0
    for (run, method, dataset), steps in scores.items():
        if run.startswith(("sa-", "brac-small", "edac-small", "uwac-again")):
            continue
        if not run.startswith("hopper-") and (f"hopper-{method}", method, dataset) in scores:
            continue  # a longer run took its place
        if method not in re.sub("^(hopper|cpu-in-values|cpu)-", "", run).split("+"):
            continue  # carried along in a run of another
        last = steps[max(steps)]
        assert f": {' '.join(f'{value:.1f}' for value in last)}" in page, (run, method)
        checked += 1
    assert checked == 24 + 9


def test_the_climb_of_edac_and_sac_n_is_what_their_rows_say(scores: Scores) -> None:
    part = (STUDY / "README.md").read_text(encoding="utf-8").split("### EDAC and SAC-N")[1]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
    steps = [1000 * int(cell.replace(",", "")) for cell in lines[0][1:]]
    for title, *values in lines[2:7]:
        method, environment = title.split(" (")[0].lower().split(", ")
        run = f"hopper-{method}" if environment == "hopper" else method
        own = scores[run, method, f"{environment}-medium-v2"]
        expected = [f"{own[at].mean():.1f}" if at in own else "" for at in steps]
        assert [value.replace("−", "-") for value in values] == expected, title
