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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.core.figures import write_figure
from sapp.tabular.divergence import BOUNDED, divergence
from sapp.tabular.evaluation import evaluate_penalty, weighted
from sapp.tabular.logs import EmpiricalMDP, Log, empirical
from sapp.tabular.mdp import FiniteMDP, Floats
from sapp.tabular.occupancy import unnormalised_occupancy

if TYPE_CHECKING:
    from rich.console import Console

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
    spread, occupancy = _pessimism(setting, model, policy)
    value = {name: evaluate_penalty(model, policy, charge) for name, charge in spread.items()}
    share = np.where(model.seen, occupancy, 0.0)
    share = share / share.sum()
    ratio = np.where(model.seen, share / np.where(model.seen, model.visits, 1.0), 0.0)
    distance = _distance(setting, model, policy)
    return Chain(setting, share, model.visits, ratio, distance, spread, value, setting.mdp.value(policy))


def _distance(setting: Setting, model: EmpiricalMDP, policy: Floats) -> Floats:
    """Dis(π, β̂) [..., S]; nothing at the ends, where there is nothing to choose."""
    return np.where(model.seen, divergence(setting.divergence)(policy, model.behaviour), 0.0)


def _pessimism(setting: Setting, model: EmpiricalMDP, policy: Floats) -> tuple[dict[str, Floats], Floats]:
    """α·f·Dis [..., S] for each spread, every f of mean 1 under d^D; and the unnormalised occupancy."""
    occupancy = unnormalised_occupancy(model, policy)
    visits = np.where(model.seen, model.visits, 1.0)
    ratio = np.where(model.seen, occupancy / visits, 0.0)
    distance = _distance(setting, model, policy)
    weights = {"none": 0.0 * ratio, "pp": np.ones_like(ratio), "w": ratio, "sqrt-w": np.sqrt(ratio)}
    result = {}
    for name, weight in weights.items():
        mean = np.sum(model.visits * weight, -1, keepdims=True)
        result[name] = setting.alpha * weighted(weight / np.where(mean > 0, mean, 1.0), distance)
    return result, occupancy


# --- skewing the coverage -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """The example as the share of left trajectories runs over (0, 1), their total held [K].

    share; known_left, known_right: pessimism at ℓ₁ and r₁ by spread; value: estimated ⟨ρ, v⟩ of the uniform policy by
    spread; truth: its true value, which no coverage changes; loss: by spread, the expected true value lost by choosing
    the policy that looks best (``choice_loss``); best: the true value of the best policy in that class.
    """

    share: Floats
    known_left: dict[str, Floats]
    known_right: dict[str, Floats]
    value: dict[str, Floats]
    truth: float
    loss: dict[str, Floats]
    best: float


def sweep(setting: Setting | None = None, total: int = 100, points: int = 25) -> Sweep:
    """Skew the coverage from 2 % to 98 % of ``total`` trajectories to the left."""
    setting = Setting() if setting is None else setting
    if total < 4 or points < 2:
        raise SappError(f"total is {total} and points {points}: a sweep needs at least 4 trajectories and 2 points")
    lefts = np.unique(np.linspace(max(1, round(0.02 * total)), min(total - 1, round(0.98 * total)), points).round())
    found = [_chain(replace(setting, left=int(m), right=total - int(m))) for m in lefts]
    losses = [choice_loss(c.setting) for c in found]
    centre = setting.arm + 1
    return Sweep(
        lefts / total,
        {name: np.array([c.pessimism[name][centre - 1] for c in found]) for name in SPREADS},
        {name: np.array([c.pessimism[name][centre + 1] for c in found]) for name in SPREADS},
        {name: np.array([c.value[name][centre] for c in found]) for name in SPREADS},
        float(found[0].truth[centre]),
        {name: np.array([loss[name] for loss, _ in losses]) for name in SPREADS},
        losses[0][1],
    )


def _chain(setting: Setting) -> Chain:
    return chain(**{name: getattr(setting, name) for name in Setting.__dataclass_fields__})


def choice_loss(setting: Setting, follow: bool = False) -> tuple[dict[str, float], float]:
    """Expected true value lost by picking the policy that looks best, by spread; and the best true value in the class.

    The class goes left at s₀ with probability 0, ¼, ½, ¾ or 1 and is uniform on the arms, as the paper's π is
    (``follow``: steps outwards there, as the log does). Each trajectory's reward is a coin, so what looks best is
    random; the expectation over the two binomial counts is exact. Ties go to the policy nearest to uniform.
    """
    model, mdp = setting.model, setting.mdp
    centre, states = setting.arm + 1, 2 * setting.arm + 3
    lefts = np.array([0.5, 0.25, 0.75, 0.0, 1.0])
    policies = np.full((len(lefts), states, 2), 0.5)
    if follow:
        policies[:, :centre], policies[:, centre + 1 :] = (1.0, 0.0), (0.0, 1.0)
    policies[:, centre] = np.stack([lefts, 1 - lefts], -1)
    truth = mdp.expected(mdp.value(policies))
    spread, occupancy = _pessimism(setting, model, policies)
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
    losses = {}
    for name, charge in spread.items():
        cost = np.sum(np.where(occupancy > 0, occupancy * np.where(occupancy > 0, charge, 0.0), 0.0), -1)
        picked = np.argmax(np.round(gain - cost, 12), -1)
        losses[name] = float(np.sum(chance * (truth.max() - truth[picked])))
    return losses, float(truth.max())


# --- showing it -----------------------------------------------------------------------------------------------------

COLOURS = {"none": "#9a9a9a", "pp": "#1f77b4", "w": "#c8102e", "sqrt-w": "#e8943b"}


def print_chain(
    console: Console, divergence: str = "tv", alpha: float = 0.1, left: int = 10, right: int = 90, arm: int = 3,
    smoothing: float = 0.0,
) -> None:
    """The example as tables: state by state at one skew, then as the coverage is skewed."""
    from rich.table import Table

    found = chain(arm=arm, left=left, right=right, divergence=divergence, alpha=alpha, smoothing=smoothing)
    setting = found.setting
    title = f"{left} trajectories to the left, {right} to the right; uniform π; {divergence.upper()}, α = {alpha:g}"
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for head in ("state", "d^π", "d^D", "w", "Dis", "α·Dis", "α·w·Dis", "V^π", "v none", "v PP", "v SA-PP"):
        table.add_column(head, justify="left" if head == "state" else "right")
    for s, name in enumerate(setting.names[1:-1], 1):
        numbers = (
            found.occupancy[s], found.data[s], found.ratio[s], found.distance[s], found.pessimism["pp"][s],
            found.pessimism["w"][s], found.truth[s], found.value["none"][s], found.value["pp"][s], found.value["w"][s],
        )
        table.add_row(name, *(_number(x) for x in numbers), style="bold" if s == arm + 1 else "")
    console.print(table)
    console.print(f"w(ℓ)/w(r) = {found.skew:.3g} = n/m on mirrored states; the uncertainty of an average asks for "
                  f"√(n/m) = {np.sqrt(right / left):.3g}, which is f = √w.")
    if not setting.finite:
        console.print(f"[yellow]{divergence.upper()} is infinite on both arms, with and without w: the log shows no "
                      "step inwards. Use tv or mmd, or smoothing above 0.[/yellow]")
        return
    if divergence not in BOUNDED and left != right:
        console.print(f"Smoothed, Dis on the better known arm is {_mirrored(found):.3g} times that on the other.")
    console.print(_sweep_table(sweep(setting, total=left + right, points=9)))
    console.print(_sweep_note(setting, left + right))


def _mirrored(found: Chain) -> float:
    """Dis on the better known arm over Dis on the other."""
    centre, setting = found.setting.arm + 1, found.setting
    quotient = float(found.distance[centre + 1] / found.distance[centre - 1])
    return quotient if setting.right > setting.left else 1 / quotient


def _sweep_table(found: Sweep) -> Any:
    from rich.table import Table

    table = Table(
        title="As the coverage is skewed", title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    table.add_column("left share", justify="right")
    for head in ("ℓ₁/r₁ PP", "ℓ₁/r₁ w", "ℓ₁/r₁ √w", "v none", "v PP", "v w", "lost none", "lost PP", "lost w",
                 "lost √w"):
        table.add_column(head, justify="right")
    for k, share in enumerate(found.share):
        with np.errstate(invalid="ignore", divide="ignore"):  # without pessimism there is no ratio of it
            ratios = [found.known_left[name][k] / found.known_right[name][k] for name in ("pp", "w", "sqrt-w")]
        values = [found.value[name][k] for name in ("none", "pp", "w")]
        losses = [found.loss[name][k] for name in SPREADS]
        table.add_row(f"{share:.0%}", *(f"{x:.2f}" for x in (*ratios, *values)), *(f"{x:.3f}" for x in losses))
    table.caption = (
        f"ℓ₁/r₁: pessimism left over right, of PP and of SA-PP with w and √w. v: estimate of the uniform policy at s₀, "
        f"whose true value is {found.truth:.3f}. lost: expected true value lost "
        f"by choosing how often to go left, out of {found.best:.3f}."
    )
    table.caption_justify = "left"
    return table


def _sweep_note(setting: Setting, total: int) -> str:
    few = max(1, round(0.1 * total))
    rare = replace(setting, left=few, right=total - few)
    parts = []
    for follow, words in ((False, "uniform on the arms"), (True, "outwards on the arms, as the log")):
        loss = choice_loss(rare, follow)[0]
        parts.append(f"{words}: " + ", ".join(f"{SPREADS[name]} {loss[name]:.4f}" for name in SPREADS))
    return f"Expected loss at {few} of {total} to the left, policies " + "; ".join(parts) + "."


def _number(x: float) -> str:
    if np.isinf(x):
        return "∞" if x > 0 else "−∞"
    return f"{x:.3f}" if abs(x) < 100 else f"{x:.0f}"


def plot_chain(
    path: str | Path, divergence: str = "tv", alpha: float = 0.1, left: int = 10, right: int = 90, arm: int = 3,
    smoothing: float = 0.0,
) -> None:
    """The example as one figure: three panels at one skew, three as the coverage is skewed."""
    require("matplotlib", "drawing figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = chain(arm=arm, left=left, right=right, divergence=divergence, alpha=alpha, smoothing=smoothing)
    setting = found.setting
    if not setting.finite:
        raise SappError(f"{divergence} is infinite for a uniform policy here: use tv or mmd, or smoothing above 0")
    curves = sweep(setting, total=left + right)
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    (a, b, c), (d, e, f) = figure.subplots(2, 3)
    inner = slice(1, -1)
    x = np.arange(len(setting.names))[inner]
    names = [_tex(name) for name in setting.names[inner]]
    a.bar(x, found.data[inner], width=0.6, color="#c9ced6", label="the log, $d^D$")
    a.plot(x, found.occupancy[inner], "o-", color="#2e8b57", label="uniform policy, $d^π$")
    a.set(title=f"where the log is ({left} left, {right} right)")
    b.bar(x, found.ratio[inner], width=0.6, color="#c8102e")
    b.axhline(1, color="#1f1f1f", lw=0.8, ls=":")
    b.set(title=f"$w = d^π/d^D$, mean 1:  $w(ℓ)/w(r) = {found.skew:.3g}$")
    for shift, name in zip((-0.27, 0, 0.27), ("pp", "w", "sqrt-w"), strict=True):
        c.bar(x + shift, found.pessimism[name][inner], width=0.25, color=COLOURS[name], label=SPREADS[name])
    c.set(title=f"pessimism $α·f·$Dis ({divergence.upper()}, α = {alpha:g})")
    for axes in (a, b, c):
        axes.set_xticks(x, names)
    quotient = (1 - curves.share) / curves.share
    d.plot(curves.share, np.sqrt(quotient), color="#2e8b57", lw=6, alpha=0.3, label="uncertainty, $\\sqrt{n/m}$")
    for name in ("pp", "w", "sqrt-w"):
        tilt = curves.known_left[name] / curves.known_right[name]
        d.plot(curves.share, tilt, color=COLOURS[name], label=SPREADS[name])
    d.set(title="pessimism at $ℓ_1$ over that at $r_1$", yscale="log")
    e.axhline(curves.truth, color="#1f1f1f", ls=":", label="true value")
    for name in SPREADS:
        e.plot(curves.share, curves.value[name], color=COLOURS[name], label=SPREADS[name])
        f.plot(curves.share, curves.loss[name], color=COLOURS[name], label=SPREADS[name])
    e.set(title="estimated value of the uniform policy at $s_0$")
    f.set(title=f"true value lost by choosing a side ({_better(setting)})")
    f.set_ylim(bottom=0)
    for axes in (d, e, f):
        axes.axvline(left / (left + right), color="#1f1f1f", lw=0.7, alpha=0.4)
        axes.set_xlabel("share of the trajectories that go left")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    for axes in (a, b, c, d, e, f):
        axes.set_title(axes.get_title(), loc="left", fontsize=11)
        axes.set_title("", loc="center")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.2)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8.5)
    write_figure(figure, Path(path))


def _better(setting: Setting) -> str:
    difference = setting.left_reward - setting.right_reward
    return "both pay the same" if difference == 0 else f"{'left' if difference > 0 else 'right'} pays more"


def _tex(name: str) -> str:
    digits: Sequence[str] = [str(ord(sign) - ord("₀")) for sign in name[1:]]
    return f"${name[0]}_{{{''.join(digits)}}}$"
