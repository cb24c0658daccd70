"""Early stopping: at the right evaluation, and the run goes on from there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hooked import Train, same_run

import sapp
from sapp.hooks import EarlyStop, KeepBest


def test_it_stops_early_keeps_the_best_and_goes_on_to_the_same_bits(train: Train, tmp_path: Path) -> None:
    plain = train("plain")
    returns = [float(row["return_mean"]) for row in plain.evaluations()]
    highest = [max(returns[: number + 1]) for number in range(len(returns))]
    waits = 2
    last = next(n for n in range(waits, len(returns)) if highest[n] == highest[n - waits])
    assert 0 < last < len(returns) - 1, f"nothing to stop for in {returns}"
    stopped = train("stopped", EarlyStop(waits), KeepBest())
    assert stopped.step == 10 * (last + 1)
    assert len(stopped.evaluations()) == last + 1
    kept = sapp.Run(stopped.path / "best")
    best = int(np.argmax(returns[: last + 1]))
    assert kept.step == 10 * (best + 1) < stopped.step
    assert kept.evaluate(episodes=2)[0].returns.mean() == pytest.approx(returns[best], rel=1e-5)
    assert same_run(sapp.resume(stopped.path, progress=False), plain)
