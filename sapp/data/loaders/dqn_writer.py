"""Writing shards in DQN-Replay's layout, an episode at a time."""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sapp.core.errors import SappError
from sapp.core.files import sync, write_text
from sapp.data.loaders.dqn_files import META, SMALL, save_array, shard_numbers, shard_path

SHARD_ROWS = 1_000_000
"""Rows of a shard at most, as in the published logs."""

MEMBER_ROWS = 64
"""Frames that are compressed together."""


class ShardWriter:
    """Writes shards of whole episodes in DQN-Replay's layout, one after the other.

    A shard holds at most ``shard_rows`` rows (or one episode, if that is longer), so that Dopamine reads it with that
    replay capacity. Its files appear together, when it is full or the writer is closed; before that they are hidden,
    and a process that dies leaves no half a shard. Memory: 10 bytes per row of one shard.

    Args:
        folder: to write to; it must hold no shards yet, unless ``resume``.
        frame_shape: height and width.
        num_actions: see ``FrameDataset``.
        stack: see ``FrameDataset``; there are stack − 1 zero rows in front of each episode.
        shard_rows: rows of a shard at most.
        name: see ``FrameDataset``.
        environment: see ``FrameDataset``.
        provenance: see ``FrameDataset``.
        action_labels: see ``FrameDataset``.
        level: of gzip, 1 (quick) to 9 (small).
        resume: go on after the shards that are there.
        again: write what is there once more, from the first shard on.
    """

    def __init__(
        self,
        folder: str | Path,
        frame_shape: tuple[int, int],
        *,
        num_actions: int,
        stack: int = 4,
        shard_rows: int = SHARD_ROWS,
        name: str | None = None,
        environment: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        action_labels: Sequence[str] | None = None,
        level: int = 1,
        resume: bool = False,
        again: bool = False,
    ) -> None:
        self.folder = Path(folder)
        if shard_rows < 1 or stack < 1 or not 1 <= level <= 9:
            raise SappError(f"{folder}: shard_rows and stack must be 1 or more, level 1 to 9")
        there = shard_numbers(self.folder)
        if there and not (resume or again):
            raise SappError(f"{self.folder}: holds shards already; give another folder")
        self.frame_shape = (int(frame_shape[0]), int(frame_shape[1]))
        self.stack, self.level = int(stack), int(level)
        self._limit = int(shard_rows)
        self._number = there[-1] + 1 if there and not again else 0
        self._file: BinaryIO | None = None
        self._start()
        meta = {
            "format": "sapp dqn-replay",
            "name": name or self.folder.name,
            "environment": environment,
            "num_actions": int(num_actions),
            "action_labels": None if action_labels is None else list(action_labels),
            "stack": self.stack,
            "padded": True,
            "provenance": dict(provenance or {}),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / META, json.dumps(meta, indent=2) + "\n")

    def _start(self) -> None:
        self._small: dict[str, list[np.ndarray]] = {key: [] for key in SMALL}
        self._rows = 0

    @property
    def _aside(self) -> Path:
        return shard_path(self.folder, "observation", self._number).with_name(f".observation.{self._number}.tmp")

    def compress(self, frames: np.ndarray) -> bytes:
        """Some frames as a gzip member of their own: members are joined by writing one after the other."""
        packer = zlib.compressobj(self.level, zlib.DEFLATED, 31)
        return packer.compress(np.ascontiguousarray(frames, np.uint8).data) + packer.flush()

    def padding(self) -> np.ndarray:
        """The zero frames that come before an episode's first."""
        return np.zeros((self.stack - 1, *self.frame_shape), np.uint8)

    def write(
        self, members: Sequence[bytes], action: np.ndarray, reward: np.ndarray, terminal: bool, timeout: bool
    ) -> None:
        """Add one episode.

        Args:
            members: its frames through ``compress``, in order, ``padding`` first.
            action: [n].
            reward: [n].
            terminal: whether its last row is one.
            timeout: whether it was cut there.
        """
        length = len(action) + self.stack - 1
        if self._rows and self._rows + length > self._limit:
            self.flush()
        try:
            if self._file is None:
                self._aside.unlink(missing_ok=True)
                self._file = self._aside.open("xb")  # as new, through no link
                self._file.write(_head(0, self.frame_shape))
            for member in members:
                self._file.write(member)
        except OSError as error:
            self.abandon()
            raise _unwritable(self.folder, error) from None
        ends = np.zeros((2, length), np.uint8)
        ends[:, -1] = terminal, timeout and not terminal
        blank = np.zeros(self.stack - 1)
        columns = (np.concatenate([blank, action]), np.concatenate([blank, reward]), *ends)
        kinds = (np.int32, np.float32, np.uint8, np.uint8)
        for key, value, kind in zip(SMALL, columns, kinds, strict=True):
            self._small[key].append(value.astype(kind))
        self._rows += length

    def write_frames(
        self, frames: np.ndarray, action: np.ndarray, reward: np.ndarray, terminal: bool, timeout: bool
    ) -> None:
        """Add one episode, from its frames [n, H, W]."""
        pieces = [self.padding(), *(frames[i : i + MEMBER_ROWS] for i in range(0, len(frames), MEMBER_ROWS))]
        self.write([self.compress(piece) for piece in pieces], action, reward, terminal, timeout)

    def flush(self) -> None:
        """Finish the shard under way, if it has rows."""
        if self._file is None:
            return
        number, rows = self._number, self._rows
        shard_path(self.folder, "observation", number).unlink(missing_ok=True)  # first: then the shard is not there
        for key, pieces in self._small.items():
            save_array(shard_path(self.folder, key, number), np.concatenate(pieces))
        save_array(shard_path(self.folder, "add_count", number), np.array(rows))
        cursor = np.arange(self.stack + 1) + rows - 1  # Dopamine's: one step before its cursor, a stack behind it
        save_array(shard_path(self.folder, "invalid_range", number), cursor % max(rows, self._limit))
        try:
            self._file.seek(0)
            self._file.write(_head(rows, self.frame_shape))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            # Last, because a shard is there if its frames are.
            os.replace(self._aside, shard_path(self.folder, "observation", number))
            sync(self.folder)
        except OSError as error:
            self.abandon()
            raise _unwritable(self.folder, error) from None
        self._file = None
        self._number += 1
        self._start()

    def close(self) -> Path:
        """Finish; returns the folder."""
        self.flush()
        return self.folder

    def abandon(self) -> None:
        """Delete the shard under way."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._aside.unlink(missing_ok=True)
        self._start()


def _head(rows: int, frame_shape: tuple[int, int]) -> bytes:
    """The header of the frames' .npy as a gzip member of its own; not compressed, so its length is always the same."""
    text = io.BytesIO()
    described = {"descr": "|u1", "fortran_order": False, "shape": (rows, *frame_shape)}
    np.lib.format.write_array_header_1_0(text, described)
    packer = zlib.compressobj(0, zlib.DEFLATED, 31)
    return packer.compress(text.getvalue()) + packer.flush()


def _unwritable(folder: Path, error: OSError) -> SappError:
    return SappError(f"{folder}: cannot write ({error.strerror or error}); free some space or choose another folder")
