"""How a replay set made of snapshots differs from the true buffer of the same training run.

python -m studies.benchmark_data.buffer_check replay.json  prints the table of a comparison that was saved
python -m studies.benchmark_data.buffer_check replay.json PAGE   puts it into a page's section ``replay``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sapp.collect.benchmark.recipes import recipe
from sapp.collect.benchmark.rollout import behaviour, segment_seed
from sapp.collect.benchmark.shipped import shipped
from sapp.collect.online_run import OnlineRun
from sapp.data.benchmark_names import Name
from sapp.data.dataset import Dataset, concatenate
from sapp.data.normalised_scores import normalized_score
from sapp.envs.collect import collect
from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table
from studies.benchmark_data.two_sample import energy_distance, ks_distance, standardised

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
STATES = 4_000
"""States drawn from each side for the energy distance, which takes all pairs."""


def compare_replay(
    run: OnlineRun,
    folder: str | Path,
    *,
    transitions: int = 200_000,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """For medium-replay and full-replay of each environment: the true buffer beside what the snapshots give.

    Args:
        run: whose policies were shipped; its buffers are the true ones.
        folder: where the shipped policies are.
        transitions: of each set made from snapshots.
        seed: of the rollouts.
        say: told what happens.
    """
    found: dict[str, Any] = {}
    for environment in run.plan.environments:
        policies, training, card = shipped(environment, Path(folder))
        for quality in ("medium-replay", "full-replay"):
            name = Name(environment, quality)
            end = training.steps[training.medium if quality == "medium-replay" else training.expert]
            true = run.buffer(environment, int(card["seed"]), end)
            segments = recipe(name, transitions, training)
            env = run.environment(environment)
            parts = [
                collect(behaviour(policy, policies, env), env, count, segment_seed(seed, policy), name=policy)
                for policy, count in segments
            ]
            made = concatenate(parts, name=name.text)
            found[name.text] = beside(true, made, seed)
            say(
                f"{name.text}: true {_line(found[name.text]['true'])}; snapshots {_line(found[name.text]['snapshots'])}"
            )
    return found


def beside(true: Dataset, made: Dataset, seed: int) -> dict[str, Any]:
    """Two datasets of one environment in numbers, and how far apart their states and actions are."""
    rng = np.random.default_rng(seed)
    sides = {"true": true, "snapshots": made}
    drawn = {key: rng.choice(len(data), min(STATES, len(data)), replace=False) for key, data in sides.items()}
    one, other = standardised(true.observation[drawn["true"]], made.observation[drawn["snapshots"]])
    halves = rng.permutation(len(one))
    return {
        **{key: describe(data) for key, data in sides.items()},
        "ks_observation": [round(float(x), 4) for x in ks_distance(true.observation, made.observation)],
        "ks_action": [round(float(x), 4) for x in ks_distance(true.action, made.action)],
        "ks_return": round(float(ks_distance(true.episode_returns, made.episode_returns)[0]), 4),
        "energy_observation": round(energy_distance(one, other), 5),
        # the same between two halves of the true states: what no difference looks like
        "energy_true_halves": round(energy_distance(one[halves[::2]], one[halves[1::2]]), 5),
    }


def describe(data: Dataset) -> dict[str, Any]:
    """Transitions, episodes, normalised returns, lengths, terminals, and the mean return by tenth of the data."""
    assert data.environment is not None
    scores = normalized_score(data.environment, data.episode_returns)
    tenth = np.minimum(10 * data.episode_ends // len(data), 9)
    progress = [float(scores[tenth == i].mean()) if (tenth == i).any() else None for i in range(10)]
    return {
        "transitions": len(data),
        "episodes": data.num_episodes,
        "score_mean": round(float(scores.mean()), 3),
        "score_quantiles": [round(float(x), 3) for x in np.quantile(scores, QUANTILES)],
        "length_mean": round(float(data.episode_lengths.mean()), 2),
        "terminals": int(data.terminal.sum()),
        "reward_mean": round(float(data.reward.mean(dtype=np.float64)), 4),
        "score_by_tenth": [None if x is None else round(x, 2) for x in progress],
    }


def _line(side: dict[str, Any]) -> str:
    return f"{side['episodes']} episodes, score {side['score_mean']:.1f}, length {side['length_mean']:.0f}"


def markdown(found: Mapping[str, Any]) -> str:
    """A row for each dataset: true buffer / snapshots."""
    headings = (
        "dataset", "episodes per 1000 transitions", "mean score", "median score", "mean length",
        "mean score, first to last tenth", "KS of returns", "largest KS of a state dimension",
        "energy distance of states (two halves of the true ones)",
    )  # fmt: skip
    rows = []
    for name, one in found.items():
        sides = one["true"], one["snapshots"]
        rate = [1000 * side["episodes"] / side["transitions"] for side in sides]
        tenths = [[value for value in side["score_by_tenth"] if value is not None] for side in sides]
        rows.append(
            (
                name,
                f"{rate[0]:.2f} / {rate[1]:.2f}",
                _pair(sides, "score_mean"),
                f"{sides[0]['score_quantiles'][2]:.1f} / {sides[1]['score_quantiles'][2]:.1f}",
                _pair(sides, "length_mean", 0),
                f"{tenths[0][0]:.1f} to {tenths[0][-1]:.1f} / {tenths[1][0]:.1f} to {tenths[1][-1]:.1f}",
                f"{one['ks_return']:.2f}",
                f"{max(one['ks_observation']):.2f}",
                f"{one['energy_observation']:.3f} ({one['energy_true_halves']:.3f})",
            )
        )
    caption = "Each cell: the true buffer of a training run / data from its snapshots."
    return table("Replay sets", caption, headings, rows).markdown().rstrip()


def _pair(sides: Sequence[Mapping[str, Any]], key: str, digits: int = 1) -> str:
    return " / ".join(f"{side[key]:.{digits}f}" for side in sides)


def main(arguments: Sequence[str]) -> None:
    """Print the table of a saved comparison, or put it into the page that is named second."""
    if not 1 <= len(arguments) <= 2:
        raise SystemExit(__doc__)
    text = markdown(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    if len(arguments) == 2:
        write_sections(Path(arguments[1]), {"replay": text})
    else:
        print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
