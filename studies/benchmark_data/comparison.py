"""Data regenerated from a D4RL file's own policy, beside the episodes in that file and the published means.

    python -m studies.benchmark_data.comparison hopper_medium-v2.hdf5 --out comparison

States come in episodes, so episodes are the units of every test: the few genuine episodes are compared with as many
drawn from the regenerated ones, over and over, which gives the distribution of each distance if the two kinds were
alike. All distances are computed from tables made once per episode: distribution functions on a common grid, and mean
distances between the states of pairs of episodes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.core.files import write_aside, write_text
from sapp.core.statistics import Interval, student
from sapp.data.benchmark_names import D4RL_EPISODES, QUALITIES, TRANSITIONS
from sapp.data.dataset import Dataset
from sapp.data.loaders.d4rl import load_hdf5
from sapp.data.normalised_scores import normalized_score
from sapp.envs import make
from sapp.envs.collect import collect
from sapp.envs.policies import load_policy
from sapp.report.report_tables import cell, table
from studies.benchmark_data.levels import D4RL_RETURNS

Values = npt.NDArray[np.float64]
GRID, STATES, POOL, EXCHANGES = 400, 64, 400, 4_999
"""Points of a distribution function, states of an episode for pairwise distances, regenerated episodes in the tests,
exchanges of a test."""


@dataclass(frozen=True)
class Side:
    """Returns and lengths of one kind of data, with 95 % intervals over episodes."""

    transitions: int
    episodes: int
    return_mean: float
    return_interval: tuple[float, float]
    score_mean: float
    length_mean: float
    length_interval: tuple[float, float]


@dataclass(frozen=True)
class Comparison:
    """One file's outcome.

    Attributes:
        environment: "hopper", "halfcheetah" or "walker2d".
        file: its name.
        regenerated: what its policy gives here.
        genuine_returns: of the episodes in the file.
        genuine_lengths: of the episodes in the file.
        return_ranks: share of regenerated episodes with a lower return (half the ties), one a genuine episode.
        length_ranks: the same for lengths.
        published_return: mean and standard error of all episodes in D4RL's full file.
        published_length: transitions divided by episodes there.
        difference: regenerated minus published mean return, with a 95 % interval from both standard errors.
        ks: Kolmogorov–Smirnov distance of each observation dimension, genuine against regenerated.
        ks_null: its 95 % quantile if the two were alike, each dimension.
        ks_p: p-value of each dimension.
        ks_any_p: p-value of the largest distance over its own null quantile, all dimensions at once.
        energy: energy distance of standardised observations.
        energy_null: its 95 % quantile if the two were alike.
        energy_p: its p-value.
    """

    environment: str
    file: str
    regenerated: Side
    genuine_returns: list[float]
    genuine_lengths: list[int]
    return_ranks: list[float]
    length_ranks: list[float]
    published_return: tuple[float, float]
    published_length: float
    difference: tuple[float, float, float]
    ks: list[float]
    ks_null: list[float]
    ks_p: list[float]
    ks_any_p: float
    energy: float
    energy_null: float
    energy_p: float


def compare(
    path: str | Path, transitions: int = 1_000_000, seed: int = 0, progress: Callable[[int], None] | None = None
) -> tuple[Comparison, Dataset, Dataset]:
    """Regenerate a D4RL medium (or expert) file's data and compare; also returns genuine and regenerated data.

    Args:
        path: a D4RL HDF5 file with a policy in it, of any number of episodes.
        transitions: to regenerate.
        seed: of the rollouts and of the tests.
        progress: called with transitions simulated so far.
    """
    path = Path(path)
    genuine = load_hdf5(path)
    name = genuine.name.rpartition("-v")[0]
    if genuine.environment is None or name not in D4RL_RETURNS:
        raise SappError(f"{path}: name it as D4RL does, such as hopper_medium-v2.hdf5, so that its task is known")
    policy = load_policy(path)
    environment = make(genuine.environment, physics="d4rl")
    if policy.observation_size != environment.observation_size:
        raise SappError(f"{path}: its policy takes {policy.observation_size} observations, {genuine.environment} has "
                        f"{environment.observation_size}; is the file misnamed?")  # fmt: skip
    made = collect(policy, environment, transitions, seed, progress=progress, name=f"{name}-regenerated", whole=True)
    ks, ks_null, ks_p, any_p = ks_tests(genuine, made, seed)
    energy, energy_null, energy_p = energy_test(genuine, made, seed)
    quality = QUALITIES.index(name.removeprefix(f"{genuine.environment}-"))
    count, total = D4RL_EPISODES[genuine.environment][quality], TRANSITIONS[genuine.environment][quality]
    mean, deviation = D4RL_RETURNS[name]
    error = deviation / count**0.5
    side = describe(made)
    own = float(made.episode_returns.std(ddof=1) / made.num_episodes**0.5)
    gap, half = side.return_mean - mean, 1.96 * (own**2 + error**2) ** 0.5
    found = Comparison(
        environment=genuine.environment,
        file=path.name,
        regenerated=side,
        genuine_returns=[round(float(x), 2) for x in genuine.episode_returns],
        genuine_lengths=[int(x) for x in genuine.episode_lengths],
        return_ranks=_ranks(genuine.episode_returns, made.episode_returns),
        length_ranks=_ranks(genuine.episode_lengths, made.episode_lengths),
        published_return=(mean, error),
        published_length=total / count,
        difference=(gap, gap - half, gap + half),
        ks=ks, ks_null=ks_null, ks_p=ks_p, ks_any_p=any_p,
        energy=energy, energy_null=energy_null, energy_p=energy_p,
    )  # fmt: skip
    return found, genuine, made


def describe(data: Dataset) -> Side:
    """Returns and lengths with their intervals."""
    assert data.environment is not None
    returns = student(data.episode_returns).interval()
    lengths = student(data.episode_lengths).interval()
    score = float(normalized_score(data.environment, returns.estimate))
    return Side(
        len(data), data.num_episodes, returns.estimate, (returns.low, returns.high), score,
        lengths.estimate, (lengths.low, lengths.high),
    )  # fmt: skip


def ks_tests(genuine: Dataset, made: Dataset, seed: int) -> tuple[list[float], list[float], list[float], float]:
    """Distances of each dimension, their 95 % null quantiles, their p-values, and that of the largest of all."""
    episodes = [*_episodes(genuine), *_episodes(made, POOL)]
    split = genuine.num_episodes
    pooled = np.concatenate(episodes)
    grid = np.quantile(pooled, np.linspace(0, 1, GRID), axis=0)  # [G, D]
    # counts of an episode's states at or below each grid point
    below = np.stack([(each[None] <= grid[:, None]).sum(1) for each in episodes]).astype(np.float64)
    lengths = np.asarray([len(each) for each in episodes], np.float64)

    def distances(chosen: npt.NDArray[np.bool_]) -> Values:
        inside = np.tensordot(chosen, below, 1) / (chosen @ lengths)[:, None, None]
        outside = np.tensordot(~chosen, below, 1) / (~chosen @ lengths)[:, None, None]
        return np.abs(inside - outside).max(1)  # [exchanges, D]

    chosen = _choices(len(episodes), split, seed)
    parts = [distances(part) for part in np.array_split(chosen, max(1, len(chosen) // 250))]
    values = np.concatenate(parts)
    observed, null = values[0], values
    quantile = np.quantile(null, 0.95, axis=0)
    relative = (values / quantile).max(1)
    return (
        observed.round(4).tolist(),
        quantile.round(4).tolist(),
        (null >= observed - 1e-12).mean(0).round(4).tolist(),
        float((relative >= relative[0] - 1e-12).mean()),
    )


def energy_test(genuine: Dataset, made: Dataset, seed: int) -> tuple[float, float, float]:
    """Energy distance of standardised observations, its 95 % null quantile and its p-value.

    Each episode is represented by evenly spaced states and weighted with its length.
    """
    episodes = [*_episodes(genuine), *_episodes(made, POOL)]
    lengths = np.asarray([len(each) for each in episodes], np.float64)
    pooled = np.concatenate(episodes)
    scale = np.maximum(pooled.std(0), 1e-9)
    states = [((each - pooled.mean(0)) / scale)[_spaced(len(each))] for each in episodes]
    matrix = np.empty((len(states), len(states)))
    for i, one in enumerate(states):
        for j in range(i, len(states)):
            square = (one**2).sum(1)[:, None] + (states[j] ** 2).sum(1)[None] - 2 * one @ states[j].T
            matrix[i, j] = matrix[j, i] = np.sqrt(np.maximum(square, 0)).mean()

    def distance(chosen: npt.NDArray[np.bool_]) -> Values:
        inside, outside = chosen * lengths, ~chosen * lengths
        inside, outside = inside / inside.sum(1, keepdims=True), outside / outside.sum(1, keepdims=True)
        cross = np.einsum("ei,ij,ej->e", inside, matrix, outside, optimize=True)
        return np.asarray(
            2 * cross
            - np.einsum("ei,ij,ej->e", inside, matrix, inside, optimize=True)
            - np.einsum("ei,ij,ej->e", outside, matrix, outside, optimize=True)
        )

    values = distance(_choices(len(episodes), genuine.num_episodes, seed))
    return float(values[0]), float(np.quantile(values, 0.95)), float((values >= values[0] - 1e-12).mean())


def _choices(count: int, split: int, seed: int) -> npt.NDArray[np.bool_]:
    """Which episodes play the genuine ones, [1 + EXCHANGES, count]; the first row is as it is."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((1 + EXCHANGES, count), bool)
    rows[0, :split] = True
    for row in rows[1:]:
        row[rng.choice(count, split, replace=False)] = True
    return rows


def _episodes(data: Dataset, most: int | None = None) -> list[Values]:
    spans = list(zip(data.episode_starts.tolist(), (data.episode_ends + 1).tolist(), strict=True))[:most]
    return [data.observation[begin:end].astype(np.float64) for begin, end in spans]


def _spaced(length: int) -> npt.NDArray[np.int64]:
    return np.unique(np.linspace(0, length - 1, STATES).astype(np.int64))


def _ranks(few: npt.NDArray[Any], many: npt.NDArray[Any]) -> list[float]:
    return [round(float((many < x).mean() + (many == x).mean() / 2), 4) for x in few]


def markdown(found: Sequence[Comparison]) -> str:
    """Two tables: returns and lengths, and state marginals."""
    returns, states = [], []
    for one in found:
        side = one.regenerated
        genuine = "; ".join(
            f"{value:.0f} ({rank:.2f}), {length} ({place:.2f})"
            for value, rank, length, place in zip(
                one.genuine_returns, one.return_ranks, one.genuine_lengths, one.length_ranks, strict=True
            )
        )
        lengths = cell(Interval(side.length_mean, *side.length_interval)).joined
        returns.append(
            (
                f"{one.environment}-medium",
                f"{cell(Interval(side.return_mean, *side.return_interval)).joined}, {side.episodes:,} episodes",
                f"{one.published_return[0]:.1f} ± {one.published_return[1]:.1f}",
                cell(Interval(*one.difference)), lengths, f"{one.published_length:.1f}", genuine,
            )
        )  # fmt: skip
        worst = int(np.argmin(one.ks_p))
        states.append(
            (
                f"{one.environment}-medium", str(len(one.ks)),
                f"{one.ks_p[worst]:.3f} (dimension {worst}: {one.ks[worst]:.3f}, null 95 % {one.ks_null[worst]:.3f})",
                f"{one.ks_any_p:.3f}", f"{one.energy:.4f} ({one.energy_null:.4f})", f"{one.energy_p:.3f}",
            )
        )  # fmt: skip
    tables = (
        table(
            "Returns and lengths", "Regenerated data beside D4RL's published means and the episodes in its file.",
            ("dataset", "regenerated mean return (95 %)", "published mean ± s.e.", "difference (95 %)",
             "regenerated length (95 %)", "published length", "genuine episodes: return (rank), length (rank)"),
            returns,
        ),
        table(
            "States", "Distances of states between genuine and regenerated episodes, and their p-values.",
            ("dataset", "dimensions", "smallest p (KS, one dimension)", "p of the largest KS (all dimensions)",
             "energy distance (null 95 %)", "p (energy)"),
            states,
        ),
    )  # fmt: skip
    return "\n".join(each.markdown() for each in tables).rstrip()


def plot(results: Sequence[tuple[Comparison, Dataset, Dataset]], path: str | Path) -> Path:
    """Returns, lengths and state distances of each environment."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.4 * len(results)), layout="constrained")
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would keep global state
    axes = figure.subplots(len(results), 3, squeeze=False)
    for row, (found, _, made) in zip(axes, results, strict=True):
        _histogram(row[0], made.episode_returns, found.genuine_returns, found.published_return[0], "return")
        _histogram(row[1], made.episode_lengths, found.genuine_lengths, found.published_length, "length (steps)")
        row[0].set_title(f"{found.environment}-medium: {made.num_episodes:,} regenerated episodes", fontsize=10)
        places = np.arange(len(found.ks))
        row[2].bar(places, found.ks, color="#4c78a8", label="genuine against regenerated")
        row[2].plot(places, found.ks_null, "_", color="black", markersize=11, markeredgewidth=1.6,
                    label="95 % if alike (episodes exchanged)")  # fmt: skip
        row[2].set(xlabel="observation dimension", ylabel="KS distance", ylim=(0, None))
        row[2].xaxis.get_major_locator().set_params(integer=True)
        row[2].set_title(f"states: p = {found.ks_any_p:.2f} (KS), {found.energy_p:.2f} (energy)", fontsize=10)
        for axis in row:
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=8)
    axes[0, 2].legend(frameon=False, fontsize=8)
    target = Path(path)
    write_aside(target, lambda aside: figure.savefig(aside, format=target.suffix.lstrip(".") or "png", dpi=130))
    return target


def _histogram(axis: Any, values: npt.NDArray[Any], marks: Sequence[float], mean: float, label: str) -> None:
    low, high = float(values.min()), float(values.max())
    if low == high:  # every episode has the full length
        low, high = 0.0, 1.04 * high
    axis.hist(values, bins=60, range=(low, high), color="#4c78a8", alpha=0.75,
              label="regenerated")  # fmt: skip
    axis.axvline(float(values.mean()), color="#1f3d5c", linewidth=1.5, label="its mean")
    axis.axvline(mean, color="#e45756", linestyle="--", linewidth=1.5, label="published mean")
    axis.plot(marks, [0] * len(marks), "^", color="black", markersize=9, clip_on=False, label="genuine episodes")
    axis.set(xlabel=label, ylabel="episodes")


def read(path: Path) -> list[Comparison]:
    """The numbers that ``save`` wrote."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Comparison(**row | {"regenerated": Side(**row["regenerated"])}) for row in rows]


def save(results: Sequence[tuple[Comparison, Dataset, Dataset]], folder: str | Path) -> list[Path]:
    """Write comparison.json, comparison.md and comparison.png."""
    folder = Path(folder)
    found = [one for one, _, _ in results]
    write_text(folder / "comparison.json", json.dumps([asdict(one) for one in found], indent=1) + "\n")
    write_text(folder / "comparison.md", markdown(found) + "\n")
    return [folder / "comparison.json", folder / "comparison.md", plot(results, folder / "comparison.png")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare each file's data; print the tables, and write them with the numbers and a figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="D4RL HDF5 files")
    parser.add_argument("--transitions", type=int, default=1_000_000, help="to regenerate of each")
    parser.add_argument("--seed", type=int, default=0, help="of rollouts and tests")
    parser.add_argument("--out", type=Path, help="folder for numbers, tables and a figure")
    options = parser.parse_args(arguments)
    results = [compare(file, options.transitions, options.seed) for file in options.files]
    print(markdown([found for found, _, _ in results]))
    if options.out is not None:
        for path in save(results, options.out):
            print(f"Written: {path}")


if __name__ == "__main__":
    main()
