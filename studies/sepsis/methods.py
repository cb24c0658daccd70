"""The methods that are compared: no pessimism, pessimism spread evenly, by state, and at random, and visit counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sapp.core.errors import SappError
from studies.sepsis.solver import Solution, Solver
from studies.sepsis.spread import CEILING, HELD, MOVING

METHODS: dict[str, str] = {
    "none": "no pessimism",
    "pp": "PP",
    "w": "SA-PP, w",
    "sqrt-w": "SA-PP, √w",
    "clipped-w": f"SA-PP, min(w, {CEILING:g})",
    "w-held": "SA-PP, w held",
    "log-min-max": "SA-PP, log-min–max held",
    "random": "random weights",
    "shuffled": "shuffled w",
    "count": "counts, n^(-1/2)",
}
"""What is compared, with its label."""

REFERENCES = {"imitation": "β̂ itself", "clinicians": "clinicians' policy"}
"""Policies that nothing is optimised for, recorded beside the methods."""

ALPHAS = (1e-3, 3e-3, 5.6e-3, 1e-2, 1.3e-2, 1.8e-2, 3e-2, 5.6e-2, 1e-1, 3e-1, 1.0)
"""The default grid of α."""

def learn(method: str, solver: Solver, alpha: float, seed: Sequence[int] = (0,)) -> Solution:
    """The policy a method learns from a log at α; ``seed`` draws the random weights and the shuffle.

    ``shuffled`` takes the weights that SA-PP ends with at the same α and permutes them over the logged states, so that
    it has the same histogram and no information about where.
    """
    rng = np.random.default_rng([2, *seed])
    if method == "none":
        return solver.solve(0.0)
    if method == "count":
        return solver.counts(alpha)
    if method == "pp":
        return solver.solve(alpha)
    if method in MOVING or method in HELD:
        return _kept(solver, method, alpha)
    if method == "random":
        return solver.solve(alpha, rng.uniform(0.0, 1.0, solver.states))
    if method == "shuffled":
        return solver.solve(alpha, rng.permutation(_kept(solver, "w", alpha).ratio[solver.index]))
    raise SappError(f"method {method!r} is unknown: use {', '.join(METHODS)}")

def _kept(solver: Solver, method: str, alpha: float) -> Solution:
    """The solution of a moving f, remembered: ``shuffled`` asks for w's again."""
    if (method, alpha) not in solver.known:
        solver.known[method, alpha] = solver.solve(alpha, method)
    return solver.known[method, alpha]
