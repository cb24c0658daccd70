"""How good the snapshots of a run are: deterministic and stochastic returns of all of them, played together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.collect.online_run import EVALUATIONS, OnlineRun
from sapp.core.errors import SappError
from sapp.data.action_units import from_unit
from sapp.data.normalised_scores import base_name, normalized_score
from sapp.envs.base import BatchEnvironment
from sapp.envs.policies import TanhGaussianPolicy
from sapp.envs.policy_files import rounded
from sapp.evaluation.policy_file import stack
from sapp.evaluation.rollouts import Rollouts, evaluate
from sapp.networks import GaussianActor
from sapp.runs.metric_tables import Table

COLUMNS = (
    "step", "member", "episodes", "stochastic_mean", "stochastic_std", "stochastic_score", "deterministic_mean",
    "deterministic_std", "deterministic_score", "stochastic_length", "deterministic_length",
)  # fmt: skip


def play(
    policies: Sequence[TanhGaussianPolicy],
    environment: BatchEnvironment,
    episodes: int,
    seed: int,
    stochastic: Sequence[bool],
    progress: Callable[[int, int], None] | None = None,
) -> Rollouts:
    """Whole episodes of many policies of one shape, from the same starts; arrays [policies, episodes].

    Args:
        policies: acting in [−1, 1].
        environment: where.
        episodes: of each policy.
        seed: of starts and action noise.
        stochastic: for each policy, whether it samples its actions or takes the mode.
        progress: called with (steps done, time limit).
    """
    for policy in policies:
        if (policy.observation_size, policy.action_size) != (environment.observation_size, environment.action_size):
            raise SappError(
                f"a policy for {policy.observation_size} observations and {policy.action_size} actions cannot play "
                f"{environment.name}, which has {environment.observation_size} and {environment.action_size}"
            )
    actors, noisy, key = stack(policies), jnp.asarray(stochastic), jax.random.PRNGKey(seed)
    time = iter(range(2**31))

    def act(observation: np.ndarray) -> np.ndarray:
        action = np.asarray(_act(actors, noisy, jnp.asarray(observation), jax.random.fold_in(key, next(time))))
        return from_unit(action, environment.action_low, environment.action_high)

    return evaluate(act, environment, len(policies), episodes, seed, progress)


@jax.jit
def _act(actors: GaussianActor, noisy: Array, observation: Array, key: Array) -> Array:
    def one(actor: GaussianActor, noisy: Array, observation: Array, key: Array) -> Array:
        distribution = actor(observation)
        return jnp.where(noisy, distribution.sample(key)[0], distribution.mode())

    return jax.vmap(one)(actors, noisy, observation, jax.random.split(key, noisy.shape[0]))


def evaluate_snapshots(
    run: OnlineRun,
    *,
    episodes: int = 10,
    seed: int = 1,
    half: bool = False,
    rows: int = 8_192,
    say: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Play every snapshot of every member, stochastic and deterministic, and write evaluations.csv.

    Args:
        run: finished or not.
        episodes: of each snapshot and kind.
        seed: of starts and noise.
        half: play the policies rounded to float16, as they are shipped.
        rows: environments at once, at most.
        say: told what is being played.
    """
    snapshots = {step: run.snapshot(step) for step in run.snapshots}
    if not snapshots:
        raise SappError(f"{run.path}: no snapshots yet; resume the run first")
    found: list[dict[str, Any]] = []
    for name in run.plan.environments:
        keys = [(step, seed_) for step in snapshots for seed_ in run.plan.seeds]
        at_once = max(1, rows // (2 * episodes))
        for begin in range(0, len(keys), at_once):
            part = keys[begin : begin + at_once]
            if say is not None:
                say(f"{name}: snapshots {begin + 1} to {begin + len(part)} of {len(keys)}")
            policies = [snapshots[step][f"{name}/{number}"] for step, number in part]
            policies = [rounded(policy) for policy in policies] if half else policies
            kinds = [True] * len(part) + [False] * len(part)
            result = play([*policies, *policies], run.environment(name), episodes, seed, kinds)
            for i, (step, number) in enumerate(part):
                found.append(_row(f"{name}/{number}", step, result, i, len(part) + i))
    order = {name: i for i, name in enumerate(run.plan.names)}
    found.sort(key=lambda row: (row["step"], order[row["member"]]))
    table = Table(run.path / EVALUATIONS, COLUMNS)
    table.rewind(-1)
    table.append(found)
    return found


def _row(member: str, step: int, result: Rollouts, stochastic: int, deterministic: int) -> dict[str, Any]:
    row: dict[str, Any] = {"step": step, "member": member, "episodes": result.returns.shape[1]}
    task = base_name(member.rpartition("/")[0])
    for kind, index in (("stochastic", stochastic), ("deterministic", deterministic)):
        mean = float(result.returns[index].mean())
        row |= {
            f"{kind}_mean": mean,
            f"{kind}_std": float(result.returns[index].std()),
            f"{kind}_length": float(result.lengths[index].mean()),
        }
        if task:
            row[f"{kind}_score"] = normalized_score(task, mean)
    return row
