"""The precision experiment's table from hand-made scores."""

from __future__ import annotations

import numpy as np

from studies.precision.precision import table


def test_differences_are_paired_by_seed_and_episode_at_the_last_step_that_both_have() -> None:
    exact = np.array([[10.0, 30.0], [20.0, 40.0]])
    scores = {
        "walker2d-medium-v2": {
            "float32": {100: exact - 5.0, 150: exact - 1.0, 200: exact},
            "bf16": {100: exact, 150: exact - 0.5, 200: exact + 1.5, 300: exact + 9.0},
        }
    }
    head, _, first, second = table(scores, ("float32", "bf16")).splitlines()
    assert head.endswith("| − float32 | last third | mean of all |")
    assert first.startswith("| walker2d-medium-v2 | float32 | 200 | 25.0 (")
    assert first.endswith("| 20.0 30.0 |  |  |  |")
    assert second.endswith("| 21.5 31.5 | 1.5 (1.5 to 1.5) | 1.0 (1.0 to 1.0) | 2.3 (2.3 to 2.3) |")
