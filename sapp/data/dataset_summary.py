"""What is in a dataset: numbers, tables for the terminal, and one picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.errors import SappError, printable
from sapp.core.extras import require
from sapp.core.figures import check_figure, write_figure
from sapp.data.dataset import Dataset
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Ledger

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Quantiles:
    """Minimum, quartiles, maximum and mean of a set of numbers."""

    minimum: float
    q25: float
    median: float
    q75: float
    maximum: float
    mean: float

    @classmethod
    def of(cls, values: np.ndarray) -> Quantiles:
        """Take them of an array."""
        low, q25, median, q75, high = (float(each) for each in np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))
        return cls(low, q25, median, q75, high, float(np.mean(values, dtype=np.float64)))


@dataclass(frozen=True)
class Range:
    """Minimum, mean, standard deviation (divisor N) and maximum of one dimension."""

    minimum: float
    mean: float
    std: float
    maximum: float


@dataclass(frozen=True)
class Summary:
    """A dataset in numbers; ``dataclasses.asdict`` makes it JSON.

    Attributes:
        name: of the dataset.
        environment: of the dataset.
        physics: of the dataset.
        source: path, name or id it was loaded from, if known.
        fingerprint: of the dataset.
        transitions: number of rows.
        episodes: number of episodes.
        terminals: episodes that ended because the task did.
        timeouts: episodes that ended because the recording did.
        returns: undiscounted sums of rewards over episodes.
        lengths: steps over episodes.
        rewards: of single steps.
        normalized_score: returns on the scale 0 = random, 100 = expert, where reference returns are known.
        observation: per dimension.
        action: per dimension.
        action_low: bounds.
        action_high: bounds.
        extras: name of each further array, and its width.
        choices: share of each discrete action, by its label or number; empty where actions are continuous.
        frames: shape and bytes of the images, where observations are; ``observation`` is then empty.
        ledger: what became of every column and row on loading, in lines.
    """

    name: str
    environment: str | None
    physics: str | None
    source: str | None
    fingerprint: str
    transitions: int
    episodes: int
    terminals: int
    timeouts: int
    returns: Quantiles
    lengths: Quantiles
    rewards: Range
    normalized_score: Quantiles | None
    observation: tuple[Range, ...]
    action: tuple[Range, ...]
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    extras: dict[str, int]
    choices: dict[str, float] = field(default_factory=dict)
    frames: FrameFacts | None = None
    ledger: tuple[str, ...] = ()


@dataclass(frozen=True)
class FrameFacts:
    """The images of an image log.

    Attributes:
        stack: frames of an observation.
        height: of a frame.
        width: of a frame.
        bytes: of all frames.
        mapped: whether they stay in their file.
        sampled: rows that are drawn as transitions: all but those that end an episode by time-out.
        action_counts: how often each action was taken, by its label or number.
    """

    stack: int
    height: int
    width: int
    bytes: int
    mapped: bool
    sampled: int
    action_counts: dict[str, int]


def summarise(dataset: Dataset | FrameDataset) -> Summary:
    """Put a dataset in numbers.

    Args:
        dataset: any.
    """
    source = dataset.provenance.get("source")
    return Summary(
        name=dataset.name,
        environment=dataset.environment,
        physics=dataset.physics,
        source=None if source is None else str(source),
        fingerprint=dataset.fingerprint,
        transitions=dataset.size,
        episodes=dataset.num_episodes,
        terminals=int(dataset.terminal.sum()),
        timeouts=int(dataset.timeout.sum()),
        returns=Quantiles.of(dataset.episode_returns),
        lengths=Quantiles.of(dataset.episode_lengths),
        rewards=_ranges(dataset.reward[:, None])[0],
        choices=_choices(dataset),
        ledger=tuple(Ledger.of(dataset).text()) if "ledger" in dataset.provenance else (),
        **(_of_frames(dataset) if isinstance(dataset, FrameDataset) else _of_vectors(dataset)),
    )


def _of_vectors(dataset: Dataset) -> dict[str, Any]:
    return {
        "normalized_score": _scores(dataset),
        "observation": _ranges(dataset.observation),
        "action": () if dataset.discrete else _ranges(dataset.action),
        "action_low": () if dataset.discrete else tuple(dataset.action_low.tolist()),
        "action_high": () if dataset.discrete else tuple(dataset.action_high.tolist()),
        "extras": {key: int(np.prod(value.shape[1:])) for key, value in dataset.extras.items()},
    }


def _of_frames(dataset: FrameDataset) -> dict[str, Any]:
    stack, height, width = dataset.observation_shape
    size, sampled = dataset.frames.nbytes, len(dataset.sampled_rows)
    counts = {label: round(share * dataset.size) for label, share in _choices(dataset).items()}
    empty = {"normalized_score": None, "observation": (), "action": (), "action_low": (), "action_high": ()}
    return {**empty, "extras": {}, "frames": FrameFacts(stack, height, width, size, dataset.mapped, sampled, counts)}


def print_summary(summary: Summary, console: Console) -> None:
    """Print a summary as tables."""
    from rich.table import Table
    from rich.text import Text

    facts = Table(title=Text(summary.name), show_header=False, title_justify="left")
    facts.add_column("what", style="bold")
    facts.add_column("value", overflow="fold")
    environment = summary.environment or "unknown"
    physics = f" ({summary.physics} physics)" if summary.physics else ""
    rewards = summary.rewards
    rows = {
        "environment": environment + physics,
        "source": summary.source or "made in memory",
        "transitions": f"{summary.transitions:,}",
        "episodes": f"{summary.episodes:,}: {summary.terminals:,} end terminal, {summary.timeouts:,} time out",
        "observation, action": _sizes(summary),
        "reward per step": f"{_short(rewards.minimum)} to {_short(rewards.maximum)}, "
        f"mean {_short(rewards.mean)} ± {_short(rewards.std)} (standard deviation)",
        "extras": ", ".join(f"{key} ({width})" for key, width in summary.extras.items()) or "none",
        "fingerprint": summary.fingerprint[:16],
    }
    if summary.frames is not None:
        where = "in a memory map" if summary.frames.mapped else "in memory"
        rows["frames"] = f"{summary.frames.bytes:,} bytes {where}, each frame once"
        rows["transitions"] += f", {summary.frames.sampled:,} with a successor or a terminal"
    for key, text in rows.items():
        facts.add_row(key, Text(printable(text)))
    console.print(facts)

    spread = Table(title="Episodes", title_justify="left")
    for head in ("", "min", "25 %", "median", "75 %", "max", "mean"):
        spread.add_column(head, justify="left" if head == "" else "right")
    measures = {"return (sum of rewards)": summary.returns, "length (steps)": summary.lengths}
    if summary.normalized_score is not None:
        measures["normalised score (0 random, 100 expert)"] = summary.normalized_score
    for key, q in measures.items():
        spread.add_row(key, *(_short(x) for x in (q.minimum, q.q25, q.median, q.q75, q.maximum, q.mean)))
    console.print(spread)

    _print_ledger(summary, console)
    if summary.frames is None:
        _print_dimensions(summary, console)
    if summary.choices:
        taken = Table(title="Actions", title_justify="left")
        taken.add_column("action")
        taken.add_column("share of steps", justify="right")
        counts = {} if summary.frames is None else summary.frames.action_counts
        if counts:
            taken.add_column("steps", justify="right")
        for label, share in summary.choices.items():
            taken.add_row(Text(printable(label)), f"{share:.1%}", *([f"{counts[label]:,}"] if counts else []))
        console.print(taken)


def _print_ledger(summary: Summary, console: Console) -> None:
    from rich.text import Text

    if summary.ledger:
        console.print(Text("On loading", style="italic"))
        for line in summary.ledger:
            console.print(Text(printable(f"  {line}")))


def _sizes(summary: Summary) -> str:
    if summary.frames is not None:
        shape = f"{summary.frames.stack} frames of {summary.frames.height}×{summary.frames.width}"
        return f"{shape} and {len(summary.choices)} discrete actions"
    if summary.choices:
        return f"{len(summary.observation)} dimensions and {len(summary.choices)} discrete actions"
    return f"{len(summary.observation)} and {len(summary.action)} dimensions"


def _print_dimensions(summary: Summary, console: Console) -> None:
    from rich.table import Table

    dimensions = Table(title="Dimensions (units of the environment)", title_justify="left")
    for head in ("", "min", "mean", "std", "max", "bounds"):
        dimensions.add_column(head, justify="left" if head == "" else "right")
    for i, r in enumerate(summary.observation):
        dimensions.add_row(f"observation {i}", *(_short(x) for x in (r.minimum, r.mean, r.std, r.maximum)), "")
    dimensions.add_section()
    bounds = zip(summary.action_low, summary.action_high, strict=True)
    for i, (r, (low, high)) in enumerate(zip(summary.action, bounds, strict=True)):
        values = (_short(x) for x in (r.minimum, r.mean, r.std, r.maximum))
        dimensions.add_row(f"action {i}", *values, f"{_short(low)} to {_short(high)}")
    console.print(dimensions)


def plot_summary(dataset: Dataset | FrameDataset, path: str | Path) -> Path:
    """Draw returns, lengths and the ranges of observations and actions; the format follows the ending of the path.

    Args:
        dataset: any.
        path: of the picture, such as out.png, out.svg or out.pdf.
    """
    require("matplotlib", "drawing figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    check_figure(path, force=True)
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)  # of its own: pyplot would pick a back end and keep global state
    figure.suptitle(
        f"{dataset.name}: {_count(dataset.size, 'transition')}, {_count(dataset.num_episodes, 'episode')} "
        f"({dataset.terminal.sum():,} terminal, {dataset.timeout.sum():,} timed out)",
        fontsize=13,
    )
    axes = figure.subplots(2, 2)
    _histogram(axes[0, 0], dataset.episode_returns, "Episode returns", "return (sum of rewards)")
    _histogram(axes[0, 1], dataset.episode_lengths, "Episode lengths", "length (steps)")
    if isinstance(dataset, FrameDataset):
        _pictures(axes[1, 0], dataset)
    else:
        _spans(axes[1, 0], dataset.observation, "Observations", "C0")
    if isinstance(dataset, FrameDataset) or dataset.discrete:
        _bars(axes[1, 1], _choices(dataset))
    else:
        _spans(axes[1, 1], dataset.action, "Actions", "C1", dataset.action_low, dataset.action_high)
    write_figure(figure, path)
    return path


def _ranges(values: np.ndarray) -> tuple[Range, ...]:
    columns = (
        values.min(axis=0),
        values.mean(axis=0, dtype=np.float64),
        values.std(axis=0, dtype=np.float64),
        values.max(axis=0),
    )
    return tuple(Range(*(float(x) for x in row)) for row in zip(*columns, strict=True))


def _choices(dataset: Dataset | FrameDataset) -> dict[str, float]:
    if dataset.num_actions is None:
        return {}
    labels = dataset.action_labels or tuple(str(number) for number in range(dataset.num_actions))
    shares = np.bincount(dataset.action, minlength=dataset.num_actions) / dataset.size
    return dict(zip(labels, shares.tolist(), strict=True))


def _bars(axis: Any, choices: dict[str, float]) -> None:
    axis.bar(list(choices), list(choices.values()), color="C1", alpha=0.75)
    axis.set(title="Actions", ylabel="share of steps")
    axis.spines[["top", "right"]].set_visible(False)


def _pictures(axis: Any, dataset: FrameDataset) -> None:
    """Eight frames, evenly spread over the data."""
    rows = np.linspace(0, dataset.size - 1, 8).astype(int)
    frames = [np.pad(dataset.frames[row], 1, constant_values=255) for row in rows]
    axis.imshow(np.vstack([np.hstack(frames[:4]), np.hstack(frames[4:])]), cmap="gray", vmin=0, vmax=255)
    axis.set(title="Frames, evenly spread over the data", xticks=[], yticks=[])


def _scores(dataset: Dataset) -> Quantiles | None:
    if dataset.environment is None:
        return None
    try:
        from sapp.data.normalised_scores import normalized_score

        return Quantiles.of(normalized_score(dataset.environment, dataset.episode_returns))
    # No reference returns are known for most environments.
    except SappError:
        return None


def _short(value: float) -> str:
    """At most four significant digits, but never an integer part cut off."""
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _histogram(axis: Any, values: np.ndarray, title: str, label: str) -> None:
    low, high = float(values.min()), float(values.max())
    if low == high:
        # matplotlib would draw one bar of width 1 around the value, whatever its scale.
        low, high = low - max(1.0, abs(low) * 0.05), high + max(1.0, abs(high) * 0.05)
    axis.hist(values, bins=min(50, max(10, int(np.sqrt(len(values))))), range=(low, high), color="C0", alpha=0.75)
    axis.axvline(float(np.mean(values)), color="black", linewidth=1, linestyle="--")
    axis.set(title=f"{title} (dashed: mean {_short(float(np.mean(values)))})", xlabel=label, ylabel="episodes")
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.spines[["top", "right"]].set_visible(False)


def _spans(
    axis: Any,
    values: np.ndarray,
    title: str,
    color: str,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
) -> None:
    """Per dimension: thin line from min to max, thick line from 5 to 95 %, a dot at the mean."""
    # A fixed stride keeps the quantiles of millions of rows quick and the picture the same every time.
    some = values[:: max(1, len(values) // 200_000)]
    where = np.arange(values.shape[1])
    inner = np.quantile(some, (0.05, 0.95), axis=0)
    axis.vlines(where, values.min(axis=0), values.max(axis=0), color=color, linewidth=1.2, label="min to max")
    axis.vlines(where, inner[0], inner[1], color=color, linewidth=6, alpha=0.45, label="5 to 95 %")
    axis.plot(where, values.mean(axis=0, dtype=np.float64), "o", color="black", markersize=3.5, label="mean")
    if low is not None and high is not None:
        ends = np.concatenate([low, high])
        axis.hlines(
            ends, np.tile(where - 0.35, 2), np.tile(where + 0.35, 2), color="black", linewidth=1, label="bounds"
        )
    axis.set(title=title, xlabel="dimension", ylabel="value")
    axis.set_xlim(-0.7, values.shape[1] - 0.3)
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=20)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)
    axis.margins(y=0.12)
    axis.legend(frameon=False, fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.16))
