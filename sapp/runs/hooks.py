"""Hooks: what a run tells others while it trains, and how they ask it to stop."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any

from sapp.core.errors import SappError, one_line, printable
from sapp.runs.learners import Learner
from sapp.runs.logger import METRIC_COLUMNS
from sapp.runs.members import MemberId
from sapp.runs.plan import Plan
from sapp.runs.run import Run

_NOT_SCALARS = {*METRIC_COLUMNS, "episodes", "returns"}


@dataclass(frozen=True)
class Moment:
    """A step at which a hook is told something."""

    step: int
    rows: list[dict[str, Any]]
    """What was just written: rows of metrics.csv or of evaluations.csv, one per member; none at a checkpoint."""
    plan: Plan
    learners: Sequence[Learner]
    """The members as they are now, one tree per group of the plan; valid during the call."""
    reopened: Callable[[], Run]

    @cached_property
    def run(self) -> Run:
        """The run as its folder holds it now."""
        return self.reopened()

    def scalars(self) -> dict[str, float]:
        """The numbers of the rows by name; where the run has several members, behind that member's name."""
        several = len(self.plan.members) > 1
        return {
            (f"{member_of(row)}/" if several else "") + name: value
            for row in self.rows
            for name, value in numbers(row).items()
        }


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """What a row of metrics.csv or evaluations.csv measures, by name."""
    return {
        name: float(value)
        for name, value in row.items()
        if name not in _NOT_SCALARS and isinstance(value, int | float)
    }


def member_of(row: Mapping[str, Any]) -> MemberId:
    """The member that a row is about."""
    return MemberId(row["algorithm"], row["dataset"], int(row["seed"]))


class Hook:
    """Reacts to what happens during training: override what you need and pass it to ``sapp.train(..., hooks=[...])``.

    A hook changes no result. If it raises, that is reported once, in a line, and training goes on. Those ``on_...``
    methods that get a ``Moment`` may stop the run by returning a reason; the run is saved, and ``resume`` continues it.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> class Enough(sapp.Hook):
        ...     def on_log(self, at):
        ...         return "three rows are enough" if at.step >= 3 else None
        >>> data, algorithm = behaviour_dataset(episodes=6), sapp.BC(hidden=(8,))
        >>> sapp.train(algorithm, data, steps=9, log_every=1, eval_every=0, progress=False, hooks=[Enough()]).step
        3
    """

    def check(self, plan: Plan) -> None:
        """Raise a ``SappError`` for a run that this hook cannot work with; called before training begins."""

    def on_start(self, run: Run) -> None:
        """Training begins, or goes on."""

    def on_log(self, at: Moment) -> str | None:
        """Rows of metrics.csv were written."""

    def on_evaluate(self, at: Moment) -> str | None:
        """Rows of evaluations.csv were written."""

    def on_checkpoint(self, at: Moment) -> str | None:
        """A checkpoint was written."""

    def on_end(self, run: Run) -> None:
        """Training has ended, at its last step or because a hook asked for it."""

    def close(self) -> None:
        """Training has ended, in whatever way, also by an error or Ctrl-C."""


class Hooks:
    """The hooks of one training, told one at a time; what they raise ends nothing."""

    def __init__(self, hooks: Sequence[Hook], run: Run) -> None:
        """Tell them that training begins."""
        self._hooks, self._run = tuple(hooks), run
        self._lock = threading.Lock()  # evaluations may come from another thread than metrics
        self._warned: set[int] = set()
        self.asked: str | None = None
        """Why a hook wants training to stop."""
        for hook in self._hooks:
            self._safely(hook, "on_start", self._reopened())

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def __enter__(self) -> Hooks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook in self._hooks:
            self._safely(hook, "close")

    def tell(self, what: str, step: int, learners: Sequence[Learner], rows: Sequence[Mapping[str, Any]] = ()) -> None:
        """Call a method of every hook, and keep the first wish to stop.

        Args:
            what: on_log, on_evaluate or on_checkpoint.
            step: of the run.
            learners: the members at that step.
            rows: that were written.
        """
        for hook in self._hooks:
            own = [dict(row) for row in rows]
            found = self._safely(hook, what, Moment(step, own, self._run.plan, learners, self._reopened))
            if found and self.asked is None:
                self.asked = found if isinstance(found, str) else f"{type(hook).__name__} asked for it"

    def end(self) -> None:
        """Training has ended as it should."""
        for hook in self._hooks:
            self._safely(hook, "on_end", self._reopened())

    def _reopened(self) -> Run:
        return type(self._run)(self._run.path)

    def _safely(self, hook: Hook, what: str, *arguments: Any) -> Any:
        try:
            with self._lock:
                return getattr(hook, what)(*arguments)
        except (Exception, SystemExit) as error:
            if id(hook) not in self._warned:
                self._warned.add(id(hook))
                why = " ".join(str(error).split()) if isinstance(error, SappError) else one_line(error)
                where = f"hook {type(hook).__name__} failed in {what}"
                print(printable(f"sapp: warning: {where}: {why}; training goes on"), file=sys.stderr)
            return None


def several(hooks: Hook | Sequence[Hook]) -> tuple[Hook, ...]:
    """One hook or several as a tuple."""
    return tuple(hooks) if isinstance(hooks, Sequence) else (hooks,)


def check_hooks(hooks: Sequence[Hook], plan: Plan) -> None:
    """Refuse what is no hook, and a plan that one of them cannot work with."""
    for hook in hooks:
        if not isinstance(hook, Hook):
            given = f"the class {hook.__name__}, not an object of it" if isinstance(hook, type) else repr(hook)
            raise SappError(f"hooks: got {given}; give objects of classes made from sapp.Hook")
        hook.check(plan)


def check_played(hook: Hook, plan: Plan) -> None:
    """Refuse a run without evaluations."""
    if not plan.eval_every or all(problem.environment is None for problem in plan.problems):
        why = "eval_every is 0" if not plan.eval_every else "no environment is known for its data"
        raise SappError(
            f"{type(hook).__name__} needs evaluations, and this run has none ({why}); name an environment and an "
            "interval, or leave it out"
        )


def better(value: float, than: float) -> bool:
    """Whether a return is better than another; what is no number is better than nothing."""
    return value > than or (math.isnan(than) and not math.isnan(value))
