"""The demonstration: data made on the spot, CQL and SA-CQL side by side, a table and a figure."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.errors import SappError

if TYPE_CHECKING:
    from rich.console import Console

    from sapp.algorithms import Algorithm
    from sapp.data import Dataset
    from sapp.runs.run import Run

COLOURS = {"CQL": "#4c78a8", "SA-CQL": "#e45756"}
READING = (
    "How to read it: the difference is paired (same seeds, same starts); if its interval holds 0, this run does not "
    "distinguish the two, and whether knowing the state is what helps, only the controls can say (shuffled, matched "
    "and random weights, see docs/cli.md)."
)


def algorithms(hidden: Sequence[int] = (64, 64)) -> dict[str, Algorithm]:
    """CQL and SA-CQL for the point task, small and fast.

    Both carry a ratio estimator and differ in one number, whether its weights count: so one compiled program trains
    both, and CQL is exactly CQL. Weights lie in [0.5, 1.5], around CQL's 1. The settings were chosen by hand on this
    very task, discount and alpha so that policies stay near the data and the ratio can be learned in a minute.
    """
    from sapp.algorithms import CQL
    from sapp.weights import DualDICE, LogMinMax, control

    ratio = DualDICE(
        f=LogMinMax(0.5, 1.0), hidden=tuple(hidden), zeta_lr=1e-3, ratio_lr=1e-3, next_actions=4, fallback=True
    )
    return {
        name: CQL(
            alpha=30.0,
            discount=0.9,
            critic_lr=1e-3,
            actor_lr=1e-3,
            temperature_lr=1e-3,
            initial_temperature=0.1,
            tau=0.01,
            hidden=tuple(hidden),
            action_samples=4,
            batch_size=128,
            weights=control(ratio, kind),
        )
        for name, kind in {"CQL": "uniform", "SA-CQL": "real"}.items()
    }


def demo(
    out: str | Path | None = None,
    *,
    seeds: int = 3,
    steps: int = 3_000,
    pretrain: int = 1_000,
    ratio_steps: int = 2_500,
    logged_episodes: int = 400,
    eval_episodes: int = 50,
    hidden: Sequence[int] = (64, 64),
    progress: bool = True,
    console: Console | None = None,
) -> Run:
    """Make logs of the point task, train on them, print a table and draw a figure; return the run.

    Args:
        out: run folder; by default ``runs/demo-<time>``. A demo that it holds goes on as it began, whatever the sizes
            below say, and is shown.
        seeds: of each algorithm.
        steps: of the joint phase.
        pretrain: steps of plain CQL before.
        ratio_steps: steps in which only the ratio learns.
        logged_episodes: size of the data.
        eval_episodes: episodes per member and evaluation.
        hidden: layer sizes of all networks.
        progress: show a progress bar.
        console: where to print; by default stdout.
    """
    from rich.console import Console

    from sapp.cli.demo_figure import draw
    from sapp.core.errors import Interrupted
    from sapp.data import Dataset
    from sapp.evaluation.online_evaluation import play
    from sapp.runs.folders import CONFIG, new_folder
    from sapp.runs.phases import sa_protocol
    from sapp.training.train import datasets_of, train
    from sapp.training.train import resume as go_on

    console = console or Console()
    began = time.perf_counter()
    if steps < 1 or seeds < 1:
        raise SappError(f"steps is {steps} and seeds {seeds}: at least one of each is needed")
    folder = Path(out) if out is not None else new_folder("demo")
    every = max(1, steps // 8)
    try:
        if (folder / CONFIG).exists():
            _say(console, _found(folder))
            run = go_on(folder, progress=progress)
        else:
            run = train(
                algorithms(hidden),
                _logs(logged_episodes, console),
                seeds=seeds,
                phases=sa_protocol(steps, pretrain, ratio_steps),
                out=folder,
                eval_every=every,
                log_every=every,
                eval_episodes=eval_episodes,
                progress=progress,
            )
    except Interrupted:
        raise Interrupted(f"interrupted; saved. Continue with: sapp demo --out {folder}") from None
    except SappError:
        if out is None:
            with contextlib.suppress(OSError):  # it is not empty: there is something to go on with
                folder.rmdir()
        raise
    (dataset,) = datasets_of(run)
    assert isinstance(dataset, Dataset)
    found = play(run, episodes=run.plan.eval_episodes, seed=1)  # other starts than those of the learning curves
    scores = {
        name: np.stack([np.asarray(one.scores) for one in found if run.members[one.member].algorithm == name])
        for name in COLOURS
    }
    console.print(table(dataset, scores))
    _say(console, READING)
    try:
        figure = draw(run, dataset, state_weights(run, dataset).mean(0), COLOURS, run.path / "demo.png")
        _say(console, f"Figure: {figure}")
    except SappError as error:  # matplotlib is an extra; what was trained is there all the same
        _say(console, f"No figure: {error}")
    _say(console, f"Run: {run.path}  ({time.perf_counter() - began:.0f} s)")
    return run


def _logs(episodes: int, console: Console) -> Dataset:
    from sapp.envs.point import behaviour_dataset

    dataset = behaviour_dataset(episodes)
    _say(
        console,
        f"{dataset.num_episodes} logged episodes of the point task, {dataset.size:,} transitions: a point goes around "
        "a pit to its goal, in the logs slowly by the long way or recklessly by the short one.",
    )
    return dataset


def _found(folder: Path) -> str:
    """What to say of a demo that a folder holds; another run there is refused."""
    from sapp.runs.run import Run

    run = Run(folder)
    named = {member.algorithm for member in run.members}
    if named != set(COLOURS) or [problem.environment for problem in run.plan.problems] != ["point"]:
        raise SappError(
            f"{folder}: already holds a run, and not one of the demo; continue it with 'sapp resume {folder}' or "
            "choose another --out"
        )
    seeds = len(run.members) // len(COLOURS)
    stands = "is trained" if run.step >= run.total_steps else f"goes on from step {run.step:,} of {run.total_steps:,}"
    return f"The demo in {folder} {stands}, as it began: {seeds} seeds, {run.plan.phases[-1].steps:,} steps at the end."


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def table(dataset: Dataset, scores: dict[str, np.ndarray]) -> Any:
    """Scores of the logs and of both algorithms with 95 % intervals, and the paired difference."""
    from rich.table import Table

    from sapp.core.statistics import mean_interval, seeds_and_episodes
    from sapp.data.normalised_scores import normalized_score

    logged = normalized_score("point", dataset.episode_returns)
    seeds, episodes = scores["CQL"].shape
    rows = {
        f"behaviour ({len(logged)} logged episodes)": mean_interval(logged),
        **{name: seeds_and_episodes(values, seed=0) for name, values in scores.items()},
        "SA-CQL − CQL": seeds_and_episodes(scores["SA-CQL"] - scores["CQL"], seed=0),
    }
    out = Table(title="Normalised score: 0 random, 100 a good controller", title_justify="left", caption_justify="left")
    out.caption = f"final policies: {seeds} seeds × {episodes} episodes, Student's t over seeds"
    out.add_column("policy")
    out.add_column("score", justify="right")
    out.add_column("95 % interval", justify="right")
    for name, (estimate, low, high) in rows.items():
        if "−" in name:
            out.add_section()
        out.add_row(name, f"{estimate:.1f}", f"{low:.1f} to {high:.1f}")
    return out


def state_weights(run: Run, dataset: Dataset) -> np.ndarray:
    """SA-CQL's weights f(ω(s)) at every state of the data, [seeds, N], from the newest checkpoint.

    In training f rescales within each batch; here the batch is the whole dataset.
    """
    import jax
    import jax.numpy as jnp

    from sapp.core.spec import Batch

    observation = jnp.asarray(dataset.observation)
    batch = Batch(
        observation=observation,
        action=jnp.asarray(dataset.scaled_action()),
        reward=jnp.asarray(dataset.reward),
        next_observation=jnp.asarray(dataset.next_observation),
        terminal=jnp.asarray(dataset.terminal, jnp.float32),
        initial_observation=observation,
    )
    _, learners = run.restore()
    found = []
    for group, learner in zip(run.groups, learners, strict=True):
        for index, member in enumerate(group.members):
            if member.name == "SA-CQL":
                base, ratio = jax.tree.map(lambda leaf, i=index: leaf[i], (learner.base, learner.ratio))
                policy = member.algorithm.policy(base)
                found.append(member.algorithm.weights.weights(ratio, batch, policy, jax.random.PRNGKey(0))[0])
    return np.stack([np.asarray(each) for each in found])
