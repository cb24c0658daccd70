"""Stop training once evaluations no longer get better."""

from __future__ import annotations

from typing_extensions import override

from sapp.core.errors import SappError
from sapp.runs.hooks import Hook, Moment, check_played
from sapp.runs.members import MemberId
from sapp.runs.plan import Plan


class EarlyStop(Hook):
    """Asks to stop when no member's mean return has risen for some evaluations of the last phase.

    It goes by evaluations.csv, so a resumed run stops where an uninterrupted one would have.
    """

    def __init__(self, patience: int = 5, least: float = 0.0) -> None:
        """Stop after ``patience`` evaluations without a return that is higher by more than ``least``."""
        if patience < 1 or not least >= 0.0:
            raise SappError(f"EarlyStop: patience is {patience}, least {least:g}; they must be at least 1 and 0")
        self.patience, self.least = patience, least

    @override
    def check(self, plan: Plan) -> None:
        check_played(self, plan)

    @override
    def on_evaluate(self, at: Moment) -> str | None:
        start = sum(phase.steps for phase in at.plan.phases[:-1])
        best: dict[MemberId, float] = {}
        risen = 0
        steps: list[int] = []
        for row in at.run.evaluations():
            step, value, member = int(row["step"]), float(row["return_mean"]), MemberId.of(row)
            if step <= start:
                continue
            if not steps or steps[-1] != step:
                steps.append(step)
            if member not in best or value > best[member] + self.least:
                best[member], risen = value, len(steps)
        waited = len(steps) - risen
        return f"no higher return in {waited} evaluations" if waited >= self.patience else None
