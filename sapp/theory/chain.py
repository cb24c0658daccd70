"""The paper's motivating example: a chain with two arms, one of which the log hardly knows.

    left end ◂── ℓ₃ ◂── ℓ₂ ◂── ℓ₁ ◂── s₀ ──▸ r₁ ──▸ r₂ ──▸ r₃ ──▸ right end

The log holds m trajectories to the left and n to the right, so β̂ always steps outwards on the arms. The policy judged
is uniform. A divergence between policies cannot distinguish the arms: π and β̂ are the same pair of distributions,
mirrored. The ratio can: by symmetry d^π is equal on mirrored states, d^D is not, so w(ℓ)/w(r) = n/m. A poorly known arm
has the larger w; the uncertainty of an average over its visits grows like √(n/m) only, which is what f = √w gives.

Two remarks on the example as printed. The log never shows a step inwards, so CQL's and KL's divergences of a uniform
policy are infinite on every arm state, on both arms, with and without w; only TV and MMD (or a smoothed β̂) show the
picture. And smoothing makes CQL and KL charge the *better* known arm more, because there β̂ is nearer to deterministic:
CQL's by about n/m, which w then just cancels.

What the log leaves open is taken as everywhere in ``sapp.tabular``: a step never seen stays in place and pays nothing.
Entering an end pays a coin with mean ``left_reward`` or ``right_reward`` and finishes the episode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

from sapp.core.errors import SappError
from sapp.tabular.divergence import BOUNDED, divergence
from sapp.tabular.evaluation import evaluate_penalty, weighted
from sapp.tabular.logs import EmpiricalMDP, Log, empirical
from sapp.tabular.mdp import FiniteMDP, Floats
from sapp.tabular.occupancy import unnormalised_occupancy

LEFT, RIGHT = 0, 1
_LONGEST = 1_000
SPREADS = {"none": "no pessimism", "pp": "PP", "w": "SA-PP, w", "sqrt-w": "SA-PP, √w"}
"""Ways to spread pessimism, with their labels."""


@dataclass(frozen=True)
class Setting:
    """The example's numbers: arm length, trajectories and mean reward to each side, γ, α, divergence, smoothing."""

    arm: int = 3
    left: int = 10
    right: int = 90
    left_reward: float = 0.6
    right_reward: float = 0.5
    discount: float = 0.95
    alpha: float = 0.1
    divergence: str = "tv"
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.arm < 1:
            raise SappError(f"arm is {self.arm}: it needs at least one state")
        if self.arm > _LONGEST:
            raise SappError(f"arm is {self.arm}: at most {_LONGEST:,} states are solved exactly")
        if self.left < 1 or self.right < 1:
            raise SappError(f"left is {self.left} and right {self.right}: the log needs a trajectory to each side")
        if not (0 <= self.left_reward <= 1 and 0 <= self.right_reward <= 1):
            raise SappError("left_reward and right_reward are chances to be paid: they must lie in [0, 1]")
        if not 0 <= self.discount < 1:
            raise SappError(f"discount is {self.discount}: it must lie in [0, 1)")
        if not self.alpha >= 0:
            raise SappError(f"alpha is {self.alpha}: it must not be negative")
        if not (math.isfinite(self.alpha) and math.isfinite(self.smoothing)):
            raise SappError(f"alpha is {self.alpha} and smoothing {self.smoothing}: both must be finite")
        if not self.smoothing >= 0:
            raise SappError(f"smoothing is {self.smoothing}: it must not be negative")
        divergence(self.divergence)

    @property
    def finite(self) -> bool:
        """Whether the divergence of a uniform policy is finite here."""
        return self.divergence in BOUNDED or self.smoothing > 0

    @property
    def names(self) -> list[str]:
        """The states from left to right."""
        lefts = [f"ℓ{_subscript(k)}" for k in range(self.arm, 0, -1)]
        return ["◂", *lefts, "s₀", *(f"r{_subscript(k)}" for k in range(1, self.arm + 1)), "▸"]

    @property
    def mdp(self) -> FiniteMDP:
        """The true chain; in it a step inwards goes inwards."""
        states, centre = 2 * self.arm + 3, self.arm + 1
        transition, reward = np.zeros((states, 2, states)), np.zeros((states, 2))
        for s in range(states):
            end = s in (0, states - 1)
            transition[s, LEFT, s if end else s - 1] = 1
            transition[s, RIGHT, s if end else s + 1] = 1
        reward[1, LEFT], reward[-2, RIGHT] = self.left_reward, self.right_reward
        return FiniteMDP(transition, reward, np.eye(states)[centre], self.discount)

    @property
    def log(self) -> Log:
        """m walks from s₀ to the left end and n to the right one; each end pays exactly its mean."""
        states, centre = 2 * self.arm + 3, self.arm + 1
        counts = np.zeros((states, 2, states), np.int64)
        for k in range(self.arm + 1):
            counts[centre - k, LEFT, centre - k - 1] = self.left
            counts[centre + k, RIGHT, centre + k + 1] = self.right
        return Log(counts, counts.sum(-1) * self.mdp.reward)

    @property
    def model(self) -> EmpiricalMDP:
        """The empirical MDP of the log."""
        return empirical(self.log, self.mdp.start, self.discount, smoothing=self.smoothing)


def _subscript(number: int) -> str:
    return "".join(chr(ord("₀") + int(digit)) for digit in str(number))


@dataclass(frozen=True)
class Chain:
    """What the example computes for the uniform policy, state by state [S] (ends included; they are not in the log).

    occupancy, data: d^π and d^D, each summing to 1 over the logged states; ratio: their quotient w, of mean 1 under
    d^D; distance: Dis(π, β̂); pessimism: α·f·Dis by spread, f of mean 1; value: by spread, in the empirical MDP; truth:
    V^π.
    """

    setting: Setting
    occupancy: Floats
    data: Floats
    ratio: Floats
    distance: Floats
    pessimism: dict[str, Floats]
    value: dict[str, Floats]
    truth: Floats

    @property
    def skew(self) -> float:
        """w(ℓ₁)/w(r₁) = n/m."""
        centre = self.setting.arm + 1
        return float(self.ratio[centre - 1] / self.ratio[centre + 1])


def chain(
    arm: int = 3, left: int = 10, right: int = 90, left_reward: float = 0.6, right_reward: float = 0.5,
    discount: float = 0.95, alpha: float = 0.1, divergence: str = "tv", smoothing: float = 0.0,
) -> Chain:
    """The example at one skew of coverage, for the uniform policy."""
    setting = Setting(arm, left, right, left_reward, right_reward, discount, alpha, divergence, smoothing)
    policy = np.full((2 * arm + 3, 2), 0.5)
    model = setting.model
    occupancy, distance = unnormalised_occupancy(model, policy), _distance(setting, model, policy)
    spread = _charges(setting, model, occupancy, distance)
    value = {name: evaluate_penalty(model, policy, charge) for name, charge in spread.items()}
    share = np.where(model.seen, occupancy, 0.0)
    share = share / share.sum()
    ratio = np.where(model.seen, share / np.where(model.seen, model.visits, 1.0), 0.0)
    return Chain(setting, share, model.visits, ratio, distance, spread, value, setting.mdp.value(policy))


def _distance(setting: Setting, model: EmpiricalMDP, policy: Floats) -> Floats:
    """Dis(π, β̂) [..., S]; nothing at the ends, where there is nothing to choose."""
    return np.where(model.seen, divergence(setting.divergence)(policy, model.behaviour), 0.0)


def _charges(setting: Setting, model: EmpiricalMDP, occupancy: Floats, distance: Floats) -> dict[str, Floats]:
    """α·f·Dis [..., S] for each spread, every f of mean 1 under d^D."""
    visits = np.where(model.seen, model.visits, 1.0)
    ratio = np.where(model.seen, occupancy / visits, 0.0)
    weights = {"none": 0.0 * ratio, "pp": np.ones_like(ratio), "w": ratio, "sqrt-w": np.sqrt(ratio)}
    result = {}
    for name, weight in weights.items():
        mean = np.sum(model.visits * weight, -1, keepdims=True)
        result[name] = setting.alpha * weighted(weight / np.where(mean > 0, mean, 1.0), distance)
    return result


# --- skewing the coverage -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """The example as the share of left trajectories runs over (0, 1), their total held [K].

    share; known_left, known_right: pessimism at ℓ₁ and r₁ by spread; value: estimated ⟨ρ, v⟩ of the uniform policy by
    spread; truth: its true value, which no coverage changes.
    """

    share: Floats
    known_left: dict[str, Floats]
    known_right: dict[str, Floats]
    value: dict[str, Floats]
    truth: float


def sweep(setting: Setting | None = None, total: int = 100, points: int = 25) -> Sweep:
    """Skew the coverage from 2 % to 98 % of ``total`` trajectories to the left."""
    setting = Setting() if setting is None else setting
    if total < 4 or points < 2:
        raise SappError(f"total is {total} and points {points}: a sweep needs at least 4 trajectories and 2 points")
    lefts = np.unique(np.linspace(max(1, round(0.02 * total)), min(total - 1, round(0.98 * total)), points).round())
    found = [_chain(replace(setting, left=int(m), right=total - int(m))) for m in lefts]
    centre = setting.arm + 1
    return Sweep(
        lefts / total,
        {name: np.array([c.pessimism[name][centre - 1] for c in found]) for name in SPREADS},
        {name: np.array([c.pessimism[name][centre + 1] for c in found]) for name in SPREADS},
        {name: np.array([c.value[name][centre] for c in found]) for name in SPREADS},
        float(found[0].truth[centre]),
    )


def _chain(setting: Setting) -> Chain:
    return chain(**{name: getattr(setting, name) for name in Setting.__dataclass_fields__})


@dataclass(frozen=True)
class Choice:
    """A choice between policies that go left at s₀ with probability ½, ¼, ¾, 0 or 1 [K], and the chances of its log.

    truth: their true values; occupancy, unnormalised, and distance Dis(π, β̂) [K, S]; gain [wins left, wins right, K]:
    their value in the empirical MDP for each outcome of the coins; chance [wins left, wins right]: of that outcome.
    """

    model: EmpiricalMDP
    truth: Floats
    occupancy: Floats
    distance: Floats
    gain: Floats
    chance: Floats

    def expected_loss(self, cost: Floats) -> float:
        """Expected true value lost by the policy of the largest gain minus cost [K]; ties go nearest to uniform."""
        picked = np.argmax(np.round(self.gain - cost, 12), -1)
        return float(np.sum(self.chance * (self.truth.max() - self.truth[picked])))

    def cost(self, charge: Floats) -> Floats:
        """⟨d, charge⟩ of charges [K, S]; what is never visited costs nothing."""
        visited = self.occupancy > 0
        return np.asarray(np.sum(np.where(visited, self.occupancy * np.where(visited, charge, 0.0), 0.0), -1))


def choice(setting: Setting, follow: bool = False) -> Choice:
    """The choice in a setting; on the arms the policies are uniform, or step outwards as the log does (``follow``)."""
    model, mdp = setting.model, setting.mdp
    centre, states = setting.arm + 1, 2 * setting.arm + 3
    lefts = np.array([0.5, 0.25, 0.75, 0.0, 1.0])
    policies = np.full((len(lefts), states, 2), 0.5)
    if follow:
        policies[:, :centre], policies[:, centre + 1 :] = (1.0, 0.0), (0.0, 1.0)
    policies[:, centre] = np.stack([lefts, 1 - lefts], -1)
    occupancy = unnormalised_occupancy(model, policies)
    reach_left = occupancy[:, 1] * policies[:, 1, LEFT]
    reach_right = occupancy[:, -2] * policies[:, -2, RIGHT]
    wins_left, wins_right = np.arange(setting.left + 1), np.arange(setting.right + 1)
    chance = np.outer(
        binom.pmf(wins_left, setting.left, setting.left_reward),
        binom.pmf(wins_right, setting.right, setting.right_reward),
    )
    gain = (
        (wins_left / setting.left)[:, None, None] * reach_left
        + (wins_right / setting.right)[None, :, None] * reach_right
    )
    truth = mdp.expected(mdp.value(policies))
    return Choice(model, truth, occupancy, _distance(setting, model, policies), gain, chance)
