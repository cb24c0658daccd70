"""A grid divided among the workers of a cluster, so that each GPU has something to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sapp.experiments.grid import Family, Grid
from sapp.runs.members import MemberId


class Share(NamedTuple):
    """What one worker trains: some runs of a family on one environment's datasets.

    Attributes:
        names: its datasets.
        family: the variants.
        grid: the part of the grid with these runs only.
        label: for messages.
    """

    names: tuple[str, ...]
    family: Family
    grid: Grid
    label: str


def shares(grid: Grid, workers: int) -> list[Share]:
    """The jobs of a grid, the larger ones divided where there are more workers than jobs.

    A job is divided between its datasets and seeds, never between variants: those of one dataset and seed go on from
    one pretrained learner, and belong on one machine.
    """
    jobs = list(grid.jobs())
    pairs = [_pairs(grid.runs(family, names)) for names, family in jobs]
    return [
        share
        for (names, family), own, count in zip(jobs, pairs, _counts(list(map(len, pairs)), workers), strict=True)
        for share in _divided(grid, names, family, own, count)
    ]


def _counts(sizes: Sequence[int], workers: int) -> list[int]:
    """Into how many shares jobs of some sizes are divided: the largest share is always the next to be made smaller."""
    found = [1] * len(sizes)
    for _ in range(workers - len(sizes)):
        largest = max(range(len(sizes)), key=lambda job: sizes[job] / found[job])
        if found[largest] == sizes[largest]:
            break
        found[largest] += 1
    return found


def _pairs(runs: Sequence[MemberId]) -> list[tuple[str, int]]:
    """Datasets and seeds, each once, dataset by dataset."""
    return list(dict.fromkeys((run.dataset, run.seed) for run in sorted(runs, key=lambda run: (run.dataset, run.seed))))


def _divided(
    grid: Grid, names: tuple[str, ...], family: Family, pairs: Sequence[tuple[str, int]], count: int
) -> Iterator[Share]:
    """A job's shares, each of datasets and seeds that follow one another."""
    label = f"{family.name}-{names[0].split('-')[0]}"
    if count == 1:
        yield Share(names, family, grid, label)
        return
    for number in range(count):
        first, last = (at * len(pairs) // count for at in (number, number + 1))
        mine = set(pairs[first:last])
        members = [run for run in grid.runs(family, names) if (run.dataset, run.seed) in mine]
        part = grid.part(members)
        (own,) = part.families
        kept = tuple(name for name in names if name in {dataset for dataset, _ in mine})
        yield Share(kept, own, part, f"{label}, share {number + 1} of {count}")
