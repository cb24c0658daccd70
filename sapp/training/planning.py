"""From what is asked of ``sapp.train`` to a plan: members, phases and intervals, refused early where they cannot be."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sapp.algorithms import Algorithm
from sapp.algorithms import config as configuration
from sapp.algorithms.registry import preset
from sapp.core.errors import SappError, printable
from sapp.core.precision import resolved
from sapp.core.progress_bar import unseen
from sapp.data import Dataset, load
from sapp.data.benchmark_names import ENVIRONMENTS, QUALITIES
from sapp.data.benchmark_names import NAMES as BENCHMARK
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Kind, Ledger
from sapp.envs.data_check import compare
from sapp.evaluation.online_evaluation import Evaluator
from sapp.runs.members import Member, MemberId
from sapp.runs.phases import Phase, plain_protocol, prepared, sa_protocol, total_steps
from sapp.runs.plan import Plan
from sapp.runs.problem import Problem
from sapp.training.device_frames import frame_spec
from sapp.training.population import STRIDE
from sapp.training.upload import AnyDataset

AlgorithmLike = Algorithm | str | Callable[[str], Algorithm | None]
Algorithms = AlgorithmLike | Mapping[str, AlgorithmLike] | Sequence[AlgorithmLike]
DataLike = AnyDataset | str | Path | Callable[[], AnyDataset]
"""A function loads its data when it is called: after everything else that was asked has been looked at."""
Chosen = Callable[[MemberId], bool]
REFERENCED = re.compile(f"({'|'.join(ENVIRONMENTS)})-({'|'.join(QUALITIES)})-v[0-9]")
"""D4RL's names of the same datasets."""


def planned(
    algorithms: Algorithms, data: DataLike | Sequence[DataLike], *, seeds: int | Sequence[int], steps: int,
    phases: Sequence[Phase] | None, only: Chosen | None, eval_every: int | None, eval_episodes: int, eval_seed: int,
    eval_max_steps: int | None, log_every: int, checkpoint_every: int | None, keep: int, progress: bool,
) -> tuple[Plan, list[AnyDataset]]:  # fmt: skip
    """The plan of a new run and its datasets; the arguments are those of ``sapp.train``."""
    whole_numbers(
        steps=steps, eval_every=eval_every, eval_episodes=eval_episodes, eval_seed=eval_seed, log_every=log_every,
        eval_max_steps=eval_max_steps, checkpoint_every=checkpoint_every, keep=keep,
    )  # fmt: skip
    at_least(1, steps=steps, eval_episodes=eval_episodes, log_every=log_every, keep=keep)
    at_least(1, **({} if eval_max_steps is None else {"eval_max_steps": eval_max_steps}))
    at_least(0, eval_every=eval_every or 0, checkpoint_every=checkpoint_every or 0, eval_seed=eval_seed)
    named = _by_name(algorithms)
    sources = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    which = _seeds(seeds)
    if not named or not sources:
        raise SappError("nothing to train: give at least one algorithm and one dataset")
    if swapped := [type(source).__name__ for source in sources if isinstance(source, Algorithm)]:
        raise SappError(f"{swapped[0]} is given as data: the algorithm comes first, as in sapp.train(algorithm, data)")
    _check_known(named, sources)
    datasets: list[AnyDataset] = [
        source() if callable(source) else load(source, progress=None if progress else unseen) for source in sources
    ]
    if eval_max_steps is not None and not any(isinstance(dataset, FrameDataset) for dataset in datasets):
        raise SappError("eval_max_steps cuts episodes of games, and no dataset is of frames; leave it out")
    members = _members(named, datasets, which, only)
    if phases is None:
        learns = any(member.algorithm.weights.learns for member in members)
        phases = prepared(_preparation(members), sa_protocol(steps) if learns else plain_protocol(steps))
    for member in members:
        _check_network(member, datasets[member.dataset])
    if total_steps(phases) < 1:
        raise SappError("the phases have no steps: ask for at least one")
    evaluations = a_twentieth(phases[-1].steps) if eval_every is None else eval_every
    plan = Plan(
        members=members,
        problems=tuple(
            Problem.of(dataset, _source(source) if isinstance(source, str | Path) else None)
            for source, dataset in zip(sources, datasets, strict=True)
        ),
        phases=tuple(phases),
        log_every=log_every,
        checkpoint_every=checkpoint_every or evaluations or a_twentieth(phases[-1].steps),
        eval_every=evaluations,
        eval_episodes=eval_episodes,
        eval_seed=eval_seed,
        keep=keep,
        eval_max_steps=eval_max_steps,
    )
    plan.check()
    evaluator = Evaluator(plan)
    if evaluations:
        evaluator.check(advice="; or evaluate never (eval_every 0)")
    _compare(evaluator, plan.problems, datasets, plays=bool(evaluations))
    return plan, datasets


def _compare(evaluator: Evaluator, problems: Sequence[Problem], datasets: Sequence[AnyDataset], plays: bool) -> None:
    """Say what is doubtful about data, and what does not fit their environments; refuse what cannot be right.

    A training that never ``plays`` needs no environment: one that cannot be made is no matter, and nothing is refused.
    """
    for problem, dataset in zip(problems, datasets, strict=True):
        for line in Ledger.of(dataset).lines(Kind.WARNING):
            print(printable(f"{dataset.name}: {line}"), file=sys.stderr)
        if problem.environment is None or not isinstance(dataset, Dataset):
            continue
        try:
            environment = evaluator.environment(problem)
        except SappError:
            if plays:
                raise
            continue
        try:
            lines = compare(dataset, environment)
        except SappError as error:
            if plays:
                raise
            lines = [str(error)]
        for line in lines:
            print(printable(f"{dataset.name}: {line.removeprefix(f'{dataset.name}: ')}"), file=sys.stderr)


def stem(plan: Plan) -> str:
    """What begins the name of a plan's folder."""
    names = list(dict.fromkeys(member.name for member in plan.members))
    algorithms = "+".join(names) if len(names) < 4 else f"{len(names)}-algorithms"
    count = len(plan.problems)
    return f"{algorithms}-{plan.problems[0].name if count == 1 else f'{count}-datasets'}".replace("/", "-")


def whole_numbers(**numbers: object) -> None:
    """Refuse numbers that are not whole, by name; None is left open."""
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
            raise SappError(f"{name} is {value!r}: it must be a whole number, such as 100_000")


def at_least(least: float, **numbers: float) -> None:
    """Refuse numbers that are smaller, by name."""
    for name, value in numbers.items():
        if value < least:
            raise SappError(f"{name} is {value}: it must be at least {least}")


def a_twentieth(steps: int) -> int:
    """Steps between evaluations where nobody says: about a twentieth, in whole strides where it is more than one."""
    every = max(1, steps // 20)
    return every if every < STRIDE else -(-every // STRIDE) * STRIDE


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    whole = int | np.integer
    given: list[Any] = list(range(int(seeds))) if isinstance(seeds, whole) and not isinstance(seeds, bool) else []
    if isinstance(seeds, Sequence | np.ndarray) and not isinstance(seeds, str):
        given = list(seeds)
    numbers = [int(seed) for seed in given if isinstance(seed, whole)]
    if not numbers or len(set(numbers)) != len(given) or min(numbers) < 0:
        raise SappError(f"seeds {seeds!r}: give a count of at least 1, or distinct whole numbers from 0 up")
    return numbers


def _members(
    named: Mapping[str, AlgorithmLike], datasets: Sequence[AnyDataset], seeds: Sequence[int], only: Chosen | None
) -> tuple[Member, ...]:
    members = tuple(
        Member(name, algorithm, index, seed)
        for name, chosen in named.items()
        for index, dataset in enumerate(datasets)
        if (algorithm := _resolve(chosen, dataset.name)) is not None
        for seed in seeds
        if only is None or only(MemberId(name, dataset.name, seed))
    )
    if not members:
        raise SappError("nothing to train: every algorithm declined every dataset")
    if len({(each.name, datasets[each.dataset].name, each.seed) for each in members}) != len(members):
        raise SappError("two datasets have the same name: rename one (Dataset.name) so that members' names differ")
    for member in members:
        _check_values(member)
        _check_batch_size(member)
        _check_actions(member, datasets[member.dataset])
    return members


def _resolve(chosen: AlgorithmLike, dataset: str) -> Algorithm | None:
    if isinstance(chosen, str):
        return resolved(preset(chosen, dataset))
    algorithm = chosen(dataset) if callable(chosen) and not isinstance(chosen, Algorithm | type) else chosen
    if algorithm is not None and not isinstance(algorithm, Algorithm):
        name = getattr(algorithm, "__name__", repr(algorithm))
        raise SappError(f"{name} is not an algorithm: give sapp.CQL(...), the name of a preset or one of your own")
    return resolved(algorithm)


def _preparation(members: Sequence[Member]) -> int:
    """Updates before the algorithm proper, which must be as many for all: the others would learn meanwhile."""
    longest = max(members, key=lambda member: member.algorithm.preparation)
    shortest = min(members, key=lambda member: member.algorithm.preparation)
    most, least = longest.algorithm.preparation, shortest.algorithm.preparation
    if most != least:
        raise SappError(
            f"{longest.name} prepares itself for {most:,} updates and {shortest.name} for {least:,}, and the members "
            "of a run take equal steps: train them in runs of their own, or set equal behaviour_steps"
        )
    return most


def _check_values(member: Member) -> None:
    """Refuse hyper-parameters that a run's config.json could not hold: of another type than theirs."""
    try:
        configuration.build(json.loads(json.dumps(configuration.describe(member.algorithm))))
    except SappError as error:
        raise SappError(str(error).removeprefix("config.json: ")) from None


def _check_batch_size(member: Member) -> None:
    """Refuse an algorithm whose batches are empty."""
    size = member.algorithm.batch_size
    if not isinstance(size, int) or size < 1:
        raise SappError(
            f"{type(member.algorithm).__name__}: batch_size is {size!r}; it must be a whole number of 1 or more"
        )


def _check_known(named: Mapping[str, AlgorithmLike], sources: Sequence[Any]) -> None:
    """Refuse an algorithm of discrete actions on a dataset that is known by its name, before it is made or fetched."""
    for source in sources:
        known = isinstance(source, str) and (source in BENCHMARK or REFERENCED.fullmatch(source) is not None)
        for chosen in named.values() if known else ():
            found = _resolve(chosen, source)
            if found is not None and getattr(found, "discrete_actions", False):
                name = type(found).__name__
                raise SappError(f"{source}: its actions are continuous, {name} takes discrete ones; use cql")


def _check_actions(member: Member, dataset: AnyDataset) -> None:
    """Refuse an algorithm for vectors on data of discrete actions, and the other way round."""
    wanted = bool(getattr(member.algorithm, "discrete_actions", False))
    if wanted != dataset.discrete:
        kind, other = ("discrete", "continuous") if dataset.discrete else ("continuous", "discrete")
        use = "discrete-cql" if dataset.discrete else "cql, or give the number of actions (num_actions)"
        name = type(member.algorithm).__name__
        raise SappError(f"{dataset.name}: its actions are {kind}, {name} takes {other} ones; use {use}")


def _check_network(member: Member, dataset: AnyDataset) -> None:
    """Refuse a network for vectors on frames, or one for larger frames, before a folder is made for the run."""
    if isinstance(dataset, FrameDataset):
        jax.eval_shape(lambda key: member.algorithm.init(key, frame_spec(dataset)), jax.random.PRNGKey(0))


def _by_name(algorithms: Algorithms) -> dict[str, AlgorithmLike]:
    """Algorithms by what their members are called."""
    if isinstance(algorithms, Mapping):
        return dict(algorithms)
    if isinstance(algorithms, str) or not isinstance(algorithms, Sequence):
        return {_name(algorithms): algorithms}
    names = [_name(each) for each in algorithms]
    if len(set(names)) != len(names):
        raise SappError(f"algorithms {', '.join(names)}: give a dictionary, so that each has a name of its own")
    return dict(zip(names, algorithms, strict=True))


def _name(algorithm: AlgorithmLike) -> str:
    if isinstance(algorithm, str):
        return algorithm
    return type(algorithm).__name__ if isinstance(algorithm, Algorithm) else getattr(algorithm, "__name__", "algorithm")


def _source(source: Any) -> str:
    path = Path(str(source))
    return str(path.resolve()) if path.exists() else str(source)
