"""The paper's tables and figures as grids: what they compare, and the paper's protocol."""

from __future__ import annotations

import pytest

from sapp.experiments.find import EXPERIMENTS
from sapp.experiments.grid import scaled
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
