"""HDF5 on a disk that fills up: what could not be written is raised, by the check or at the end."""

from __future__ import annotations

import errno
from pathlib import Path

import h5py
import numpy as np
import pytest

from sapp.collect.benchmark import hdf5_file
from sapp.collect.benchmark.hdf5_file import new_hdf5


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "one.hdf5"
    with new_hdf5(path) as (file, check):
        file["a"] = np.arange(1000)
        check()
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["a"][()], np.arange(1000))
    with pytest.raises(FileExistsError), new_hdf5(path):
        pass


def test_a_full_disk_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(hdf5_file._Told):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            whole, room = self._file, 4_000

            class Disk:
                def __getattr__(self, name: str) -> object:
                    return getattr(whole, name)

                def write(self, content: memoryview) -> int:
                    if whole.tell() + len(content) > room:
                        raise OSError(errno.ENOSPC, "No space left on device")
                    return whole.write(content)

            self._file = Disk()

    monkeypatch.setattr(hdf5_file, "_Told", Full)
    with pytest.raises(OSError, match="No space left"), new_hdf5(tmp_path / "one.hdf5") as (file, _):
        file["a"] = np.arange(10_000)
