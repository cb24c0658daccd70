"""What the experiments declare, their scales, and the keys of their runs."""

from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from sapp.experiments.datasets import load_dataset
from sapp.experiments.find import EXPERIMENTS
from sapp.experiments.grid import run_key, scaled


def test_a_key_changes_with_everything_that_changes_results() -> None:
    data, scale = load_dataset("point-6"), scaled("smoke")
    grid = EXPERIMENTS["random-ratio"](scale)
    family = grid.families[0]
    phases = family.phases(scale, ["point-6"])
    make = family.variants["SA-CQL"]
    key = run_key(make("point-6"), data, 0, phases, scale)
    assert key == run_key(make("point-6"), load_dataset("point-6"), 0, phases, scale)
    others = {
        run_key(make("point-6"), data, 1, phases, scale),
        run_key(family.variants["shuffled"]("point-6"), data, 0, phases, scale),
        run_key(make("point-6"), load_dataset("point-7"), 0, phases, scale),
        run_key(make("point-6"), data, 0, family.phases(scaled("smoke", steps=8), ["point-6"]), scale),
        run_key(make("point-6"), data, 0, phases, scaled("smoke", steps=8)),
    }
    assert len(others) == 5
    assert key not in others


def test_a_part_of_a_grid() -> None:
    grid = EXPERIMENTS["table1"](scaled("smoke")).only(["point-60"], ["SA-CQL", "EDAC"])
    assert grid.datasets == ("point-60",)
    assert grid.variants == ("SA-CQL", "EDAC")
    with pytest.raises(SappError, match=r"no method 'SACQL'.*did you mean 'SA-CQL'"):
        grid.only(None, ["SACQL"])
    with pytest.raises(SappError, match=r"scale 'smok' is unknown.*smoke"):
        scaled("smok")


@pytest.mark.parametrize("steps", [7, 100, 20_000, 145_000, 150_000, 1_000_000])
def test_a_scale_of_another_length_evaluates_on_logged_rows(steps: int) -> None:
    scale = scaled("small", steps=steps)
    assert scale.steps == steps
    assert scale.log_every <= 5_000
    assert scale.eval_every % scale.log_every == 0
    assert 0 <= max(1, steps // 20) - scale.eval_every < scale.eval_every / scale.log_every


def test_environments_are_trained_one_after_another_or_together() -> None:
    chosen = ["hopper-medium", "halfcheetah-random", "hopper-random"]
    table = EXPERIMENTS["table1"](scaled("paper")).only(chosen, ["CQL"])
    assert [names for names, _ in table.jobs()] == [("halfcheetah-random",), ("hopper-medium", "hopper-random")]
    assert [set(names) for names, _ in table.jobs(together=True)] == [set(table.datasets)]
