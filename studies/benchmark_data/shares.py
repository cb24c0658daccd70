"""Which snapshots stand for D4RL's policies, and for how much of each replay set: chosen from the card's measurements.

python -m studies.benchmark_data.shares            prints what each recipe should give, beside D4RL's figures
python -m studies.benchmark_data.shares --write    chooses anew and writes it into the card of the shipped policies

medium and expert are the snapshots whose mean return is nearest to D4RL's. A replay set begins with the uniform steps
with which D4RL's learner began; the snapshots that follow have the shares of training nearest to them, tilted by two
numbers: share ∝ stretch of training · exp(a · episodes per step + b · return per step). Of all shares that give a
certain mean return and number of episodes, those of this form are nearest to the run's own (least relative entropy), so
no snapshot is cut out or blown up without need. a and b bring both figures as near to D4RL's as the snapshots allow.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sapp.collect.benchmark.recipes import UNIFORM, Segment, recipe
from sapp.collect.benchmark.shipped import CARD, FOLDER, shipped
from sapp.core.files import write_text
from sapp.data.benchmark_names import NAMES, Name, parse
from studies.benchmark_data.levels import d4rl_return

UNIFORM_STEPS = 1_000
"""Uniform actions at the start of a replay set: those of D4RL's learner."""
GRAIN = 1_000
"""Shares are multiples of this: no policy comes in with a fraction of an episode."""
RETURN_WEIGHT, EPISODES_WEIGHT, ENTROPY_WEIGHT = 100.0, 1.0, 0.03
"""Of the squared log-ratios of mean return and of episodes to D4RL's, and of the relative entropy: the mean return
comes first, then the number of episodes, then nearness to the training run."""


class Expected(NamedTuple):
    """What a recipe should give, whole episodes aside.

    Attributes:
        return_mean: of an episode.
        episodes: how many.
    """

    return_mean: float
    episodes: float


def measured(environment: str, entry: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Mean return and mean length of every policy's episodes, those of uniform actions from D4RL's random file."""
    random = Name(environment, "random")
    found = {UNIFORM: (d4rl_return(random.text), random.transitions / random.d4rl_episodes)}
    return found | {one["name"]: (one["return"], one["length"]) for one in entry["snapshots"]}


def expected(segments: Sequence[Segment], policies: Mapping[str, tuple[float, float]]) -> Expected:
    """What segments should give, from mean return and length of each policy's episodes."""
    episodes = [count / policies[policy][1] for policy, count in segments]
    total = sum(number * policies[policy][0] for number, (policy, _) in zip(episodes, segments, strict=True))
    return Expected(total / sum(episodes), sum(episodes))


def choose(environment: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Medium, expert and the shares of the replay sets, for the card.

    Args:
        environment: of the policies.
        entry: the card's part about it: snapshots with their measurements, and the run's uniform steps.
    """
    policies = measured(environment, entry)
    steps = {one["name"]: int(one["step"]) for one in entry["snapshots"]}

    def nearest(quality: str, names: Sequence[str]) -> str:
        return min(names, key=lambda name: abs(policies[name][0] - d4rl_return(f"{environment}-{quality}")))

    expert = nearest("expert", list(steps))
    medium = nearest("medium", [name for name in steps if steps[name] <= steps[expert]])
    ends = {"medium-replay": medium, "full-replay": expert}
    shares = {
        quality: fit(Name(environment, quality), stretches(steps, int(entry["random_steps"]), steps[end]), policies)
        for quality, end in ends.items()
    }
    return {"medium": medium, "expert": expert, "shares": shares}


def stretches(steps: Mapping[str, int], random_steps: int, end: int) -> dict[str, int]:
    """The part of training nearest to each snapshot up to step ``end``, in training order."""
    chosen = sorted((step, name) for name, step in steps.items() if step <= end)
    middles = [(a + b) // 2 for (a, _), (b, _) in pairwise(chosen)]
    edges = [min(random_steps, end), *(max(random_steps, middle) for middle in middles), end]
    found = {name: b - a for (_, name), (a, b) in zip(chosen, pairwise(edges), strict=True)}
    return {name: width for name, width in found.items() if width} or {chosen[-1][1]: 1}


def fit(name: Name, widths: Mapping[str, int], policies: Mapping[str, tuple[float, float]]) -> dict[str, int]:
    """The shares of a replay set in D4RL's size: uniform steps first, then snapshots in training order."""
    from scipy.optimize import minimize

    rest = name.transitions - UNIFORM_STEPS
    prior = np.asarray(list(widths.values()), np.float64)
    prior /= prior.sum()
    per_step = np.asarray([(1 / policies[key][1], policies[key][0] / policies[key][1]) for key in widths])
    directions = (per_step - per_step.mean(0)) / np.maximum(per_step.std(0), 1e-12)

    def tilted(tilt: np.ndarray) -> np.ndarray:
        logits = np.log(prior) + directions @ tilt
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    def distance(tilt: np.ndarray) -> float:
        weights = tilted(tilt)
        segments = [Segment(UNIFORM, UNIFORM_STEPS), *map(Segment, widths, rest * weights)]
        found = expected(segments, policies)
        entropy = float(np.sum(weights * np.log(np.maximum(weights, 1e-300) / prior)))
        return (
            RETURN_WEIGHT * np.log(max(found.return_mean, 1.0) / d4rl_return(name.text)) ** 2
            + EPISODES_WEIGHT * np.log(found.episodes / name.d4rl_episodes) ** 2
            + ENTROPY_WEIGHT * entropy
        )

    options = {"xatol": 1e-6, "fatol": 1e-12, "maxiter": 4_000}
    starts = [np.asarray((a, b), np.float64) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    best = min((minimize(distance, start, method="Nelder-Mead", options=options) for start in starts), key=_loss)
    counts = rounded(tilted(best.x) * (rest // GRAIN)) * GRAIN
    shares = {UNIFORM: UNIFORM_STEPS, **dict(zip(widths, counts.tolist(), strict=True))}
    return {key: count for key, count in shares.items() if count}


def rounded(values: np.ndarray) -> np.ndarray:
    """Whole numbers of the same sum: those with the largest remainders are rounded up."""
    whole = np.floor(values).astype(np.int64)
    missing = round(float(values.sum())) - int(whole.sum())
    whole[np.argsort(whole - values, kind="stable")[:missing]] += 1
    return whole


def _loss(result: Any) -> float:
    return float(result.fun)


def main(arguments: Sequence[str]) -> None:
    """Print what the recipes should give; with ``--write`` choose them first."""
    if list(arguments) == ["--write"]:
        card = json.loads((FOLDER / CARD).read_text(encoding="utf-8"))
        for environment, entry in card["environments"].items():
            entry.update(choose(environment, entry))
        write_text(FOLDER / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    for text in NAMES:
        name = parse(text)
        _, training, entry = shipped(name.environment)
        segments = recipe(name, name.transitions, training)
        found, level = expected(segments, measured(name.environment, entry)), d4rl_return(text)
        print(
            f"{text:26} return {found.return_mean:8.1f}, D4RL {level:8.1f}, ratio {found.return_mean / level:.3f}   "
            f"episodes {found.episodes:8.0f}, D4RL {name.d4rl_episodes:6}"
        )
        if len(segments) > 1:
            print("    " + ", ".join(f"{policy} {count:,}" for policy, count in segments))


if __name__ == "__main__":
    main(sys.argv[1:])
