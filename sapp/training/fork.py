"""Starting a run from another one's members, so that phases they share are trained once."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from sapp.core.errors import SappError
from sapp.core.pytrees import shapes
from sapp.core.spec import Spec
from sapp.runs.learners import Learner
from sapp.runs.plan import Plan
from sapp.runs.run import Run


def fork(plan: Plan, source: Run, specs: Sequence[Spec]) -> list[Learner]:
    """Learners of a plan's groups, taken from another run's members of the same data, seed and structure.

    Estimators of state weights begin afresh where that run has none, as they would have begun there: going on so from a
    phase in which they do not learn gives the bits of having had them all along.
    """
    _, learners = source.restore()
    if not learners:
        raise SappError(f"{source.path}: has no checkpoint to start from")
    places = {
        (source.plan.problems[member.dataset].fingerprint, member.seed): (learner, position, member.algorithm.weights)
        for learner, indices in reversed(list(zip(learners, source.plan.groups(), strict=True)))
        for position, member in reversed(list(enumerate(source.plan.members[index] for index in indices)))
    }
    forked = []
    for group, indices in zip(plan.stacked(specs), plan.groups(), strict=True):
        keys = [(plan.problems[member.dataset].fingerprint, member.seed) for member in group.members]
        for key, index in zip(keys, indices, strict=True):
            if key not in places:
                raise SappError(f"{source.path}: has no member with the data and seed of {plan.ids[index]}")
        chosen = [places[key] for key in keys]
        if len({id(learner) for learner, *_ in chosen}) != 1:
            raise SappError(f"{source.path}: members of one group there are of several groups here; train them apart")
        learner, _, weights = chosen[0]
        rows = np.asarray([position for _, position, _ in chosen])
        base, ratio, alive, stopped_at = jax.tree.map(
            lambda leaf, rows=rows: leaf[rows], (learner.base, learner.ratio, learner.alive, learner.stopped_at)
        )
        if group.has_ratio != weights.learns:
            ratio = group.init().ratio
        found = Learner(base, ratio, alive, stopped_at, learner.updates, learner.ratio_updates)
        if shapes(found) != shapes(group.shapes()):
            raise SappError(f"{source.path}: its networks differ from these; use the same hidden sizes and weights")
        forked.append(found)
    return forked
