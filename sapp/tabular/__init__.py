"""Finite MDPs: exact occupancies, pessimistic evaluation and optimisation, bounds, and the audit of the theorems.

>>> import numpy as np
>>> from sapp.tabular import Pessimism, Ratio, draw_log, empirical, garnet, optimise, suboptimality, uniform_policy
>>> mdp = garnet(np.random.default_rng(0), 1)[0]
>>> log = draw_log(mdp, np.random.default_rng(1), 500, uniform_policy(mdp.states, mdp.actions))
>>> model = empirical(log, mdp.start, mdp.discount)
>>> found = optimise(model, Pessimism(0.01, "cql", Ratio()))
>>> bool(suboptimality(mdp, found.policy) >= 0)
True
"""

from __future__ import annotations

from sapp.tabular.bounds import UpperBound, c0_printed, c0_repaired, suboptimality, upper_bound
from sapp.tabular.divergence import DIVERGENCES, cql, divergence, gaussian_kernel, kl, mmd, tv
from sapp.tabular.dualdice import dualdice, state_ratio_from_zeta
from sapp.tabular.evaluation import (
    Pessimism,
    evaluate,
    evaluate_penalty,
    iterate,
    penalty,
    sa_cql_iteration,
    sa_cql_q,
    uncertainty,
)
from sapp.tabular.logs import EmpiricalMDP, Log, draw_episodes, draw_log, empirical, model_of
from sapp.tabular.mdp import (
    FiniteMDP,
    deterministic_policies,
    garnet,
    grid,
    random_policies,
    softmax_policy,
    uniform_policy,
)
from sapp.tabular.occupancy import (
    activity_matrix,
    normalised_occupancy,
    policy_ratio,
    state_ratio,
    unnormalised_occupancy,
)
from sapp.tabular.optimisation import Optimum, enumerate_class, optimise, optimise_many
from sapp.tabular.weights import Fixed, LogMinMax, Ratio, Uniform

__all__ = [
    "DIVERGENCES",
    "EmpiricalMDP",
    "FiniteMDP",
    "Fixed",
    "Log",
    "LogMinMax",
    "Optimum",
    "Pessimism",
    "Ratio",
    "Uniform",
    "UpperBound",
    "activity_matrix",
    "c0_printed",
    "c0_repaired",
    "cql",
    "deterministic_policies",
    "divergence",
    "draw_episodes",
    "draw_log",
    "dualdice",
    "empirical",
    "enumerate_class",
    "evaluate",
    "evaluate_penalty",
    "garnet",
    "gaussian_kernel",
    "grid",
    "iterate",
    "kl",
    "mmd",
    "model_of",
    "normalised_occupancy",
    "optimise",
    "optimise_many",
    "penalty",
    "policy_ratio",
    "random_policies",
    "sa_cql_iteration",
    "sa_cql_q",
    "softmax_policy",
    "state_ratio",
    "state_ratio_from_zeta",
    "suboptimality",
    "tv",
    "uncertainty",
    "uniform_policy",
    "unnormalised_occupancy",
    "upper_bound",
]
