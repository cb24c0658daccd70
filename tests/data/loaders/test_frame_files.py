from __future__ import annotations

import json

import numpy as np
import pytest
from frame_logs import make_log, resident_bytes

import sapp
from sapp.core.errors import SappError
from sapp.core.files import FolderAside
from sapp.data.loaders.frame_files import FrameWriter, load_frames, save_frames

LENGTHS, ENDS = [6, 1, 3, 2], [True, True, False, False]


def test_a_folder_comes_back_as_it_was(tmp_path):
    data = make_log(LENGTHS, ENDS, provenance={"made": "by hand"}, action_labels=("a", "b", "c"))
    save_frames(data, tmp_path / "log")
    back = load_frames(tmp_path / "log")
    assert back.mapped
    assert isinstance(back.frames, np.memmap)
    for key in ("frames", "action", "reward", "terminal", "timeout"):
        np.testing.assert_array_equal(getattr(back, key), getattr(data, key))
    for key in ("name", "environment", "num_actions", "stack", "provenance", "action_labels"):
        assert getattr(back, key) == getattr(data, key)
    # The stored fingerprint is the true one: computed from the map it is the same.
    assert back.fingerprint == data.fingerprint
    assert load_frames(tmp_path / "log", memory=True).mapped is False
    del back.__dict__["fingerprint"]
    assert back.fingerprint == data.fingerprint
    assert [each.name for each in tmp_path.iterdir()] == ["log"]
    np.testing.assert_array_equal(np.load(tmp_path / "log" / "frames.npy"), data.frames)


def test_load_recognises_the_folder(tmp_path):
    data = make_log(LENGTHS, ENDS)
    save_frames(data, tmp_path / "log")
    found = sapp.load(tmp_path / "log", name="renamed")
    assert found.name == "renamed"
    assert found.fingerprint == data.fingerprint
    with pytest.raises(SappError, match="action_low does not apply to image logs"):
        sapp.load(tmp_path / "log", action_low=-1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SappError, match="directory without anything that can be loaded"):
        sapp.load(tmp_path / "empty")


def test_written_in_pieces_and_nothing_half_written(tmp_path):
    data = make_log([200, 150], [True, False])
    parts = np.array_split(np.arange(350), 7)
    with FrameWriter(tmp_path / "log", data.frame_shape, num_actions=3) as writer:
        for rows in parts:
            writer.append(*(getattr(data, key)[rows] for key in ("frames", "action", "reward", "terminal", "timeout")))
        assert not (tmp_path / "log").exists()
    assert load_frames(tmp_path / "log").fingerprint == data.fingerprint

    def fail():
        with FrameWriter(tmp_path / "other", data.frame_shape, num_actions=3) as writer:
            writer.append(data.frames, data.action, data.reward, data.terminal, data.timeout)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(SappError, match="no rows to write"), FrameWriter(tmp_path / "other", (4, 4), num_actions=3):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["log"]
    with pytest.raises(SappError, match="is already there"):
        save_frames(data, tmp_path / "log")


def test_broken_folders_are_named(tmp_path):
    data = make_log(LENGTHS, ENDS)
    save_frames(data, tmp_path / "log")
    frames = tmp_path / "log" / "frames.npy"
    whole = frames.read_bytes()
    frames.write_bytes(whole[:-1])
    with pytest.raises(SappError, match=r"frames\.npy: cannot be read as npy"):
        load_frames(tmp_path / "log")
    np.save(frames, data.frames[:-1])
    with pytest.raises(SappError, match=r"frames has 11 rows, frames\.json says 12"):
        load_frames(tmp_path / "log")
    frames.write_bytes(whole)
    meta = tmp_path / "log" / "frames.json"
    kept = json.loads(meta.read_text())
    meta.write_text(json.dumps({**kept, "version": 9}))
    with pytest.raises(SappError, match="of a newer version"):
        load_frames(tmp_path / "log")
    (tmp_path / "log" / "rows.npz").write_bytes(b"PK")
    meta.write_text(json.dumps(kept))
    with pytest.raises(SappError, match=r"rows\.npz: cannot be read as npz"):
        load_frames(tmp_path / "log")


def test_changed_frames_are_noticed_whatever_the_folder_says_of_them(tmp_path):
    data = make_log(LENGTHS, ENDS)
    save_frames(data, tmp_path / "log")
    assert load_frames(tmp_path / "log").fingerprint == data.fingerprint
    frames = tmp_path / "log" / "frames.npy"
    content = bytearray(frames.read_bytes())
    content[-1] ^= 1
    frames.write_bytes(content)
    assert json.loads((tmp_path / "log" / "frames.json").read_text())["fingerprint"] == data.fingerprint
    assert load_frames(tmp_path / "log").fingerprint != data.fingerprint


def test_what_a_killed_conversion_left_is_removed_by_the_next_and_one_under_way_is_not(tmp_path):
    data = make_log(LENGTHS, ENDS)
    left = tmp_path / f".log.{'0' * 16}.tmp"
    left.mkdir()
    (left / "frames.npy").write_bytes(b"half")
    other = tmp_path / f".other.{'0' * 16}.tmp"
    other.mkdir()
    held = FolderAside(tmp_path / "log")
    assert not left.exists()
    save_frames(data, tmp_path / "log")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([held.path.name, other.name, "log"])
    held.close()
    assert not held.path.exists()


def test_writing_holds_no_frames_in_memory(tmp_path):
    block = np.random.default_rng(0).integers(0, 256, (1000, 84, 84), np.uint8)
    flags = np.zeros(1000, bool)
    with FrameWriter(tmp_path / "log", (84, 84), num_actions=2) as writer:
        writer.append(block, flags, flags, flags, flags)
        before, peak = resident_bytes(), 0
        for _ in range(30):
            writer.append(block, flags, flags, flags, flags)
            peak = max(peak, resident_bytes())
    data = load_frames(tmp_path / "log")
    assert data.frames.nbytes > 200e6
    assert max(peak, resident_bytes()) - before < 0.1 * data.frames.nbytes
