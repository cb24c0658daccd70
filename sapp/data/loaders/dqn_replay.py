"""DQN-Replay folders, the layout in which Dopamine keeps its replay buffers: read them, whole or in part, write them.

A folder holds shards 0, 1, 2, … of rows in the order they were played. Shard N is six files, each a gzipped .npy:
``$store$_observation_ckpt.N.gz`` (uint8 [n, 84, 84], single frames), ``$store$_action_ckpt.N.gz`` (int32 [n]),
``$store$_reward_ckpt.N.gz`` (float32 [n], clipped to [−1, 1]), ``$store$_terminal_ckpt.N.gz`` (uint8 [n]),
``add_count_ckpt.N.gz`` (how many rows were ever added) and ``invalid_range_ckpt.N.gz`` (rows at the write cursor). In
front of every episode lie stack − 1 rows of zeros.

There is no flag for time-outs, and nothing follows a shard's last row: an episode that is cut there is a time-out. Logs
that sapp writes add ``$store$_timeout_ckpt.N.gz`` (uint8 [n]), which Dopamine does not read, and ``sapp.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sapp.core.decode import check_fits
from sapp.core.errors import SappError, one_line
from sapp.data.field_names import FIELD_DOCS
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Column, Kind, Ledger
from sapp.data.loaders.dqn_files import (
    META,
    SMALL,
    STORES,
    fill,
    logs_folder,
    open_gz,
    read_array,
    read_bytes,
    read_header,
    shard_numbers,
    shard_path,
)
from sapp.data.loaders.dqn_writer import SHARD_ROWS, ShardWriter
from sapp.data.loaders.frame_files import FrameWriter
from sapp.data.registry import NAMES, Format

_READ_ROWS = 4096
"""Frames that are read together."""


def is_dqn_replay(path: Path) -> bool:
    """Whether a path is a folder of DQN-Replay shards, or holds one called replay_logs."""
    return bool(shard_numbers(logs_folder(path)))


def load_dqn_replay(
    folder: str | Path,
    *,
    shards: Sequence[int] | None = None,
    fraction: float | None = None,
    per_shard: int | None = None,
    take: Literal["first", "episodes"] = "first",
    seed: int = 0,
    into: str | Path | None = None,
    num_actions: int | None = None,
    stack: int | None = None,
    padded: bool | None = None,
    name: str | None = None,
    environment: str | None = None,
) -> FrameDataset:
    """Read a DQN-Replay folder, or a part of every shard of it.

    CQL's 1 % is ``per_shard=10_000``: the first rows of each of 50 shards of a million. d3rlpy's is
    ``per_shard=10_000, take="episodes"``: whole episodes in random order until there are as many. Zero rows in front of
    episodes count towards the number, as they do there, and are dropped after; the rows stay in the order of the log.

    Args:
        folder: that holds the shards, or a folder replay_logs that does.
        shards: numbers of the shards to read; all by default.
        fraction: part of each shard to read, such as 0.01; or give ``per_shard``.
        per_shard: rows to read of each shard; or give ``fraction``.
        take: which rows: the first ones, or whole shuffled episodes.
        seed: of the shuffle.
        into: write the frames to this new folder and map them, where they do not fit into memory.
        num_actions: how many actions the game has; by default what sapp wrote beside the log, or the largest action
            that was taken.
        stack: frames of an observation; by default what sapp wrote, or 4.
        padded: whether zero rows lie in front of episodes; by default that is looked up.
        name: of the dataset; by default what sapp wrote, or the folder's name.
        environment: likewise.
    """
    root = logs_folder(Path(folder))
    numbers = shard_numbers(root)
    if not numbers:
        raise SappError(f"{folder}: no $store$_observation_ckpt.N.gz in it; give the folder that holds the shards")
    if missing := [number for number in shards or () if number not in numbers]:
        raise SappError(f"{root}: no shard {missing[0]}; there are {numbers[0]} to {numbers[-1]}")
    meta = _meta(root)
    stack = int(stack or meta.get("stack") or 4)
    quota = _quota(root, fraction, per_shard, take)
    parts = _open(root, numbers if shards is None else shards)
    ledger = _account(root, parts, numbers)
    if quota is not None:
        total = np.concatenate([part.reward[part.rows] for part in parts])
        for part in parts:
            part.select(quota, take, seed)
        _account_choice(ledger, total, parts, f"{'first rows' if take == 'first' else 'random episodes'} of each shard")
    zeros = meta.get("padded", padded) if padded is None else padded
    zeros = parts[0].looks_padded(stack) if zeros is None else zeros
    notes: dict[str, Any] = {
        "loader": "dqn-replay", "source": str(folder), "shards": [part.number for part in parts],
        "rows_read": sum(len(part.rows) for part in parts), "padded": bool(zeros),
    }  # fmt: skip
    if quota is not None:
        notes |= {"fraction": fraction, "per_shard": per_shard, "take": take, "seed": seed}
    chosen = _described(root, meta, parts, notes, num_actions, name, environment) | {"stack": stack}
    pad = stack - 1 if zeros else 0
    if into is not None:
        with FrameWriter(into, parts[0].frame_shape, **chosen) as writer:
            for part in parts:
                for block in part.blocks(pad):
                    writer.append(*block)
            _account_ends(ledger, parts, writer.rows)
            writer.note(ledger=ledger.to_json())
            return writer.close()
    found = _in_memory(root, parts, pad, chosen)
    _account_ends(ledger, parts, len(found))
    return replace(found, provenance={**notes, "ledger": ledger.to_json()})


def _described(
    root: Path,
    meta: Mapping[str, Any],
    parts: Sequence[_Shard],
    notes: dict[str, Any],
    num_actions: int | None,
    name: str | None,
    environment: str | None,
) -> dict[str, Any]:
    """What a dataset of frames is told about itself: as asked, as sapp wrote it, or as the log shows it."""
    counted = num_actions or meta.get("num_actions")
    if counted is None:
        counted = 1 + max(int(part.action.max(initial=0)) for part in parts)
        notes["num_actions_from"] = "the largest action in the log"
    if "provenance" in meta:
        notes["made"] = meta["provenance"]
    labels = None if meta.get("action_labels") is None else tuple(meta["action_labels"])
    return {
        "num_actions": int(counted),
        "name": name or meta.get("name") or root.name,
        "environment": environment or meta.get("environment"),
        "provenance": notes,
        "action_labels": labels if labels is None or len(labels) == int(counted) else None,
    }


def _account(root: Path, parts: Sequence[_Shard], numbers: Sequence[int]) -> Ledger:
    """The arrays of a shard, and rows that the buffer never filled."""
    uses = {
        "observation": "frames", "action": "action", "reward": "reward", "terminal": FIELD_DOCS["terminal"],
        "timeout": FIELD_DOCS["timeout"], "add_count": "how many rows were filled, and where the newest one is",
    }  # fmt: skip
    first = parts[0].number
    names = {key: shard_path(root, key, first).name.removesuffix(f".{first}.gz") for key in uses}
    ledger = Ledger(sum(part.size for part in parts))
    ledger.columns = [
        Column(names[key], use) for key, use in uses.items() if shard_path(root, key, first).is_file()
    ]  # fmt: skip
    known = set(names.values())
    others = {each.name.removesuffix(f".{first}.gz") for each in root.glob(f"*.{first}.gz")} - known
    ledger.columns += [Column(name, None, "not needed") for name in sorted(others)]
    if len(parts) < len(numbers):
        ledger.say(Kind.READ, f"{len(parts)} of {len(numbers)} shards were read, as asked", asked=True)
    if unfilled := ledger.rows - sum(len(part.rows) for part in parts):
        ledger.say(Kind.DROPPED, f"{unfilled} rows were never filled (add_count)", rows=unfilled)
    return ledger


def _account_choice(ledger: Ledger, before: np.ndarray, parts: Sequence[_Shard], what: str) -> None:
    """Rows that were not asked for."""
    kept = np.concatenate([part.reward[part.rows] for part in parts])
    size, left = (float(np.abs(each.astype(np.float64)).sum()) for each in (before, kept))
    if rows := len(before) - len(kept):
        ledger.say(
            Kind.DROPPED, f"{rows} rows are not among the {what} that were asked for", rows=rows,
            reward=1 - left / size if size else 0.0, asked=True,
        )  # fmt: skip


def _account_ends(ledger: Ledger, parts: Sequence[_Shard], kept: int) -> None:
    """Rows of zeros, and ends that are the log's, not the game's."""
    if blank := sum(len(part.rows) for part in parts) - kept:
        ledger.say(Kind.DROPPED, f"{blank} rows of zeros in front of episodes were left out", rows=blank)
    cut = sum(int(part.timeout[part.rows].sum()) for part in parts)
    if cut:
        why = "time-outs, ends of shards"
        ledger.say(Kind.READ, f"at {cut} rows the log stops without an end ({why}): they only follow others")


def _open(root: Path, numbers: Sequence[int]) -> list[_Shard]:
    """Shards whose frames are of one shape."""
    parts = [_Shard.open(root, number) for number in numbers]
    for part in parts:
        if part.frame_shape != parts[0].frame_shape:
            raise SappError(
                f"{root}: frames are {parts[0].frame_shape} in shard {parts[0].number} but {part.frame_shape} in "
                f"shard {part.number}; they belong to different logs"
            )
    return parts


def _in_memory(root: Path, parts: Sequence[_Shard], pad: int, chosen: Mapping[str, Any]) -> FrameDataset:
    height, width = parts[0].frame_shape
    total = sum(len(part.rows) for part in parts)
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if total * height * width > 0.8 * have:
        raise SappError(
            f"{root}: its frames take {total * height * width / 2**30:.1f} GiB, this machine has {have / 2**30:.1f}; "
            f"read a fraction, or give load_dqn_replay a folder to map them from (into)"
        )
    # Room for every row; the zero rows that are dropped leave pages at the end that are never touched.
    frames = np.empty((total, height, width), np.uint8)
    rest: list[tuple[np.ndarray, ...]] = []
    at = 0
    for part in parts:
        for block, *small in part.blocks(pad):
            frames[at : at + len(block)] = block
            rest.append(tuple(small))
            at += len(block)
    if not at:
        raise SappError(f"{root}: every row is empty (zeros before an episode); there is nothing to learn from")
    action, reward, terminal, timeout = (np.concatenate(column) for column in zip(*rest, strict=True))
    return FrameDataset(frames[:at], action, reward, terminal, timeout, **chosen)


@dataclass
class _Shard:
    """One shard: its small arrays in memory, its frames still in the file.

    ``rows`` are the row numbers that are wanted, rising; ``timeout`` marks, among all rows, where the log stops.
    """

    folder: Path
    number: int
    size: int
    frame_shape: tuple[int, int]
    action: np.ndarray
    reward: np.ndarray
    terminal: np.ndarray
    timeout: np.ndarray
    rows: np.ndarray

    @classmethod
    def open(cls, folder: Path, number: int) -> _Shard:
        path = shard_path(folder, "observation", number)
        for key in STORES[1:]:
            if not shard_path(folder, key, number).is_file():
                raise SappError(
                    f"{path}: its companion {shard_path(folder, key, number).name} is missing; get the whole shard"
                )
        with open_gz(path) as file:
            shape, dtype = read_header(file, path)
        if dtype != np.uint8 or len(shape) != 3:
            raise SappError(f"{path}: holds {dtype} {shape}; frames must be uint8 (rows, height, width)")
        small = {key: _column(folder, key, number, shape[0]) for key in SMALL}
        if shape[0] == 0:
            raise SappError(f"{path}: has no rows; leave this shard out")
        terminal, timeout = small["terminal"] == 1, small["timeout"] == 1
        count = _add_count(folder, number, shape[0])
        last = min(count, shape[0]) - 1
        if last < 0:
            raise SappError(f"{path}: add_count says that nothing was ever added; leave this shard out")
        timeout[last] = True
        # A buffer that went round has its oldest row behind the newest: nothing follows the newest.
        timeout[(count - 1) % shape[0]] = True
        return cls(
            folder, number, shape[0], (shape[1], shape[2]), small["action"].astype(np.int32),
            small["reward"].astype(np.float32), terminal, timeout & ~terminal, np.arange(last + 1),
        )  # fmt: skip

    def select(self, quota: float | int, take: str, seed: int) -> None:
        """Keep a part of the rows: a share (float) or a number (int) of them."""
        wanted = quota if isinstance(quota, int) else max(1, round(quota * len(self.rows)))
        if take == "first":
            self.rows = self.rows[:wanted]
        else:
            ends = np.flatnonzero((self.terminal | self.timeout)[: len(self.rows)])
            starts = np.concatenate([[0], ends[:-1] + 1])
            order = np.random.default_rng((seed, self.number)).permutation(len(ends))
            before = np.cumsum((ends - starts + 1)[order]) - (ends - starts + 1)[order]
            chosen = np.sort(order[before < wanted])
            self.rows = np.concatenate([np.arange(starts[i], ends[i] + 1) for i in chosen])
        self.timeout = self.timeout.copy()
        self.timeout[self.rows[-1]] = not self.terminal[self.rows[-1]]

    def looks_padded(self, stack: int) -> bool:
        """Whether stack − 1 rows of zeros lie in front of the first episode that starts in this shard."""
        ends = np.flatnonzero(self.terminal)
        start = int(ends[0]) + 1 if len(ends) and ends[0] + stack < self.size else 0
        rows = slice(start, start + stack - 1)
        if stack == 1 or start + stack > self.size:
            return False
        if self.action[rows].any() or self.reward[rows].any() or self.terminal[rows].any():
            return False
        wanted = np.arange(self.size)[rows]
        return not any(block.any() for block, _ in self._frames(wanted))

    def blocks(self, pad: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """The wanted rows as (frames, action, reward, terminal, timeout), less ``pad`` zero rows before episodes."""
        ends = (self.terminal | self.timeout)[self.rows]
        step = np.arange(len(ends)) - np.maximum.accumulate(
            np.where(np.concatenate([[True], ends[:-1]]), np.arange(len(ends)), 0)
        )
        quiet = (self.action == 0) & (self.reward == 0) & ~self.terminal
        blank_before = False
        at = 0
        for frames, rows in self._frames(self.rows):
            here = step[at : at + len(rows)]
            at += len(rows)
            blank = (here < pad) & quiet[rows]
            blank[blank] = ~frames[blank].any(axis=(1, 2))
            for i in np.flatnonzero(blank & (here > 0)):  # at most pad rows per episode
                blank[i] = blank[i - 1] if i else blank_before
            blank_before = bool(blank[-1])
            keep = ~blank
            rows = rows[keep]
            if len(rows):
                yield frames[keep], self.action[rows], self.reward[rows], self.terminal[rows], self.timeout[rows]

    def _frames(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Frames of rising row numbers, a few thousand at a time: the file is read once, up to the last of them."""
        path = shard_path(self.folder, "observation", self.number)
        buffer = np.empty((_READ_ROWS, *self.frame_shape), np.uint8)
        with open_gz(path) as file:
            read_header(file, path)
            for start in range(0, int(rows[-1]) + 1, _READ_ROWS):
                stop = min(start + _READ_ROWS, self.size)
                fill(file, buffer[: stop - start], path, start, self.size)
                here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)]
                if len(here):
                    yield buffer[here - start], here
            if rows[-1] + 1 == self.size and read_bytes(file, 1, path):
                raise SappError(f"{path}: goes on after its {self.size} rows; it is damaged, get it again")


def save_dqn_replay(dataset: FrameDataset, folder: str | Path, *, shard_rows: int = SHARD_ROWS, level: int = 1) -> Path:
    """Write a dataset as a DQN-Replay folder; ``load_dqn_replay`` reads the same rows back.

    Args:
        dataset: in memory or mapped.
        folder: to write to; it must hold no shards yet.
        shard_rows: rows of a shard at most; shards hold whole episodes.
        level: of gzip.
    """
    writer = ShardWriter(
        folder,
        dataset.frame_shape,
        num_actions=dataset.num_actions,
        stack=dataset.stack,
        shard_rows=shard_rows,
        name=dataset.name,
        environment=dataset.environment,
        provenance=dataset.provenance,
        action_labels=dataset.action_labels,
        level=level,
    )
    try:
        for start, end in zip(dataset.episode_starts.tolist(), dataset.episode_ends.tolist(), strict=True):
            rows = slice(start, end + 1)
            writer.write_frames(
                dataset.frames[rows],
                dataset.action[rows],
                dataset.reward[rows],
                bool(dataset.terminal[end]),
                bool(dataset.timeout[end]),
            )
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _meta(folder: Path) -> dict[str, Any]:
    """What sapp wrote beside the log, if it did."""
    path = folder / META
    if not path.is_file():
        return {}
    try:
        meta = json.loads(path.read_text())
        if meta["format"] != "sapp dqn-replay":
            raise ValueError("of another format")
        for key, hint in _MADE.items():
            check_fits(meta.get(key), hint | None, f"{path}: {key!r}")
        return dict(meta)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SappError(f"{path}: is damaged ({one_line(error)}); delete it and give num_actions") from None


_MADE: dict[str, Any] = {
    "name": str, "environment": str, "num_actions": int, "stack": int, "padded": bool, "action_labels": list[str],
    "provenance": dict[str, Any],
}  # fmt: skip


def _quota(root: Path, fraction: float | None, per_shard: int | None, take: str) -> float | int | None:
    if take not in ("first", "episodes"):
        raise SappError(f"{root}: take is {take!r}; choose first or episodes")
    if fraction is not None and per_shard is not None:
        raise SappError(f"{root}: give fraction or per_shard, not both")
    if fraction is not None and not 0 < fraction <= 1:
        raise SappError(f"{root}: fraction is {fraction:g}; it must be above 0 and at most 1")
    if per_shard is not None and per_shard < 1:
        raise SappError(f"{root}: per_shard is {per_shard}; it must be 1 or more")
    return None if fraction is None and per_shard is None else float(fraction) if fraction else int(per_shard or 1)


def _column(folder: Path, key: str, number: int, rows: int) -> np.ndarray:
    path = shard_path(folder, key, number)
    if key == "timeout" and not path.is_file():
        return np.zeros(rows, np.uint8)
    value = read_array(path)
    if value.ndim != 1 or len(value) != rows:
        raise SappError(f"{path}: has shape {value.shape}, the frames of shard {number} have {rows} rows")
    if value.dtype.kind not in ("f" if SMALL[key] == "float" else "biu"):
        raise SappError(f"{path}: holds {value.dtype}; {key} must be {SMALL[key]} numbers")
    if key in ("terminal", "timeout") and (value.max(initial=0) > 1 or value.min(initial=0) < 0):
        raise SappError(f"{path}: holds {max(value.min(), value.max(), key=abs)}; {key} must be 0 or 1")
    if key == "reward" and not np.isfinite(value).all():
        raise SappError(f"{path}: reward is not finite at row {np.flatnonzero(~np.isfinite(value))[0]}; repair it")
    if key == "action" and (value.min(initial=0) < 0 or value.max(initial=0) >= 2**31):
        wrong = value.min() if value.min() < 0 else value.max()
        raise SappError(f"{path}: action is {wrong}; actions are numbered from 0")
    return value


def _add_count(folder: Path, number: int, rows: int) -> int:
    """How many rows were ever added; logs without the file are taken to be full and in order."""
    path = shard_path(folder, "add_count", number)
    if not path.is_file():
        return rows
    value = read_array(path)
    if value.shape != () or value.dtype.kind not in "iu" or value < 0:
        raise SappError(f"{path}: holds {value.dtype} {value.shape}; add_count must be one whole number")
    return int(value)


FORMAT = Format(
    "a folder of DQN-Replay shards", lambda request: bool(request.text) and is_dqn_replay(request.path),
    load_dqn_replay, NAMES,
)  # fmt: skip
