"""Estimates from solved equations."""

from __future__ import annotations

import numpy as np
import pytest
from ward_logs import logs, targets_of

from sapp.ope.doubly_robust import dice_of_bags, fqe_of_bags
from sapp.ope.estimators import Settings, bag_counts
from sapp.ope.exact import fit_exactly
from sapp.tabular.logs import empirical, log_of
from sapp.tabular.tasks import Task


def test_exact_estimates_solve_the_empirical_mdp(task: Task, policies: dict[str, np.ndarray]) -> None:
    """Without pseudo-rows, every bag's FQE is the value of the bag's empirical MDP by the tabular package."""
    data = logs(task, 3000)
    settings = Settings(discount=0.9, bags=3, exact=True)
    fitted = fit_exactly(data, targets_of(policies, data), settings, pseudo_count=1e-9)
    counts = bag_counts(data.num_episodes, 3, 0)
    episode = np.repeat(np.arange(data.num_episodes), data.episode_lengths)
    here, there = data.observation.argmax(1), data.next_observation.argmax(1)
    shape = task.mdp.transition.shape
    for bag in range(3):
        held = counts[bag][episode]
        table = np.zeros(shape, np.int64)
        np.add.at(table, (here, data.action, there), held)
        log = log_of(task.mdp, table)
        log = type(log)(log.counts, table[..., task.paying].astype(float))
        start = np.bincount(here[data.episode_starts], counts[bag], shape[0])
        model = empirical(log, start / start.sum(), 0.9)
        # rows never leave an end: there the empirical MDP stays for ever, at reward 0
        for number, policy in enumerate(policies.values()):
            assert fqe_of_bags(fitted)[number, bag] == pytest.approx(
                0.1 * float(start @ model.value(policy)) / start.sum()
            )
            # for pairs that the bag holds, DualDICE's saddle gives the same value
            assert dice_of_bags(fitted)[number, bag] == pytest.approx(fqe_of_bags(fitted)[number, bag], rel=1e-6)
