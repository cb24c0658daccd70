"""Makes the benchmark's datasets and finds those that are made.

A dataset is recorded in blocks of whole episodes, each written into a hidden folder beside its final place. An
interrupted generation goes on with the next block and ends with the same bytes. Only when everything is there is the
dataset put together and moved into place, so Minari never sees half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sapp.collect.benchmark import minari_files
from sapp.collect.benchmark.recipes import RECIPE, UNIFORM, Segment, Training, recipe
from sapp.collect.benchmark.rollout import behaviour, segment_seed
from sapp.collect.benchmark.shipped import available, shipped
from sapp.core.errors import SappError
from sapp.core.files import remove_leftovers, write_text
from sapp.core.locks import locked
from sapp.core.progress_bar import Report as Progress
from sapp.core.progress_bar import reported
from sapp.core.statistics import standard_error
from sapp.data.benchmark_names import NAMES, Name, parse
from sapp.data.dataset import Dataset
from sapp.data.loaders.arrays import load_npz, save_npz
from sapp.data.loaders.minari import minari_folder
from sapp.data.normalised_scores import normalized_score
from sapp.envs import make as make_environment
from sapp.envs.base import BatchEnvironment, check_seed
from sapp.envs.collect import collect
from sapp.envs.policies import TanhGaussianPolicy, load_policy

BLOCK = 100_000
"""Transitions recorded at a time: what an interruption can cost. Part of what determines the bits."""
ORDER = "order.json"
SHIPPED = "shipped with sapp"
"""What the metadata say of policies that come with the package."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MARGIN = 50_000_000
"""Bytes that a disk should have left."""


@dataclass(frozen=True)
class Order:
    """Everything that determines a dataset.

    Attributes:
        name: which of the eighteen.
        seed: of starts and actions.
        segments: what is rolled out, in order.
        policies: by name.
        source: where the policies are from, as JSON.
    """

    name: Name
    seed: int
    segments: tuple[Segment, ...]
    policies: Mapping[str, TanhGaussianPolicy]
    source: Mapping[str, Any]

    @property
    def transitions(self) -> int:
        """How many transitions the segments have together."""
        return sum(segment.transitions for segment in self.segments)

    def to_json(self) -> dict[str, Any]:
        """As the dataset's metadata hold it."""
        segments = [
            {"policy": each.policy, "transitions": each.transitions}
            | ({} if each.policy == UNIFORM else {"sha256": digest(self.policies[each.policy])})
            for each in self.segments
        ]
        return {
            "name": self.name.text,
            "recipe": RECIPE,
            "seed": self.seed,
            "transitions": self.transitions,
            "environment": self.name.environment,
            "physics": "d4rl",
            "block": BLOCK,
            "policies": dict(self.source),
            "segments": segments,
            "versions": versions(),
        }


class Standing(NamedTuple):
    """Where one of the eighteen stands.

    Attributes:
        name: such as "hopper-medium".
        made: its metadata, or None.
        outdated: whether it was made by an earlier recipe.
        begun: whether an interrupted generation waits to be resumed.
        can_make: whether policies for it are at hand.
    """

    name: str
    made: dict[str, Any] | None
    outdated: bool
    begun: bool
    can_make: bool


def order(
    name: str, *, transitions: int | None = None, seed: int = 0, policy_from: str | Path | None = None,
    policies: Path | None = None,
) -> Order:  # fmt: skip
    """What ``make`` would make.

    Args:
        name: such as "hopper-medium".
        transitions: how many; D4RL's size by default.
        seed: of starts and actions.
        policy_from: a D4RL HDF5 file (or a policy in .npz) whose behaviour policy is used for medium and expert.
        policies: folder of policies in place of the shipped ones.
    """
    which = parse(name)
    count = which.transitions if transitions is None else transitions
    check_seed(seed)
    if policy_from is not None:
        if which.quality not in ("medium", "expert"):
            raise SappError(f"{name}: one policy makes medium or expert only; leave --policy-from out for this one")
        path = Path(policy_from)
        policy = load_policy(path)
        training = Training({path.name: 0}, path.name, path.name, {})
        source = {"from": "a file", "file": path.name}
        return Order(which, seed, tuple(recipe(which, count, training)), {path.name: policy}, source)
    if which.quality == "random":
        return Order(which, seed, tuple(recipe(which, count, None)), {}, {"from": "uniform actions"})
    found = shipped(which.environment, policies)
    segments = tuple(recipe(which, count, found.training))
    used = {each.policy for each in segments}
    card = {key: value for key, value in found.card.items() if key != "snapshots"}
    card["snapshots"] = [one for one in found.card["snapshots"] if one["name"] in used]
    chosen = {key: value for key, value in found.policies.items() if key in used}
    origin = SHIPPED if policies is None else "a folder of policies"
    return Order(which, seed, segments, chosen, {"from": origin, **card})


def make(
    name: str,
    *,
    transitions: int | None = None,
    seed: int = 0,
    policy_from: str | Path | None = None,
    policies: Path | None = None,
    root: Path | None = None,
    replace: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Make a dataset and return its folder; one that is already there, made to the same order, is left alone.

    Args:
        name: such as "hopper-medium".
        transitions: how many; D4RL's size by default.
        seed: of starts and actions.
        policy_from: a D4RL HDF5 file whose behaviour policy is used instead of the shipped one.
        policies: folder of policies in place of the shipped ones.
        root: Minari's root; by default the usual one.
        replace: put it in place of one that was made to another order.
        threads: simulator threads; by default one per core.
        progress: called with transitions done and in all.
    """
    wanted = order(name, transitions=transitions, seed=seed, policy_from=policy_from, policies=policies)
    environment = make_environment(wanted.name.environment, threads=threads)
    for segment in wanted.segments:
        behaviour(segment.policy, wanted.policies, environment)  # a policy that does not fit is refused now
    root = root or minari_folder()
    target = minari_files.folder_of(wanted.name.minari, root)
    if target.exists():
        there = minari_files.read_metadata(wanted.name.minari, root)
        if there is not None and same(there[minari_files.OURS], wanted.to_json()):
            return target
        if not replace:
            raise SappError(f"{target}: already there, made {_difference(there, wanted)}; give --replace, or remove it")
    partial = target.parent / f".{target.name}.partial"
    check_disk(wanted, root, partial)
    try:
        partial.mkdir(parents=True, exist_ok=True)
        with locked(partial / ".lock", f"{partial}: another process is making this dataset; wait for it"):
            _prepare(partial, wanted)
            blocks = _record(wanted, environment, partial, progress)
            minari_files.make_namespaces(wanted.name.minari, root)
            _put_in_place(wanted, blocks, partial, target)
        shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise SappError(f"{target}: cannot write ({error.strerror or error}); choose another Minari root") from None
    return target


def load(name: str, *, root: Path | None = None, progress: Progress | None = None) -> Dataset:
    """One of the eighteen as a dataset: as it was made, or made now in D4RL's size with seed 0.

    Without ``progress``, stderr shows how far it is. One that an earlier sapp made by another recipe is refused: under
    one name there is one distribution of data.
    """
    which = parse(name)
    there = minari_files.read_metadata(which.minari, root)
    if there is None:
        place = minari_files.folder_of(which.minari, root or minari_folder())
        what = f"making {which.text}: {which.transitions:,} transitions, once; then it is read from {place}"
        with reported(progress, what) as report:
            make(name, root=root, progress=report)
    elif is_outdated(there):
        size = there[minari_files.OURS]["transitions"]
        again = "" if size == which.transitions else f" --transitions {size:_}"
        raise SappError(
            f"{minari_files.folder_of(which.minari, root)}: {which.text} made by an earlier recipe, of other policies "
            f"or shares than today's; make it again with `sapp data make {which.text}{again} --replace`"
        )
    return minari_files.read(which.minari, which.text, which.environment, "d4rl", root)


def standing(root: Path | None = None) -> list[Standing]:
    """Where each of the eighteen stands."""
    policies = available()
    rows = []
    for text in NAMES:
        name = parse(text)
        target = minari_files.folder_of(name.minari, root)
        begun = (target.parent / f".{target.name}.partial" / ORDER).is_file()
        can = name.quality == "random" or name.environment in policies
        made = minari_files.read_metadata(name.minari, root)
        rows.append(Standing(text, made, made is not None and is_outdated(made), begun, can))
    return rows


def is_outdated(metadata: Mapping[str, Any]) -> bool:
    """Whether a dataset was made of the policies that come with sapp, but not by today's recipe."""
    ours = metadata[minari_files.OURS]
    if ours["policies"]["from"] != SHIPPED:
        return False
    return not same(ours, order(ours["name"], transitions=ours["transitions"], seed=ours["seed"]).to_json())


def digest(policy: TanhGaussianPolicy) -> str:
    """SHA-256 over a policy's weights."""
    found = hashlib.sha256()
    for key, array in sorted(policy.arrays().items()):
        found.update(f"{key}{array.shape}".encode())
        found.update(np.ascontiguousarray(array, "<f4").tobytes())
    return found.hexdigest()


def versions() -> dict[str, str]:
    """What the bits depend on beside the order."""
    from importlib.metadata import version

    from sapp.core.version import __version__

    return {"sapp": __version__, **{name: version(name) for name in ("mujoco", "numpy", "gymnasium")}}


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two descriptions ask for the same data; versions aside, and what was measured afterwards."""
    keys = ("name", "seed", "transitions", "environment", "physics", "block", "segments")
    return all(one.get(key) == other.get(key) for key in keys)


def check_disk(wanted: Order, root: Path, partial: Path) -> None:
    """Refuse to begin where the disk has no room for the blocks and the finished file."""
    place = root
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK) or not place.is_dir():
        raise SappError(f"{place}: not a folder that can be written to; set MINARI_DATASETS_PATH to another one")
    needed = 2 * size_estimate(wanted) + MARGIN
    there = sum(file.stat().st_size for file in partial.rglob("*") if file.is_file()) if partial.is_dir() else 0
    free = shutil.disk_usage(place).free
    if free + there < needed:
        raise SappError(
            f"{root}: {wanted.name.text} needs {needed / 1e6:,.0f} MB while it is made, the disk has {free / 1e6:,.0f} "
            "MB; free some space, set MINARI_DATASETS_PATH, or ask for fewer --transitions"
        )


def size_estimate(wanted: Order) -> int:
    """Bytes of the finished file, from above: rows, and some kilobytes per episode, of which D4RL has so many."""
    width = {"halfcheetah": 17 + 6, "hopper": 11 + 3, "walker2d": 17 + 6}[wanted.name.environment]
    episodes = 1 + 2 * wanted.transitions * wanted.name.d4rl_episodes // wanted.name.transitions
    return wanted.transitions * (4 * width + 4 * 2 + 2) + episodes * 4_000


def _prepare(partial: Path, wanted: Order) -> None:
    """Keep blocks of the same order from an interrupted generation, and nothing else."""
    remove_leftovers(partial)
    text = json.dumps(wanted.to_json(), ensure_ascii=False)
    path = partial / ORDER
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        for file in partial.iterdir():
            if file.name != ".lock":
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        write_text(path, text)
    for folder in ("final", "old"):
        shutil.rmtree(partial / folder, ignore_errors=True)


def _record(wanted: Order, environment: BatchEnvironment, partial: Path, progress: Progress | None) -> list[Path]:
    """All blocks, recorded now or found."""
    files: list[Path] = []
    done = 0
    for number, segment in enumerate(wanted.segments):
        policy = behaviour(segment.policy, wanted.policies, environment)
        count = episode = 0
        while count < segment.transitions:
            left = segment.transitions - count
            # one that could be overshot by its last episode is recorded exactly to its end
            last = left <= BLOCK + environment.max_episode_steps
            path = partial / f"block-{number:03d}-{len(files):05d}.npz"
            block = _whole(path)
            if block is None:
                report = None if progress is None else _counted(progress, done, wanted.transitions)
                block = collect(
                    policy, environment, left if last else BLOCK, segment_seed(wanted.seed, segment.policy),
                    progress=report, name=segment.policy, first_episode=episode, whole=not last,
                )  # fmt: skip
                save_npz(block, path)
            files.append(path)
            count, episode, done = count + len(block), episode + block.num_episodes, done + len(block)
            if progress is not None:
                progress(done, wanted.transitions)
    return files


def _counted(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    return lambda count: progress(min(total, done + count), total)


def _whole(path: Path) -> Dataset | None:
    """A block from before, if it can be read."""
    if not path.exists():
        return None
    try:
        return load_npz(path)
    except SappError:
        path.unlink()
        return None


def _put_in_place(wanted: Order, blocks: list[Path], partial: Path, target: Path) -> None:
    summary = _Summary(wanted.name.environment)

    def parts() -> Iterator[Dataset]:
        for path in blocks:
            block = load_npz(path)
            summary.add(block)
            yield block

    final = partial / "final"
    ours = wanted.to_json()
    minari_files.write(final, wanted.name.minari, parts(), ours, describe(wanted))
    # what was measured is known only now; the metadata are written again with it
    path = final / "data" / minari_files.METADATA
    metadata = json.loads(path.read_text(encoding="utf-8"))
    metadata[minari_files.OURS]["summary"] = summary.result()
    write_text(path, json.dumps(metadata))
    if target.exists():
        os.rename(target, partial / "old")
    os.rename(final, target)


class _Summary:
    """Returns and ends of episodes, block by block."""

    def __init__(self, environment: str) -> None:
        self._environment = environment
        self._returns: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._terminals = 0

    def add(self, block: Dataset) -> None:
        self._returns.append(block.episode_returns)
        self._lengths.append(block.episode_lengths)
        self._terminals += int(block.terminal.sum())

    def result(self) -> dict[str, Any]:
        returns, lengths = np.concatenate(self._returns), np.concatenate(self._lengths)
        scores = normalized_score(self._environment, returns)
        return {
            "transitions": int(lengths.sum()),
            "episodes": len(returns),
            "terminals": self._terminals,
            "return_mean": float(returns.mean()),
            "length_mean": float(lengths.mean()),
            "score_mean": float(scores.mean()),
            "score_error": standard_error(scores) if len(scores) > 1 else None,
            "score_quantiles": dict(
                zip((f"{q:g}" for q in QUANTILES), map(float, np.quantile(scores, QUANTILES)), strict=True)
            ),
        }


def describe(wanted: Order) -> str:
    """One or two sentences for the metadata."""
    quality = {
        "random": "uniform actions",
        "medium": "one frozen stochastic policy of medium quality",
        "expert": "one frozen stochastic policy of expert quality",
        "medium-expert": "a medium and an expert policy, one after the other, both stochastic",
        "medium-replay": "snapshots of a SAC run in training order up to the medium policy, rolled out again",
        "full-replay": "snapshots of a SAC run in training order up to the expert policy, rolled out again",
    }[wanted.name.quality]
    return f"{wanted.name.environment} with the physics of D4RL v2; {quality}. Made by sapp, not D4RL's own data."


def _difference(there: dict[str, Any] | None, wanted: Order) -> str:
    """In words, why what is there is not what is wanted."""
    if there is None:
        return "by something else"
    ours, new = there[minari_files.OURS], wanted.to_json()
    for key in ("seed", "transitions", "block"):
        if ours.get(key) != new[key]:
            return f"with {key} {ours.get(key)}, not {new[key]}"
    return "by an earlier recipe" if is_outdated(there) else "with other policies"
