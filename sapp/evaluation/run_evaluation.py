"""Runs and policies that are asked what they earn: ``run.evaluate(...)`` and ``sapp.evaluate(...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.errors import SappError
from sapp.evaluation.online_evaluation import Evaluation, play
from sapp.evaluation.rollouts import evaluate_one
from sapp.runs import run as folders

if TYPE_CHECKING:
    from sapp.envs.gymnasium_batch import Source


class Run(folders.Run):
    """A run folder, finished or not, whose policies can be played.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=6)
        >>> named = {"small": sapp.BC(hidden=(8,)), "faster": sapp.BC(hidden=(8,), actor_lr=1e-2)}
        >>> path = sapp.train(named, data, steps=4, eval_every=0, out="run", progress=False).path
        >>> run = sapp.Run(path)
        >>> [str(member) for member in run.members], run.step
        (['small/point-behaviour/0', 'faster/point-behaviour/0'], 4)
        >>> [each.returns.shape for each in run.evaluate(episodes=3)]
        [(3,), (3,)]
    """

    def evaluate(
        self,
        env: Source | None = None,
        *,
        episodes: int = 10,
        seed: int = 0,
        members: Sequence[int | str] | None = None,
        physics: str | None = None,
        max_episode_steps: int | None = None,
    ) -> list[Evaluation]:
        """Play the newest checkpoint of the members, all from the same start states; one ``Evaluation`` per member.

        Args:
            env: in place of the environment that the data name: a name ("CartPole-v1", "module:Id"), an environment, or
                a function that makes one.
            episodes: per member.
            seed: of the start states.
            members: names or indices (default: all).
            physics: "d4rl" or "v4", for hopper, halfcheetah and walker2d.
            max_episode_steps: cut episodes there (default: at the environment's own limit, else as the data were
                recorded).
        """
        return play(
            self, episodes=episodes, seed=seed, members=members, environment=env, physics=physics,
            max_episode_steps=max_episode_steps,
        )  # fmt: skip


def evaluate(
    policy: folders.Run | str | Path | Callable[[np.ndarray], Any],
    env: Source | None = None,
    *,
    episodes: int = 10,
    seed: int = 0,
    physics: str | None = None,
    max_episode_steps: int | None = None,
) -> list[Evaluation]:
    """Play a run's policies, or a policy of your own, for whole episodes.

    Args:
        policy: a run, its folder, or a function from observations [n, O] to actions [n, A], or to numbers of discrete
            actions [n].
        env: see ``Run.evaluate``; a function needs one.
        episodes: per policy.
        seed: of the start states; with the same seed, policies start from the same states.
        physics: see ``Run.evaluate``.
        max_episode_steps: see ``Run.evaluate``.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import controller
        >>> (found,) = sapp.evaluate(controller, "point", episodes=20)
        >>> bool(found.returns.mean() > 35)
        True
    """
    if isinstance(policy, str | Path):
        policy = Run(policy)
    if isinstance(policy, folders.Run):
        return play(
            policy, episodes=episodes, seed=seed, environment=env, physics=physics, max_episode_steps=max_episode_steps
        )
    if env is None:
        raise SappError("a policy of your own needs an environment to play in: sapp.evaluate(policy, env)")
    from sapp.data.normalised_scores import base_name, normalized_score
    from sapp.envs import is_frames, make

    if isinstance(env, str) and is_frames(env):
        raise SappError(f"{env} has images for observations; see sapp.envs.frames.play")
    made = make(env, physics=physics, max_episode_steps=max_episode_steps)
    found = evaluate_one(policy, made, episodes, seed)
    known = base_name(made.name)
    return [Evaluation(0, found.returns, found.lengths, normalized_score(known, found.returns) if known else None)]
