"""The families of problems that the audit runs over: an MDP, the counts of a log, and a finite class of policies.

Every instance is made from (family, seed) alone. The counts n(s,a) and the policies are fixed before successors are
drawn, and each pair's successors are independent, which is the setting in which Hoeffding's inequality applies to the
empirical MDP. The policies stay in the support of β̂, so every divergence is finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sapp.core.errors import SappError
from sapp.tabular import mdp as problems
from sapp.tabular.bounds import c0_printed
from sapp.tabular.evaluation import uncertainty
from sapp.tabular.logs import Counts, EmpiricalMDP, draw_successors, empirical
from sapp.tabular.mdp import FiniteMDP, Floats, one_hot, random_policies, solve
from sapp.tabular.occupancy import unnormalised_occupancy

POLICIES = 12
"""Policies in the class of an ordinary instance."""
DELTA = 0.05
"""δ of the probabilistic statements."""

Parts = tuple[FiniteMDP, Counts, Floats]
"""An MDP, pair counts [S, A], and policies [K, S, A]."""


def _class_of(rng: np.random.Generator, mdp: FiniteMDP, pairs: Counts, with_behaviour: bool) -> Floats:
    """β̂ or a policy 3 % away from it, one 10 % away, the myopic one, and random ones from spread to nearly greedy."""
    support = pairs > 0
    behaviour = pairs / pairs.sum(-1, keepdims=True)
    scales = np.linspace(0.5, 6.0, POLICIES - 3)[:, None, None]
    random = problems.softmax_policy(scales * rng.normal(size=(POLICIES - 3, *pairs.shape)), support)
    first = behaviour if with_behaviour else 0.97 * behaviour + 0.03 * random[0]
    myopic = one_hot(np.where(support, mdp.reward, -np.inf).argmax(-1), mdp.actions)
    return np.concatenate([np.stack([first, 0.9 * behaviour + 0.1 * random[-1], myopic]), random])


def _counts(
    rng: np.random.Generator, mdp: FiniteMDP, size: int, behaviour: Floats, evenness: float = 1.0
) -> Counts:
    """Multinomial pair counts under a random state distribution, each allowed pair at least once."""
    joint = rng.dirichlet(np.full(mdp.states, evenness))[:, None] * behaviour
    return (rng.multinomial(size, joint.ravel() / joint.sum()).reshape(joint.shape) + (behaviour > 0)).astype(np.int64)


def _garnet(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    mdp = problems.garnet(rng, 1, 5, 3, 3, discount)[0]
    pairs = _counts(rng, mdp, 200, random_policies(rng, (5, 3), scale=1.0))
    return mdp, pairs, _class_of(rng, mdp, pairs, seed % 2 == 0)


def _sparse(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    mdp = problems.garnet(rng, 1, 6, 4, 2, discount)[0]
    support = rng.random((6, 4)).argsort(-1) < 2
    pairs = _counts(rng, mdp, 60, random_policies(rng, (6, 4), support, 1.0), 0.3)
    return mdp, pairs, _class_of(rng, mdp, pairs, seed % 2 == 0)


def _chain(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    mdp = problems.chain(rng, 1, 7, 0.1, discount)[0]
    pairs = _counts(rng, mdp, 300, random_policies(rng, (7, 2), scale=1.5), 0.5)
    return mdp, pairs, _class_of(rng, mdp, pairs, seed % 2 == 0)


def _grid(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    mdp = problems.grid(rng, 1, 3, 0.2, discount)[0]
    pairs = _counts(rng, mdp, 400, random_policies(rng, (9, 4), scale=1.0))
    return mdp, pairs, _class_of(rng, mdp, pairs, seed % 2 == 0)


def _rare(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    """A hub and three states around it; one is hardly ever logged, and a policy that wants to stays there for ever."""
    transition = np.zeros((4, 2, 4))
    transition[0] = np.array([[0, 0.5, 0.5, 0], [0, 0, 0, 1]])
    transition[1:3] = np.array([[1, 0, 0, 0], [0.5, 0.25, 0.25, 0]])
    transition[3] = np.array([[0, 0, 0, 1], [0.2, 0, 0, 0.8]])
    start = np.array([1.0, 0, 0, 0])
    mdp = FiniteMDP(transition, rng.uniform(-1, 1, (4, 2)), start, discount)
    pairs = rng.integers(2_000, 4_000, (4, 2))
    pairs[3] = rng.integers(1, 4, 2)
    return mdp, pairs, _class_of(rng, mdp, pairs, seed % 2 == 0)


def _close(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    """Garnet problems whose policies are all within 10 % of β̂, which is not among them in half of the instances."""
    mdp = problems.garnet(rng, 1, 5, 3, 3, discount)[0]
    pairs = _counts(rng, mdp, 2_000, random_policies(rng, (5, 3), scale=1.0))
    behaviour = pairs / pairs.sum(-1, keepdims=True)
    shares = np.geomspace(1e-3, 0.1, POLICIES)[:, None, None] * (np.arange(POLICIES) + seed % 2 > 0)[:, None, None]
    return mdp, pairs, (1 - shares) * behaviour + shares * random_policies(rng, (POLICIES, 5, 3), scale=3.0)


def _plenty(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    """Garnet problems with about 10⁸ transitions from each pair: C₀n^{-1/2} is small and the bounds say something."""
    mdp = problems.garnet(rng, 1, 4, 3, 3, discount)[0]
    pairs = rng.integers(10**7, 10**9, (4, 3))
    return mdp, pairs, _class_of(rng, mdp, pairs, seed % 2 == 0)


ARMS = 24
"""Lotteries to choose between in the family ``arms``."""


def _arms(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    """One MDP, a new log each time: a choice between lotteries, the best one known well, the others from 400 draws.

    Action 0 wins (reward 1 for ever) with probability (1 + m)/2, any other with ½; losing costs 1 for ever. m is 3 %
    above what Lemma 1 as printed lets one lose.
    """
    width = (1 - discount) * c0_printed(3, ARMS, ARMS, discount, DELTA) / 20
    mean = 1.03 * width / discount
    transition = np.zeros((3, ARMS, 3))
    transition[0, :, 1:] = 0.5
    transition[0, 0, 1:] = (1 + mean) / 2, (1 - mean) / 2
    transition[1, :, 1] = transition[2, :, 2] = 1
    reward = np.array([0.0, 1, -1])[:, None] * np.ones((3, ARMS))
    pairs = np.full((3, ARMS), 10**12)
    pairs[0, 1:] = 400
    policies = np.full((ARMS, 3, ARMS), 1 / ARMS)
    policies[:, 0] = np.eye(ARMS)
    return FiniteMDP(transition, reward, np.array([1.0, 0, 0]), discount), pairs, policies


def _feeder(rng: np.random.Generator, seed: int, discount: float) -> Parts:
    """One MDP, a new log each time: a state logged 20 000 times leads to one with a lottery, seen once per action."""
    transition = np.zeros((4, 2, 4))
    transition[0, :, 1] = 1
    transition[1, :, 2:] = 0.5
    transition[2, :, 2] = transition[3, :, 3] = 1
    reward = np.array([0.0, 0, 1, -1])[:, None] * np.ones((4, 2))
    pairs = np.full((4, 2), 10_000)
    pairs[1] = 1
    tilts = np.linspace(0.5, 0.95, POLICIES)
    policies = np.tile(np.stack([tilts, 1 - tilts], -1)[:, None], (1, 4, 1))
    return FiniteMDP(transition, reward, np.array([1.0, 0, 0, 0]), discount), pairs, policies


FAMILIES: dict[str, Callable[[np.random.Generator, int, float], Parts]] = {
    "garnet": _garnet, "sparse": _sparse, "chain": _chain, "grid": _grid, "rare": _rare, "close": _close,
    "plenty": _plenty, "arms": _arms, "feeder": _feeder,
}
"""The families by name."""

REDRAWN = ("arms", "feeder")
"""Families of one MDP whose log alone changes with the seed: over seeds, frequencies estimate probabilities."""


@dataclass(frozen=True)
class Instances:
    """Instances of one family under one γ: the true MDPs, the empirical ones, the policies [N, K, S, A]."""

    family: str
    seeds: tuple[int, ...]
    mdp: FiniteMDP
    model: EmpiricalMDP
    policies: Floats

    @property
    def size(self) -> int:
        """|Π|."""
        return int(self.policies.shape[1])

    @cached_property
    def occupancy(self) -> Floats:
        """d_D^π, unnormalised [N, K, S]."""
        return unnormalised_occupancy(self.model.expand(), self.policies)

    @cached_property
    def uncertainty(self) -> Floats:
        """n^{-1/2}_{D,π} [N, K, S]."""
        return np.asarray(uncertainty(self.policies, self.model.expand().pairs))

    @cached_property
    def visits_root(self) -> Floats:
        """n(s)^{-1/2} [N, 1, S]."""
        return self.model.pairs.sum(-1)[:, None] ** -0.5

    @cached_property
    def value(self) -> Floats:
        """V^π in the true MDP [N, K, S]."""
        return self.mdp.expand().value(self.policies)

    @cached_property
    def gap(self) -> Floats:
        """⟨ρ, V^{π*} − V^π⟩ [N, K]."""
        best = self.mdp.expected(self.mdp.optimal()[1])
        return best[:, None] - self.mdp.expand().expected(self.value)

    @cached_property
    def empirical_value(self) -> Floats:
        """V^π in the empirical MDP, without pessimism [N, K, S]."""
        return self.model.expand().value(self.policies)

    def propagate(self, charge: Floats) -> Floats:
        """(I − γAᵖP_D)⁻¹ charge [N, K, S]."""
        return solve(self.model.expand().resolvent_inverse(self.policies), charge)


def instances(family: str, seeds: Sequence[int], discount: float) -> Instances:
    """Make the instances of a family with these seeds."""
    if family not in FAMILIES:
        raise SappError(f"family {family!r} is unknown: use {', '.join(FAMILIES)}")
    if not 0 < discount < 1:
        raise SappError(f"discount is {discount}: it must lie between 0 and 1")
    order = list(FAMILIES).index(family)
    made = []
    for seed in seeds:
        rng = np.random.default_rng([order, seed])
        mdp, pairs, policies = FAMILIES[family](rng, seed, discount)
        made.append((mdp, draw_successors(mdp, rng, pairs), policies))
    true = [np.stack([getattr(m, name) for m, _, _ in made]) for name in ("transition", "reward", "start")]
    mdp = FiniteMDP(true[0], true[1], true[2], discount)
    models = [empirical(log, m.start, discount) for m, log, _ in made]
    names = ("transition", "reward", "start", "behaviour", "visits", "pairs", "support")
    stacked = {name: np.stack([getattr(model, name) for model in models]) for name in names}
    return Instances(
        family, tuple(seeds), mdp, EmpiricalMDP(discount=discount, **stacked), np.stack([p for _, _, p in made])
    )
