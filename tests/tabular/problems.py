"""Random problems that the tests of ``sapp.tabular`` share."""

from __future__ import annotations

import numpy as np

from sapp.tabular import EmpiricalMDP, FiniteMDP, draw_log, empirical, garnet, random_policies

COUNT = 200


def random_problems(
    seed: int = 0, discount: float = 0.9, count: int = COUNT
) -> tuple[FiniteMDP, EmpiricalMDP, np.ndarray]:
    """MDPs, their empirical MDPs with every pair seen, and a policy for each."""
    rng = np.random.default_rng(seed)
    mdp = garnet(rng, count, 6, 3, 3, discount)
    log = draw_log(mdp, rng, 150, random_policies(rng, (count, 6, 3), scale=1.0), every_pair=1,
                   states=rng.dirichlet(np.ones(6), count))
    return mdp, empirical(log, mdp.start, discount), random_policies(rng, (count, 6, 3))
