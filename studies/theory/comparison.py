"""Does state-aware pessimism lower the *true* suboptimality? Measured on random problems, α tuned on other ones.

For every instance each method picks argmax_{π∈Π} ⟨ρ, v_p(π)⟩ from the same class of policies; its loss is the exact
(1−γ)·⟨ρ, V^{π*} − V^{π̂}⟩. α is the one with the least mean loss on the tuning instances; losses are reported on the
others, with the paired difference to PP, Student's interval and p-value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sapp.core.errors import SappError
from sapp.core.statistics import student
from sapp.tabular.evaluation import Pessimism, penalty
from sapp.tabular.mdp import Floats, softmax_policy
from sapp.tabular.weights import Fixed, LogMinMax, Ratio, Uniform, Weights
from sapp.theory.families import Instances, instances

GRID = tuple(np.geomspace(1e-4, 100, 19))
"""α to tune over; 0 is always a candidate, so a method can switch its pessimism off."""
METHODS = ("none", "count", "pp", "sa", "sa-root", "sa-clipped", "sa-log", "random", "shuffled")
"""No pessimism; n^{-1/2}; PP; SA-PP with w, √w, w ∧ 2, log-min–max; uniform random weights; w permuted over states."""


@dataclass(frozen=True)
class Comparison:
    """One method on one family: the tuned α, the mean loss on the test instances, and its paired difference to PP.

    ``p`` is that of no difference; whoever looks at several corrects it (``sapp.core.comparisons.holm``).
    """

    family: str
    divergence: str
    method: str
    alpha: float
    loss: float
    difference: float
    interval: tuple[float, float]
    p: float


def compare(
    family: str, divergence: str = "cql", discount: float = 0.9, mdps: int = 400, policies: int = 200, seed: int = 0,
    grid: Sequence[float] = GRID,
) -> list[Comparison]:
    """Compare the methods on ``mdps`` instances of a family, half to tune α on and half to report."""
    if mdps < 4:
        raise SappError(f"mdps is {mdps}: at least 4 are needed, half of them to tune alpha on")
    if policies < 2:
        raise SappError(f"policies is {policies}: at least 2 are needed")
    made = _with_policies(instances(family, range(seed, seed + mdps), discount), policies, seed)
    gain = made.model.expand().expected(made.empirical_value)
    loss = (1 - discount) * made.gap
    alphas = np.array([0.0, *grid])
    half = mdps // 2
    found: dict[str, tuple[float, Floats]] = {}
    for method in METHODS:
        cost = _cost(made, method, divergence, np.random.default_rng(seed))
        chosen = (gain[:, None] - alphas[:, None] * cost[:, None]).argmax(-1)
        losses = np.take_along_axis(loss, chosen, 1)
        best = 0 if method == "none" else int(losses[:half].mean(0).argmin())
        found[method] = float(alphas[best]), losses[half:, best]
    plain = found["pp"][1]
    result = []
    for method, (alpha, losses) in found.items():
        difference = student(losses - plain)
        estimate, *ends = difference.interval()
        low, high = ends
        result.append(
            Comparison(family, divergence, method, alpha, float(losses.mean()), estimate, (low, high), difference.p)
        )
    return result


def _with_policies(made: Instances, count: int, seed: int) -> Instances:
    """The instances with a larger class: mixtures of β̂ with random policies in its support."""
    rng = np.random.default_rng([seed, count])
    support = made.model.support[:, None]
    shape = (len(made.seeds), count, *support.shape[-2:])
    random = softmax_policy(rng.uniform(0, 8, (*shape[:2], 1, 1)) * rng.normal(size=shape), support)
    share = np.linspace(0, 1, count)[None, :, None, None]
    return replace(made, policies=(1 - share) * made.model.behaviour[:, None] + share * random)


def _cost(made: Instances, method: str, divergence: str, rng: np.random.Generator) -> Floats:
    """⟨d_D^π, p⟩ [N, K] of a method."""
    wide = made.model.expand()
    kinds: dict[str, Weights] = {
        "sa": Ratio(), "sa-root": Ratio(power=0.5), "sa-clipped": Ratio(ceiling=2.0), "sa-log": LogMinMax(),
    }
    if method in ("none", "count"):
        charge = made.uncertainty
    elif method == "random":
        weights = rng.uniform(0, 1, (len(made.seeds), 1, wide.states))
        charge = penalty(wide, made.policies, Pessimism(1.0, divergence, Fixed(weights)))
    elif method == "shuffled":
        plain = penalty(wide, made.policies, Pessimism(1.0, divergence))
        weights = (1 - wide.discount) * made.occupancy / wide.visits
        order = rng.permuted(np.tile(np.arange(wide.states), (len(made.seeds), 1)), axis=-1)
        charge = np.take_along_axis(weights, order[:, None].repeat(made.size, 1), -1) * plain
    else:
        charge = penalty(wide, made.policies, Pessimism(1.0, divergence, kinds.get(method, Uniform())))
    return np.sum(made.occupancy * charge, -1)
