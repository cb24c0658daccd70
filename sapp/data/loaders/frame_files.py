"""Image logs on disk: a folder whose frames are memory-mapped, so that a log may be larger than memory."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from sapp.core.decode import check_fits
from sapp.core.errors import SappError
from sapp.core.files import FolderAside, sync
from sapp.data.frames import _BLOCK, FrameDataset, finish
from sapp.data.loaders.files import readable
from sapp.data.loaders.limits import check_npz
from sapp.data.registry import NAMES, Format

META, FRAMES, ROWS = "frames.json", "frames.npy", "rows.npz"
"""The three files of a folder: what it is; the frames, a plain uint8 .npy; action, reward, terminal and timeout."""

_FORMAT = "sapp frames"
_META: dict[str, Any] = {
    "num_actions": int, "stack": int, "name": str, "environment": str | None, "provenance": dict[str, Any], "rows": int,
    "action_labels": list[str] | None,
}  # fmt: skip
_SMALL = {"action": np.int32, "reward": np.float32, "terminal": np.bool_, "timeout": np.bool_}


def is_frames_folder(path: Path) -> bool:
    """Whether a path is a folder that ``FrameWriter`` wrote."""
    return (path / META).is_file()


class FrameWriter:
    """Writes a folder of frames piece by piece; the folder appears, whole, when it is closed.

    Frames go straight to disk: only the small arrays (10 bytes per row) are held in memory. Use it as a context: an
    exception inside leaves nothing behind.

    Args:
        folder: to write; it must not exist yet, or be empty.
        frame_shape: height and width.
        num_actions: see ``FrameDataset``.
        stack: see ``FrameDataset``.
        name: see ``FrameDataset``; the folder's name by default.
        environment: see ``FrameDataset``.
        provenance: see ``FrameDataset``.
        action_labels: see ``FrameDataset``.
    """

    def __init__(
        self,
        folder: str | Path,
        frame_shape: tuple[int, int],
        *,
        num_actions: int,
        stack: int = 4,
        name: str | None = None,
        environment: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        action_labels: Sequence[str] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.rows = 0
        self._shape = (int(frame_shape[0]), int(frame_shape[1]))
        self._small: dict[str, list[np.ndarray]] = {key: [] for key in _SMALL}
        self._digest = hashlib.sha256()
        self._num_actions, self._stack = int(num_actions), int(stack)
        self._meta: dict[str, Any] = {
            "format": _FORMAT,
            "version": 1,
            "name": name or self.folder.name,
            "environment": environment,
            "num_actions": self._num_actions,
            "stack": self._stack,
            "action_labels": None if action_labels is None else list(action_labels),
            "provenance": dict(provenance or {}),
        }
        if self.folder.is_file() or (self.folder.is_dir() and any(self.folder.iterdir())):
            raise SappError(f"{self.folder}: is already there; give a folder that does not exist yet")
        self._file: BinaryIO | None = None
        self._held: FolderAside | None = None
        with self._telling():
            self._held = FolderAside(self.folder)
            self._aside = self._held.path
            self._file = (self._aside / FRAMES).open("wb")
            self._header_bytes = self._header()

    def append(
        self, frames: np.ndarray, action: np.ndarray, reward: np.ndarray, terminal: np.ndarray, timeout: np.ndarray
    ) -> None:
        """Add rows: uint8 [n, H, W], then n of each."""
        assert self._file is not None
        if frames.dtype != np.uint8 or frames.shape[1:] != self._shape:
            raise SappError(f"{self.folder}: frames are {frames.dtype} {frames.shape}, not uint8 (n, *{self._shape})")
        pieces = {"action": action, "reward": reward, "terminal": terminal, "timeout": timeout}
        for key, value in pieces.items():
            if np.shape(value) != (len(frames),):
                raise SappError(f"{self.folder}: {key} has shape {np.shape(value)} for {len(frames)} frames")
        step = max(1, _BLOCK // (self._shape[0] * self._shape[1]))
        with self._telling():
            for start in range(0, len(frames), step):
                block = np.ascontiguousarray(frames[start : start + step])
                self._file.write(block.data)
                self._digest.update(block.data)
        for key, value in pieces.items():
            self._small[key].append(np.array(value, _SMALL[key]))
        self.rows += len(frames)

    def note(self, **facts: Any) -> None:
        """Add to the provenance what is known at the end only."""
        self._meta["provenance"] |= facts

    def close(self) -> FrameDataset:
        """Finish the folder, rename it into place and open it."""
        assert self._file is not None
        if not self.rows:
            self.abandon()
            raise SappError(f"{self.folder}: there are no rows to write; nothing was written")
        small: dict[str, Any] = {key: np.concatenate(self._small[key]) for key in _SMALL}
        small["timeout"] &= ~small["terminal"]
        small["timeout"][-1] = not small["terminal"][-1]
        print_ = finish(
            self._digest, (self.rows, *self._shape), small["action"], small["reward"], small["terminal"],
            small["timeout"], self._num_actions, self._stack,
        )  # fmt: skip
        with self._telling():
            if self._header() != self._header_bytes:
                raise AssertionError("the header of a .npy file changed its length")
            self._flush()
            with (self._aside / ROWS).open("wb") as file:
                np.savez(file, **small)
            (self._aside / META).write_text(json.dumps({**self._meta, "rows": self.rows, "fingerprint": print_}))
            for name in (ROWS, META, ""):
                sync(self._aside / name)
            with contextlib.suppress(FileNotFoundError):
                self.folder.rmdir()
            os.replace(self._aside, self.folder)
            sync(self.folder.parent)
        self.abandon()
        return load_frames(self.folder)

    def abandon(self) -> None:
        """Delete what was written so far."""
        if self._file is not None:
            self._file.close()
        if self._held is not None:
            self._held.close()

    def __enter__(self) -> FrameWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._aside.exists():  # neither closed nor abandoned yet
            if kind is None:
                self.close()
            else:
                self.abandon()

    def _header(self) -> int:
        """Write the header for the rows so far at the file's start; NumPy leaves room for any number of rows."""
        assert self._file is not None
        self._file.seek(0)
        described = {"descr": "|u1", "fortran_order": False, "shape": (self.rows, *self._shape)}
        np.lib.format.write_array_header_1_0(self._file, described)
        length = self._file.tell()
        self._file.seek(0, os.SEEK_END)
        return length

    def _flush(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    @contextlib.contextmanager
    def _telling(self) -> Any:
        try:
            yield
        except OSError as error:
            self.abandon()
            raise SappError(
                f"{self.folder}: cannot write ({error.strerror or error}); free some space or choose another folder"
            ) from None


def save_frames(dataset: FrameDataset, folder: str | Path) -> Path:
    """Write a dataset to a folder that ``load_frames`` maps; nothing unfinished is ever left.

    Args:
        dataset: in memory or mapped.
        folder: to write; it must not exist yet.
    """
    with FrameWriter(
        folder,
        dataset.frame_shape,
        num_actions=dataset.num_actions,
        stack=dataset.stack,
        name=dataset.name,
        environment=dataset.environment,
        provenance=dataset.provenance,
        action_labels=dataset.action_labels,
    ) as writer:
        writer.append(dataset.frames, dataset.action, dataset.reward, dataset.terminal, dataset.timeout)
    return Path(folder)


def load_frames(
    folder: str | Path, *, memory: bool = False, name: str | None = None, environment: str | None = None
) -> FrameDataset:
    """Open a folder of frames; they stay on disk unless asked for.

    The fingerprint is computed when it is asked for, by reading all frames; the stored one is for people.

    Args:
        folder: that ``FrameWriter`` wrote.
        memory: read the frames into memory instead of mapping them.
        name: in place of the stored one.
        environment: in place of the stored one.
    """
    folder = Path(folder)
    if not is_frames_folder(folder):
        raise SappError(f"{folder}: no {META} in it, so it is not a folder of frames; check the path")
    errors = (OSError, ValueError, EOFError, KeyError, TypeError, zipfile.BadZipFile)
    meta = readable(folder / META, "JSON", lambda: json.loads((folder / META).read_text()), errors)
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT or meta.get("version") != 1:
        raise SappError(f"{folder / META}: is not what sapp writes, or of a newer version; write the folder again")
    for key, hint in _META.items():
        if key not in meta:
            raise SappError(f"{folder / META}: {key!r} is missing; write the folder again")
        check_fits(meta[key], hint, f"{folder / META}: {key!r}")
    small = readable(folder / ROWS, "npz", lambda: _small(folder / ROWS), errors)
    frames = readable(
        folder / FRAMES, "npy", lambda: np.load(folder / FRAMES, mmap_mode=None if memory else "r"), errors
    )
    for key, value in {"frames": frames, **small}.items():
        if len(value) != meta.get("rows"):
            raise SappError(f"{folder}: {key} has {len(value)} rows, {META} says {meta.get('rows')}; write it again")
    return FrameDataset(
        frames,
        **small,
        num_actions=meta["num_actions"],
        stack=meta["stack"],
        name=name or meta["name"],
        environment=environment or meta["environment"],
        provenance=meta["provenance"],
        action_labels=None if meta["action_labels"] is None else tuple(meta["action_labels"]),
    )


def _small(path: Path) -> dict[str, np.ndarray]:
    check_npz(path)
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in _SMALL}


FORMAT = Format(
    "a folder of image logs", lambda request: bool(request.text) and is_frames_folder(request.path), load_frames, NAMES
)
