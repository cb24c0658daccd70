"""A grid divided among workers: every run once, variants of a dataset and seed together, shares of like sizes."""

from __future__ import annotations

from collections import Counter

import pytest

from sapp.experiments.grid import scaled
from sapp.experiments.on_ray import workers
from sapp.experiments.paper_grids import table1
from sapp.experiments.shares import Share, shares

METHODS = ("CQL", "SA-CQL", "matched", "TD3+BC")
GRID = table1(scaled("paper")).only(None, METHODS)


def runs(share: Share) -> list[tuple[str, str, int]]:
    return [(run.algorithm, run.dataset, run.seed) for run in share.grid.runs(share.family, share.names)]


@pytest.mark.parametrize("count", [1, 6, 7, 10, 64, 108, 1000])
def test_every_run_is_in_one_share(count: int) -> None:
    found = Counter(run for share in shares(GRID, count) for run in runs(share))
    assert set(found.values()) == {1}
    assert len(found) == len(METHODS) * len(GRID.datasets) * len(GRID.scale.seeds)


def test_there_are_as_many_shares_as_workers_and_no_more_than_pairs() -> None:
    jobs, pairs = 2 * 3, 2 * 18 * 3  # two families on three environments; a pair is a dataset and a seed
    assert [len(shares(GRID, count)) for count in (1, 6, 7, 64, 1000)] == [jobs, jobs, 7, 64, pairs]


def test_variants_of_a_dataset_and_seed_stay_together() -> None:
    for share in shares(GRID, 64):
        found = runs(share)
        pairs = {(dataset, seed) for _, dataset, seed in found}
        assert len(found) == len(share.family.variants) * len(pairs)
        assert set(share.names) == {dataset for dataset, _ in pairs}


def test_shares_differ_by_little() -> None:
    """Families have equally many datasets and seeds here, so no worker has more than twice what another has."""
    sizes = [len({run[1:] for run in runs(share)}) for share in shares(GRID, 64)]
    assert max(sizes) <= 2 * min(sizes) == 2


def test_a_share_stands_where_the_whole_grid_has_it() -> None:
    share = shares(GRID, 64)[-1]
    assert [share.grid.position(name) for name in share.family.variants] == [GRID.position("TD3+BC")]


def test_workers_are_what_the_cluster_runs_at_a_time() -> None:
    there = {"CPU": 128.0, "GPU": 64.0}
    assert workers(there, 1, 1.0) == 64
    assert workers(there, 8, 1.0) == 16
    assert workers(there, 1, 0.1) == 128
    assert workers({"CPU": 3.0}, 2, 0.0) == 1
    assert workers({"CPU": 1.0}, 2, 0.0) == 1
