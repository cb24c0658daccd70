"""A picture of a run's state weights over the data's states, and whether they can be trusted.

    python -m studies.state_ratios.weight_picture RUN --data DATA --out weights.png [--member NAME] [--axes 0 1]

Each point is a logged state, its colour the weight its penalty gets from the newest checkpoint. States are drawn in two
of their own coordinates (``--axes``) or, by default, in the plane of the data's two principal components.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import sapp
from sapp.core.files import write_aside
from sapp.core.spec import Batch
from sapp.data import Dataset, load_vectors
from sapp.runs.members import MemberId
from sapp.runs.run import Run


def state_weights(run: Run, data: Dataset, member: int | str, rows: np.ndarray) -> np.ndarray:
    """Weights of logged states, as one batch, by a member's estimator in the newest checkpoint."""
    index = run.member_index(member)
    _, learners = run.restore()
    if not learners:
        raise sapp.SappError(f"{run.path}: no checkpoint yet; train or resume the run first")
    groups = run.plan.groups()
    group = next(number for number, indices in enumerate(groups) if index in indices)
    place = groups[group].index(index)
    algorithm, learner = run.plan.members[index].algorithm, learners[group]
    width = run.plan.problems[run.plan.members[index].dataset].observation_size
    if data.observation.shape[1] != width:
        raise sapp.SappError(f"{data.name}: states have {data.observation.shape[1]} values, the run's have {width}")
    base, ratio = jax.tree.map(lambda leaf: jnp.asarray(leaf)[place], (learner.base, learner.ratio))
    observation = jnp.asarray(data.observation[rows])
    zero = jnp.zeros(len(rows))
    batch = Batch(observation, jnp.asarray(data.scaled_action()[rows]), zero, observation, zero, observation)
    policy = algorithm.policy(base)
    return np.asarray(algorithm.weights.weights(ratio, batch, policy, jax.random.PRNGKey(0))[0])


def plane(observation: np.ndarray, axes: Sequence[int] | None) -> tuple[np.ndarray, list[str]]:
    """States in two of their coordinates, or in their two principal components; and what to call these."""
    if axes is not None:
        if len(axes) != 2 or not all(0 <= axis < observation.shape[1] for axis in axes):
            raise sapp.SappError(f"axes {list(axes)}: name two of the {observation.shape[1]} coordinates, from 0")
        return observation[:, list(axes)], [f"coordinate {axis}" for axis in axes]
    centred = (observation - observation.mean(0)) / np.maximum(observation.std(0), 1e-6)
    if observation.shape[1] < 3:
        first = observation[:, :2]
        padded = np.concatenate([first, np.zeros((len(first), 2 - first.shape[1]))], 1)
        return padded, ["coordinate 0", "coordinate 1"]
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T, ["first principal component", "second principal component"]


def health(run: Run, member: int | str) -> str:
    """The newest row of metrics about the estimator, in words."""
    chosen = run.members[run.member_index(member)]
    rows = [row for row in run.metrics() if MemberId.of(row) == chosen and row.get("ratio/unreliable")]
    if not rows:
        return "no estimator"
    last = rows[-1]
    words = ["unreliable: weights are 1 with the fallback" if float(last["ratio/unreliable"]) > 0.5 else "reliable"]
    words += [
        f"{key} {float(last[f'ratio/{key}']):.3g}"
        for key in ("clipped", "model_error", "accuracy", "left", "ess")
        if last.get(f"ratio/{key}")
    ]
    return ", ".join(words)


def draw(run: Run, data: Dataset, path: Path, member: int | str, axes: Sequence[int] | None, states: int) -> None:
    """Write the picture as PNG."""
    from matplotlib.figure import Figure

    rows = np.random.default_rng(0).permutation(len(data))[:states]
    weights = state_weights(run, data, member, rows)
    points, names = plane(data.observation[rows], axes)
    figure = Figure(figsize=(7.0, 5.6), layout="constrained")
    panel: Any = figure.subplots()
    shown = panel.scatter(points[:, 0], points[:, 1], c=weights, s=4, cmap="viridis", linewidths=0)
    figure.colorbar(shown, label="weight of the state's penalty")
    panel.set_xlabel(names[0])
    panel.set_ylabel(names[1])
    chosen = run.plan.members[run.member_index(member)].algorithm.weights
    while hasattr(chosen, "of"):  # controls and rescaled weights: what they are made of
        chosen = chosen.of
    title = f"{run.members[run.member_index(member)]}: {type(chosen).__name__}"
    panel.set_title(f"{title}\n{health(run, member)}", fontsize=9)
    write_aside(path, lambda temporary: figure.savefig(temporary, dpi=130, format="png"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", required=True, help="the member's dataset, as sapp.load takes it")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--member", default="0", help="name or number (default: the first)")
    parser.add_argument("--axes", type=int, nargs=2)
    parser.add_argument("--states", type=int, default=20_000)
    options = parser.parse_args(arguments)
    member = int(options.member) if options.member.isdigit() else options.member
    draw(Run(options.run), load_vectors(options.data), options.out, member, options.axes, options.states)


if __name__ == "__main__":
    main()
