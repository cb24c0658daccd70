"""What all loaders share: files that are none, hashes, and errors of libraries in one line."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.data.loaders.files import given, provenance, readable, require_file


def test_what_is_no_file_with_something_in_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "hopper.npz").write_bytes(b"x")
    (tmp_path / "empty.npz").touch()
    require_file(tmp_path / "hopper.npz")
    for name, message in (
        ("", "is a directory; give one file"), ("hoper.npz", r"no such file \(did you mean 'hopper.npz'\?\)"),
        ("empty.npz", r"the file is empty \(0 bytes\)"),
    ):  # fmt: skip
        with pytest.raises(SappError, match=message):
            require_file(tmp_path / name)


def test_a_file_is_known_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(b"abc")
    assert provenance(path, "test") == {
        "loader": "test", "source": str(path), "sha256": hashlib.sha256(b"abc").hexdigest(), "bytes": 3,
    }  # fmt: skip


def test_errors_of_a_library_become_one_line(tmp_path: Path) -> None:
    def fails() -> None:
        raise ValueError("bad magic\nat byte 0")

    with pytest.raises(SappError, match=r"one: cannot be read as a log \(bad magic at byte 0\); it is damaged"):
        readable(tmp_path / "one", "a log", fails, (ValueError,))
    with pytest.raises(ValueError, match="bad magic"):
        readable(tmp_path / "one", "a log", fails, (KeyError,))
    assert given({"name": None, "physics": "v4"}) == {"physics": "v4"}


def test_a_file_that_the_system_does_not_give_is_not_called_damaged(tmp_path: Path) -> None:
    def fails() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.raises(SappError, match=r"one: cannot be read \(Too many open files\); raise the limit of open files"):
        readable(tmp_path / "one", "a log", fails, (OSError,))
