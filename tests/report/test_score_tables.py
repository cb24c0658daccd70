"""The paper's layout and the table of differences."""

from __future__ import annotations

import numpy as np
from recorded import experiment, member

from sapp.core.statistics import average, student
from sapp.report.score_summary import cells, differences, mean_differences
from sapp.report.score_tables import differences as differences_table
from sapp.report.score_tables import layout

RNG = np.random.default_rng(0)
SCORES = {
    (variant, dataset): RNG.normal(level, 3, 3).tolist()
    for variant, level in (("CQL", 60), ("SA-CQL", 70), ("shuffled", 80))
    for dataset in ("hopper-medium", "walker2d-medium")
}
EXPERIMENT = experiment(
    *(member(v, d, seed, (value,)) for (v, d), seeds in SCORES.items() for seed, value in enumerate(seeds)),
    *(member("half", "hopper-medium", seed, (200.0,)) for seed in (0, 1)),
)


def test_the_papers_layout() -> None:
    made = layout(EXPERIMENT, cells(EXPERIMENT))
    assert made is not None
    assert made.head == ("dataset", "CQL", "SA-CQL", "shuffled", "half", "CQL, the paper", "SA-CQL, the paper")
    hopper, walker, mean = made.lines
    assert [line.entries[0].text for line in made.lines] == ["hopper-medium", "walker2d-medium", "average of 2"]
    np.testing.assert_allclose(hopper.entries[2].value, np.mean(SCORES["SA-CQL", "hopper-medium"]))
    # the two best of ours; of the paper's the two best among all eight: on hopper-medium EDAC (101.3) and F-BRC (90.9)
    assert [entry.bold for entry in hopper.entries] == [False, False, False, True, True, False, False]
    assert [entry.bold for entry in walker.entries] == [False, False, True, True, False, False, True]
    assert [entry.text for entry in hopper.entries[5:]] == ["74.1", "86.3"]
    expected = average([student(SCORES["SA-CQL", name]) for name in ("hopper-medium", "walker2d-medium")]).interval()
    assert mean.entries[2].detail == f"({expected.low:.1f} to {expected.high:.1f})"
    assert [entry.text for entry in mean.entries[4:]] == ["", "79.8", "87.0"]  # half lacks walker2d
    assert "**" in made.markdown()
    assert r"\textbf{" in made.latex()


def test_without_numbers_of_the_paper_there_are_no_such_columns() -> None:
    ours = experiment(member("mine", "plant", 0), member("SA-CQL", "plant", 0))
    made = layout(ours, cells(ours))
    assert made is not None
    assert made.head == ("dataset", "mine", "SA-CQL")
    assert len(made.lines) == 1  # nothing to average


def test_differences_have_raw_and_holms_intervals_and_say_how_many_there_are() -> None:
    gaps = differences(EXPERIMENT, cells(EXPERIMENT))
    means = mean_differences(EXPERIMENT, gaps)
    made = differences_table(EXPERIMENT, gaps, means)
    assert "the number of comparisons: 5 differences by dataset and 2 differences of means." in made.caption
    assert [(line.entries[0].text, line.entries[1].text) for line in made.lines] == [
        ("hopper-medium", "CQL"), ("hopper-medium", "shuffled"), ("hopper-medium", "half"), ("walker2d-medium", "CQL"),
        ("walker2d-medium", "shuffled"), ("mean of 2", "CQL"), ("mean of 2", "shuffled"),
    ]  # fmt: skip
    for gap, line in zip((*gaps, *means), made.lines, strict=True):
        assert line.entries[2].value == gap.corrected.raw.estimate
        assert line.entries[3].value == gap.corrected.holm.low <= gap.corrected.raw.low
        assert line.entries[4].value == gap.corrected.holm_p >= gap.corrected.p
