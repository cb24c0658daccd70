"""``sapp demo``: data made on the spot, CQL and SA-CQL side by side, a table and a figure, in under three minutes."""

from __future__ import annotations

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

FIGURE = "demo.png"
COLOURS = {"CQL": "#4c78a8", "SA-CQL": "#e45756"}
READING = (
    "How to read it: the difference is paired (same seeds, same starts); if its interval holds 0, this run does not "
    "tell the two apart, and whether knowing the state is what helps, only the controls can say (shuffled, matched and "
    "random weights, see docs/cli.md)."
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
        eval_episodes: episodes a member and evaluation.
        hidden: layer sizes of all networks.
        progress: show a progress bar.
        console: where to print; by default stdout.
    """
    from rich.console import Console

    from sapp.core.errors import Interrupted
    from sapp.data import Dataset
    from sapp.runs.phases import sa_protocol
    from sapp.runs.run import CONFIG
    from sapp.training.loop import datasets_of, new_folder, train
    from sapp.training.loop import resume as go_on
    from sapp.training.online_evaluation import play

    console = console or Console()
    began = time.perf_counter()
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
    (dataset,) = datasets_of(run)
    assert isinstance(dataset, Dataset)
    found = play(run, episodes=run.plan.eval_episodes, seed=1)  # other starts than those of the learning curves
    scores = {
        name: np.stack([np.asarray(one.scores) for one in found if run.members[one.member].startswith(f"{name}/")])
        for name in COLOURS
    }
    console.print(table(dataset, scores))
    _say(console, READING)
    figure = draw(run, dataset, run.path / FIGURE)
    _say(console, f"Figure: {figure}")
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
    named = {name.split("/")[0] for name in run.members}
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
    out.caption = f"final policies: {seeds} seeds × {episodes} episodes; Student's intervals over the seeds"
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
    from sapp.runs.run import populations

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
    for population, learner in zip(populations(run.plan), learners, strict=True):
        for index, member in enumerate(population.members):
            if member.name.startswith("SA-CQL/"):
                base, ratio = jax.tree.map(lambda leaf, i=index: leaf[i], (learner.base, learner.ratio))
                policy = member.algorithm.policy(base)
                found.append(member.algorithm.weights.weights(ratio, batch, policy, jax.random.PRNGKey(0))[0])
    return np.stack([np.asarray(each) for each in found])


def draw(run: Run, dataset: Dataset, path: Path) -> Path:
    """Draw learning curves, where the data are, and where SA-CQL puts its pessimism."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from sapp.core.files import write_aside
    from sapp.data.normalised_scores import normalized_score

    figure = Figure(figsize=(14, 4.6), layout="constrained")
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would pick a back end and keep global state
    curves, density, weights = figure.subplots(1, 3, width_ratios=(1.15, 1, 1))
    behaviour = float(np.mean(normalized_score("point", dataset.episode_returns)))
    _draw_curves(curves, run, behaviour)
    counts, edges = _binned(dataset, None)
    _draw_map(figure, density, np.where(counts > 0, counts, np.nan), edges, "Where the data are", "transitions", True)
    _draw_paths(weights, run)
    mean, _ = _binned(dataset, state_weights(run, dataset).mean(0))
    title = "SA-CQL's pessimism (lines: its policies)"
    _draw_map(figure, weights, mean, edges, title, "weight f(ω(s)), mean over seeds", False)
    write_aside(path, lambda aside: figure.savefig(aside, format="png", dpi=150))
    return path


def _draw_curves(axis: Any, run: Run, behaviour: float) -> None:
    rows = run.evaluations()
    for name, colour in COLOURS.items():
        points: dict[int, list[float]] = {}
        for row in rows:
            if row["member"].startswith(f"{name}/"):
                points.setdefault(int(row["updates"]), []).append(float(row["score_mean"]))
        x, values = list(points), [np.asarray(each) for each in points.values()]
        low, mean, high = ([reduce(each) for each in values] for reduce in (np.min, np.mean, np.max))
        axis.plot(x, mean, color=colour, label=name, linewidth=2, marker="o", markersize=3.5)
        axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    axis.axhline(behaviour, color="#555555", linestyle="--", linewidth=1.2, label="behaviour (the logs)")
    weighted = sum(phase.steps for phase in run.plan.phases if phase.base and not phase.weighted)
    axis.axvline(weighted, color="#999999", linestyle=":", linewidth=1)
    axis.annotate(
        "weights count from here", (weighted, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
        textcoords="offset points", fontsize=8, color="#666666",
    )  # fmt: skip
    axis.set(title="Learning (band: range over seeds)", xlabel="gradient steps", ylabel="normalised score")
    axis.legend(loc="lower right", frameon=False, bbox_to_anchor=(1.0, 0.08))
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_paths(axis: Any, run: Run, episodes: int = 4) -> None:
    """Where the final policies of SA-CQL go."""
    from sapp.envs.point import Point

    for member in (name for name in run.members if name.startswith("SA-CQL/")):
        point = Point()
        path, active = [point.reset(episodes, seed=1).copy()], np.ones(episodes, bool)
        for _ in range(point.max_episode_steps):
            position, _, terminal = point.step(run.predict(path[-1], member), active)
            path.append(position)
            active &= ~terminal
        axis.plot(*np.stack(path).transpose(2, 0, 1), color="white", linewidth=1.6, alpha=0.9, zorder=2.5)
        axis.plot(*np.stack(path).transpose(2, 0, 1), color="black", linewidth=0.6, alpha=0.9, zorder=2.6)


def _binned(dataset: Dataset, values: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Counts, or the mean of values, in cells of the square; cells without data are NaN in a mean."""
    edges = np.linspace(-1.0, 1.0, 41)
    x, y = dataset.observation[:, 0], dataset.observation[:, 1]
    counts, _, _ = np.histogram2d(y, x, bins=(edges, edges))
    if values is None:
        return counts, edges
    sums, _, _ = np.histogram2d(y, x, bins=(edges, edges), weights=values)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), edges


def _draw_map(
    figure: Any, axis: Any, values: np.ndarray, edges: np.ndarray, title: str, label: str, logarithmic: bool
) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    from sapp.envs.point import GOAL, PIT

    shown = axis.pcolormesh(
        edges, edges, values, cmap="Greys" if logarithmic else "viridis", norm=LogNorm() if logarithmic else None
    )
    figure.colorbar(shown, ax=axis, label=label, shrink=0.9)
    size = PIT[1] - PIT[0]
    axis.add_patch(Rectangle(PIT[0], *size, facecolor="none", edgecolor="#b22222", linewidth=1.5, hatch="///"))
    axis.text(*(PIT[0] + size / 2), "pit", ha="center", va="center", color="#b22222",
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
    axis.plot(*GOAL, marker="*", markersize=13, color="#f2b701", markeredgecolor="black", linestyle="none")
    axis.annotate("start", (-0.9, 0.0), color="black", fontsize=9, ha="center", va="center",
                  bbox={"facecolor": "white", "edgecolor": "#999999", "pad": 1.5, "alpha": 0.85})  # fmt: skip
    axis.annotate("goal", tuple(GOAL), xytext=(-2, 10), textcoords="offset points", fontsize=9, ha="center")
    axis.set(title=title, xlabel="x", ylabel="y", aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
