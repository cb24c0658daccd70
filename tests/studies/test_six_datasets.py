"""The study's verdicts follow from its rows."""

from __future__ import annotations

from sapp.report.score_summary import cells, differences
from sapp.report.sources import read
from studies.six_datasets.tables import ROWS, both


def test_one_difference_is_significant_alone_and_none_with_holms_correction() -> None:
    (experiment,) = read([ROWS])
    gaps = differences(experiment, cells(experiment))
    alone = [(each.dataset, each.other) for each in gaps if each.corrected.p < 0.05]
    assert alone == [("halfcheetah-medium", "CQL")]
    assert not any(each.corrected.holm_p < 0.05 for each in gaps)


def test_both_runs_of_the_same_seeds_together() -> None:
    table = both()
    assert "Of 12 differences, 4 are significant at the 5 % level before Holm's correction (0.6 expected by" in table
    assert "| halfcheetah-medium | 3.7 (1.8 to 5.7) |" in table
