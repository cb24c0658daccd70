"""Evaluation of all members of a run at once, in the environment of each member's data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import Array

from sapp.core.backend import host_is_free
from sapp.core.errors import SappError
from sapp.data.environment_names import typed_environment
from sapp.networks import Policy

EPSILON = 0.001
"""Chance of a random action when policies of frames are played: Dopamine's, without which a policy can stand still."""

if TYPE_CHECKING:
    from sapp.envs.base import BatchEnvironment
    from sapp.envs.frames import FrameEnvironment
    from sapp.envs.gymnasium_batch import Source
    from sapp.runs.members import MemberId
    from sapp.runs.plan import Plan
    from sapp.runs.problem import Problem
    from sapp.runs.run import Run


@dataclass(frozen=True)
class Evaluation:
    """Returns and lengths of one member's episodes; the score is D4RL's normalised one, where the task has one.

    ``step`` is that of the checkpoint that was played, where it was one.
    """

    member: int
    returns: np.ndarray
    lengths: np.ndarray
    scores: np.ndarray | None
    step: int | None = None

    def __repr__(self) -> str:
        spread = f"{self.returns.min():.4g} to {self.returns.max():.4g}" if len(self.returns) else "none"
        score = "" if self.scores is None else f", score {self.scores.mean():.1f}"
        mean = self.returns.mean() if len(self.returns) else float("nan")
        return f"Evaluation(member {self.member}, {len(self.returns)} episodes, return {mean:.4g} ({spread}){score})"

    def row(self, step: int, updates: int, member: MemberId) -> dict[str, Any]:
        """As evaluations.csv holds it; standard deviations are over episodes."""
        row: dict[str, Any] = {
            "step": step,
            "updates": updates,
            **member.row(),
            "episodes": len(self.returns),
            "return_mean": float(np.mean(self.returns)),
            "return_std": float(np.std(self.returns)),
            "length_mean": float(np.mean(self.lengths)),
            "returns": ";".join(f"{value:.6g}" for value in self.returns),
        }
        if self.scores is not None:
            row |= {"score_mean": float(np.mean(self.scores)), "score_std": float(np.std(self.scores))}
        return row


@jax.jit
def _modes(actors: Policy, observation: Array) -> Array:
    return jax.vmap(lambda actor, x: actor(x).mode())(actors, observation)


def _act(actors: Policy, problem: Problem, observation: np.ndarray) -> np.ndarray:
    """Actions of stacked policies in the environment's units; numbers of discrete actions stay as they are."""
    modes = np.asarray(_modes(actors, problem.to_network(np.asarray(observation, np.float32))))
    if problem.discrete:
        return modes
    return problem.to_units(modes)


class Evaluator:
    """Keeps the environments between evaluations."""

    def __init__(self, plan: Plan, given: BatchEnvironment | None = None, limit: int | None = None) -> None:
        """For the members and problems of a run.

        Args:
            plan: of the run.
            given: is played in place of the environments that the problems name.
            limit: cut episodes of vectors there, in place of the environments' own limits.
        """
        self._plan = plan
        self._given, self._limit = given, limit
        self._environments: dict[tuple[str, str | None, int | None, int | None], BatchEnvironment] = {}
        self._frame_envs: dict[str, FrameEnvironment] = {}

    def missing(self) -> list[Problem]:
        """Problems that name no environment, whose members cannot be evaluated online."""
        return [problem for problem in self._plan.problems if problem.environment is None]

    def check(self, advice: str = "") -> None:
        """Make every environment and compare its sizes with the data's: better now than hours into training.

        ``advice`` is added to what keeps an environment from being made.
        """
        for problem in self._plan.problems:
            if problem.environment is None:
                continue
            if problem.frame is not None:
                self._check_frames(problem)
                continue
            try:
                self.environment(problem)
            except SappError as error:
                raise SappError(f"{error}{advice}") from None
            self._check_vectors(problem)

    def say_units(self, problem: Problem) -> None:
        """Say where a policy acts within other bounds than those of the environment."""
        if problem.discrete or problem.frame is not None:
            return
        from sapp.envs.data_check import compare_bounds

        for line in compare_bounds(problem.action_low, problem.action_high, self.environment(problem)):
            print(f"{problem.name}: {line}", file=sys.stderr)

    def _check_vectors(self, problem: Problem) -> None:
        env = self.environment(problem)
        kinds = [
            f"{observations} values in an observation and "
            + (f"{actions} values in an action" if discrete is None else f"{discrete} discrete actions")
            for observations, actions, discrete in (
                (problem.observation_size, problem.action_size, problem.num_actions),
                (env.observation_size, env.action_size, env.num_actions),
            )
        ]
        if kinds[0] != kinds[1]:
            raise SappError(
                f"{problem.name}: has {kinds[0]}, environment {problem.environment!r} has {kinds[1]}; name the "
                "environment it is from, or train without evaluations (eval_every 0)"
            )

    def _check_frames(self, problem: Problem) -> None:
        env = self.frame_env(problem)
        wanted, found = (problem.frame or [])[1:], list(env.frame_shape)
        if wanted != found or problem.num_actions != env.num_actions:
            raise SappError(
                f"{problem.name}: frames are {wanted[0]} by {wanted[1]} and there are {problem.num_actions} actions, "
                f"environment {problem.environment!r} has {found[0]} by {found[1]} and {env.num_actions}; name the "
                "environment it is from, or evaluate never (eval_every 0)"
            )

    def frame_env(self, problem: Problem) -> FrameEnvironment:
        """The problem's image environment, made on first use."""
        from sapp.envs import make_frames

        assert problem.environment is not None
        name, limit = problem.environment, self._plan.eval_max_steps
        if name not in self._frame_envs:
            self._frame_envs[name] = make_frames(name, max_episode_steps=limit)
        return self._frame_envs[name]

    def environment(self, problem: Problem) -> BatchEnvironment:
        """The problem's environment, made on first use."""
        from sapp.envs import fitted, make

        if self._given is not None:
            return fitted(self._given, problem.observation_size, problem.mask_at)
        assert problem.environment is not None
        named = problem.environment, problem.physics, problem.mask_at, problem.play_limit
        if named not in self._environments:
            made = make(
                problem.environment, physics=problem.physics, recorded=True, usual_steps=problem.play_limit
            )
            made.max_episode_steps = self._limit or made.max_episode_steps
            self._environments[named] = fitted(made, problem.observation_size, problem.mask_at)
        return self._environments[named]

    def evaluate(
        self,
        policies: Sequence[Policy],
        episodes: int,
        seed: int,
        members: Collection[int] | None = None,
    ) -> list[Evaluation]:
        """Play ``episodes`` with each member's deterministic policy; all members of a task start from the same states.

        ``policies`` are stacked, one tree for each of the plan's groups; ``members`` are the indices of those to play
        (default: all).
        """
        from sapp.evaluation.rollouts import evaluate

        found: list[Evaluation] = []
        by_game: dict[str, list[Callable[[], list[Evaluation]]]] = {}
        for actors, indices in zip(policies, self._plan.groups(), strict=True):
            by_place: dict[tuple[str, str | None], list[int]] = {}
            for position, index in enumerate(indices):
                problem = self._problem(index)
                if problem.environment is not None and (members is None or index in members):
                    by_place.setdefault((problem.environment, problem.physics), []).append(position)
            for positions in by_place.values():
                problem = self._problem(indices[positions[0]])
                rows = np.asarray(positions)
                chosen = jax.tree.map(lambda leaf, rows=rows: leaf[rows], actors)
                if problem.frame is not None:
                    own = [indices[position] for position in positions]
                    task = partial(self._play_frames, chosen, problem, own, episodes, seed)
                    by_game.setdefault(str(problem.environment), []).append(task)
                    continue
                act = partial(_act, chosen, problem)
                returns, lengths = evaluate(act, self.environment(problem), len(positions), episodes, seed)
                for position, member_returns, member_lengths in zip(positions, returns, lengths, strict=True):
                    scores = problem.scores(member_returns)
                    found.append(Evaluation(indices[position], member_returns, member_lengths, scores))
        # Games side by side where an accelerator computes the policies: what remains is emulation, and waiting.
        with ThreadPoolExecutor(max(1, len(by_game)) if host_is_free() else 1) as pool:
            for tasks in pool.map(lambda game: [play() for play in game], by_game.values()):
                found += [one for some in tasks for one in some]
        return sorted(found, key=lambda evaluation: evaluation.member)

    def _problem(self, member: int) -> Problem:
        return self._plan.problems[self._plan.members[member].dataset]

    def _play_frames(
        self, actors: Policy, problem: Problem, members: Sequence[int], episodes: int, seed: int
    ) -> list[Evaluation]:
        """ε-greedy episodes of members of one image problem; returns are those of unclipped rewards."""
        from sapp.envs.frames import play as play_frames

        def act(stacks: np.ndarray) -> np.ndarray:
            return np.asarray(_modes(actors, stacks.reshape(len(members), episodes, *stacks.shape[1:]))).reshape(-1)

        result = play_frames(
            act, self.frame_env(problem), episodes=episodes, epsilon=EPSILON, seed=seed, members=len(members),
            stack=(problem.frame or [4])[0],
        )  # fmt: skip
        rows = zip(members, result.returns, result.lengths, strict=True)
        return [Evaluation(member, returns, lengths, None) for member, returns, lengths in rows]


def play(
    run: Run,
    *,
    episodes: int = 10,
    seed: int = 0,
    members: Sequence[int | str | MemberId] | None = None,
    environment: Source | None = None,
    physics: str | None = None,
    max_episode_steps: int | None = None,
) -> list[Evaluation]:
    """Play the newest checkpoint of a run's members, all at once.

    Args:
        run: finished or not, with at least one checkpoint.
        episodes: per member.
        seed: of the start states.
        members: names or indices (default: all).
        environment: in place of the one the data names: a name, an environment, or a function that makes one; see
            ``sapp.envs.make``.
        physics: in place of the one the data names.
        max_episode_steps: cut episodes there (default: at the environment's own limit, else as the data were recorded).
    """
    plan = run.plan
    chosen = {run.member_index(member) for member in members} if members is not None else set(range(len(plan.members)))
    used = {plan.members[index].dataset for index in chosen}
    longest = max((plan.problems[number].play_limit or 0 for number in used), default=0)
    given = _given(environment, physics, max_episode_steps, longest or None)
    if isinstance(environment, str):
        environment = typed_environment(environment)
    named = environment if environment is None or isinstance(environment, str) else given and given.name
    problems = tuple(
        replace(
            problem,
            environment=(named or problem.environment) if number in used else None,
            # the data's physics belongs to the data's environment; another one starts from its own default
            physics=physics or (problem.physics if named in (None, problem.environment) else None),
        )
        for number, problem in enumerate(plan.problems)
    )
    if missing := [problems[number].name for number in sorted(used) if problems[number].environment is None]:
        raise SappError(
            f"{run.path}: no environment is known for {missing[0]}; give one: --environment ID, or in Python "
            "run.evaluate(env)"
        )
    step, learners = run.restore()
    if not learners:
        raise SappError(f"{run.path}: no checkpoint yet; train or resume the run first")
    limit = max_episode_steps or plan.eval_max_steps
    evaluator = Evaluator(replace(plan, problems=problems, eval_max_steps=limit), given, max_episode_steps)
    evaluator.check()
    for number in sorted(used):
        evaluator.say_units(problems[number])
    policies = [group.policies(learner) for group, learner in zip(run.groups, learners, strict=True)]
    return [replace(each, step=step) for each in evaluator.evaluate(policies, episodes, seed, chosen)]


def _given(
    environment: Source | None, physics: str | None, limit: int | None, usual: int | None
) -> BatchEnvironment | None:
    """An environment that is not in the data: an object, or a Gymnasium id that needs a time limit."""
    from sapp.envs import is_frames, make

    if environment is None or (isinstance(environment, str) and (limit is None or is_frames(environment))):
        return None
    return make(environment, physics=physics, max_episode_steps=limit, usual_steps=usual)
