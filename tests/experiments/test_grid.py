"""What the experiments declare, their scales, and the keys of their runs."""

from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from sapp.experiments.datasets import load_dataset
from sapp.experiments.find import EXPERIMENTS
from sapp.experiments.grid import run_key, scaled
from sapp.weights import ControlKind
from sapp.weights.paper import weight_range


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_every_experiment_has_sa_cql_and_all_its_controls(name: str, scale: str) -> None:
    grid = EXPERIMENTS[name](scaled(scale))
    assert {"CQL", "SA-CQL", "shuffled", "matched", "random"} <= set(grid.variants)
    assert grid.focus in grid.variants
    kinds = {ControlKind(make("hopper-medium").weights.kind).label for make in grid.families[0].variants.values()}
    assert {"real", "uniform", "shuffled", "matched", "random"} <= kinds
    assert grid.datasets


@pytest.mark.parametrize(
    ("name", "datasets", "columns"),
    [("table1", 18, 11), ("ratio-quality", 2, 5), ("random-ratio", 18, 5), ("alpha-sweep", 12, 8), ("b0", 12, 9)],
)
def test_the_paper_scale_is_the_papers_protocol(name: str, datasets: int, columns: int) -> None:
    grid = EXPERIMENTS[name](scaled("paper"))
    assert (len(grid.datasets), len(grid.variants)) == (datasets, columns)
    phases = grid.families[0].phases(grid.scale, grid.datasets)
    assert [phase.steps for phase in phases] == [20_000, 100_000, 1_000_000]
    assert grid.scale.seeds == (0, 1, 2)
    algorithm = grid.families[0].variants["SA-CQL"]("walker2d-expert")
    assert (algorithm.alpha, algorithm.batch_size, algorithm.hidden) == (5.0, 256, (256, 256, 256))
    assert (algorithm.weights.of.f.b0, algorithm.weights.of.f.b1) == weight_range("walker2d-expert") == (0.5, 5.0)
    assert algorithm.weights.of.fallback is False


def test_cql_at_another_alpha_has_as_many_updates_as_sa_cql() -> None:
    grid = EXPERIMENTS["alpha-sweep"](scaled("paper"))
    sweep = grid.families[1]
    phases = sweep.phases(grid.scale, grid.datasets)
    assert sum(phase.steps for phase in phases if phase.base) == 1_020_000
    assert sweep.variants["CQL α=2.5"]("hopper-medium").alpha == 2.5


def test_b0_changes_the_lower_end_only() -> None:
    grid = EXPERIMENTS["b0"](scaled("paper"))
    algorithm = grid.families[0].variants["SA-CQL b0=0.5"]("hopper-expert")
    assert (algorithm.weights.of.f.b0, algorithm.weights.of.f.b1) == (0.5, 5.0)


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
