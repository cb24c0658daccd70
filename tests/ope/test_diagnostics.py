"""Each reason has its own severity and says what to do; the verdict is the worst of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sapp.core.statistics import Interval
from sapp.ope.diagnostics import Diagnosis, Limits, Measures, Reason, Verdict, explain, reasons_of, verdict_of

GOOD = Measures(
    episodes=100, off_data=0.0, disagreement=1.0, difference=0.1, drift=0.1, outside=0.0, horizons=50.0, unhealthy="",
    scale=1.0, possible=(0.0, 1.0), steps=5_000,
)  # fmt: skip
INSIDE = Interval(0.5, 0.4, 0.6)


def test_nothing_speaks_against_a_good_estimate() -> None:
    assert reasons_of(GOOD, INSIDE) == []
    assert verdict_of([]) is Verdict.TRUSTED


@pytest.mark.parametrize(
    ("change", "interval", "verdict", "what", "do"),
    [
        ({"episodes": 29}, INSIDE, "doubtful", "only 29 episodes", "log at least 30"),
        ({"episodes": 3}, INSIDE, "refused", "only 3 episodes", "log at least 30"),
        ({"off_data": 0.2}, INSIDE, "doubtful", "20% of the policy's actions", "a larger --alpha"),
        ({"off_data": 0.7}, INSIDE, "refused", "70% of the policy's actions", "log such actions"),
        ({"outside": 0.1}, INSIDE, "doubtful", "10% of FQE's values", "more --fit-steps"),
        ({"outside": 0.3}, INSIDE, "refused", "impossible for these rewards", "check that terminals are marked"),
        ({"drift": 2.0}, INSIDE, "doubtful", "moved by 2.0 interval widths", "more than --fit-steps 5000"),
        ({"drift": float("inf")}, INSIDE, "refused", "has not settled", "--fit-steps"),
        ({"horizons": 4.0}, INSIDE, "doubtful", "4.0 times the horizon", "at least 5 times"),
        ({"horizons": 0.4}, INSIDE, "refused", "5,000 steps", "a smaller --discount"),
        ({}, Interval(0.5, 0.0, 1.5), "doubtful", "1.5 times as wide", "more --bags"),
        ({}, Interval(0.5, -2.0, 2.0), "refused", "4.0 times as wide", "more episodes"),
        ({}, Interval(1.1, 0.9, 1.3), "doubtful", "1.1 per step, is impossible", "more fit steps"),
        ({}, Interval(1.3, 1.2, 1.4), "refused", "1.3 per step, is impossible", "more logs of such policies"),
        ({"unhealthy": "it diverged"}, INSIDE, "doubtful", "cannot check FQE (it diverged)", "FQE stands alone"),
        ({"disagreement": 5.0, "difference": 0.3}, INSIDE, "doubtful", "disagree by 5.0", "only playing can tell"),
    ],
)
def test_each_reason_has_its_own_severity_and_a_remedy(
    change: dict[str, float | str], interval: Interval, verdict: str, what: str, do: str
) -> None:
    (reason,) = reasons_of(replace(GOOD, **change), interval)  # type: ignore[arg-type]
    assert reason.verdict == verdict
    assert what in reason.what
    assert do in reason.do


def test_a_disagreement_within_the_scale_of_returns_is_none() -> None:
    assert reasons_of(replace(GOOD, disagreement=5.0, difference=0.2), INSIDE) == []
    (reason,) = reasons_of(replace(GOOD, disagreement=5.0, difference=0.2), INSIDE, Limits(width=(0.1, 3.0)))
    assert "as wide" in reason.what


def test_only_what_refuses_is_called_refused() -> None:
    reasons = reasons_of(replace(GOOD, episodes=29, off_data=0.7), INSIDE)
    assert verdict_of(reasons) is Verdict.REFUSED
    diagnosis = Diagnosis(50.0, 12.0, 29, 1.0, 0.7, 1.0, 0.1, 0.0, 50.0, True, "fqe", verdict_of(reasons), reasons)
    lines = explain(diagnosis)
    assert lines[0] == "effective sample: 12 of 29 episodes (41%), 50 steps"
    assert [line.split(":")[0] for line in lines[-2:]] == ["doubtful", "refused"]
    assert lines[-2].endswith(": log at least 30")
    assert str(Reason(Verdict.DOUBTFUL, "a", "b")) == "a: b"
