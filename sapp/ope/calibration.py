"""How much wider than its replicates an estimate's interval has to be, so that it holds what it promises.

Bags know the chance of the logs and of the seeds. They do not know an error that all of them share: that a network of
this size, fitted for so long to logs that hardly visit where the policy goes, is wrong there in the same way each time.
How large that is was measured on problems whose true values are known, and tested on others: studies/ope. Exact
solutions of finite problems share no such error.
"""

from __future__ import annotations

from sapp.ope.doubly_robust import Values

NETWORKS, EXACT = 2.9, 1.0
"""Widths of intervals, in those that the replicates give: of estimates by networks, and from solved equations."""


def students_factor(episodes: int) -> float:
    """How much wider Student's interval of so many episodes is than that of episodes drawn anew; tends to 1."""
    from scipy.stats import norm, t

    if episodes < 2:
        return 1.0
    return float(t.ppf(0.975, episodes - 1) / norm.ppf(0.975) * (episodes / (episodes - 1)) ** 0.5)


def widened(values: Values, factor: float) -> Values:
    """The same estimates with replicates ``factor`` times as far from them; intervals and differences widen alike."""
    return Values(values.point, values.point + factor * (values.replicates - values.point))
