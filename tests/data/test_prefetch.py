from __future__ import annotations

import numpy as np
import pytest
from frame_logs import make_log, naive_stack, resident_bytes

from sapp.core.errors import SappError
from sapp.data.frames import FrameDataset
from sapp.data.loaders.frame_files import FrameWriter, load_frames, save_frames
from sapp.data.prefetch import Prefetcher

LENGTHS, ENDS = [6, 1, 3, 2, 1, 5, 2], [True, True, False, True, False, False, True]


@pytest.fixture(params=["memory", "mapped", "sliced"])
def data(request, tmp_path):
    made = make_log(LENGTHS, ENDS)
    if request.param == "memory":
        return made
    save_frames(made, tmp_path / "log")
    mapped = load_frames(tmp_path / "log")
    if request.param == "mapped":
        return mapped
    rows = slice(6, None)  # a slice of a map keeps the offset of the whole
    small = {key: getattr(mapped, key)[rows] for key in ("action", "reward", "terminal", "timeout")}
    return FrameDataset(mapped.frames[rows], **small, num_actions=3)


def test_chunks_hold_what_a_naive_gather_finds(data):
    with Prefetcher(data, 16, 5, seed=3, initial=True) as chunks:
        drawn = [next(chunks) for _ in range(4)]
    for chunk in drawn:
        assert chunk.frames.shape == (5, 16, 5, 4, 4)
        assert np.isin(chunk.rows, data.sampled_rows).all()
        np.testing.assert_array_equal(chunk.action, data.action[chunk.rows])
        np.testing.assert_array_equal(chunk.reward, data.reward[chunk.rows])
        np.testing.assert_array_equal(chunk.terminal, data.terminal[chunk.rows])
        for index in np.ndindex(5, 16):
            row = int(chunk.rows[index])
            np.testing.assert_array_equal(chunk.frames[index][:-1], naive_stack(data, row))
            expected = naive_stack(data, row + 1)[-1] if not data.terminal[row] else np.zeros((4, 4))
            np.testing.assert_array_equal(chunk.frames[index][-1], expected)
            if not data.terminal[row]:
                np.testing.assert_array_equal(chunk.frames[index][1:], naive_stack(data, row + 1))
        starts = {data.frames[row].tobytes() for row in data.episode_starts}
        assert {frame.tobytes() for frame in chunk.initial.reshape(-1, 4, 4)} <= starts
    every = np.concatenate([chunk.rows.reshape(-1) for chunk in drawn])
    assert set(every.tolist()) == set(data.sampled_rows.tolist())


def test_the_order_depends_on_the_seed_and_the_number_alone(data):
    def rows(count, **options):
        with Prefetcher(data, 8, 3, **options) as chunks:
            return [next(chunks) for _ in range(count)]

    one, many = rows(6, seed=1, threads=1, ahead=1), rows(6, seed=1, threads=4, ahead=5)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a.rows, b.rows)
        np.testing.assert_array_equal(a.frames, b.frames)
    np.testing.assert_array_equal(rows(2, seed=1, start=4)[1].frames, one[5].frames)
    assert any((a.rows != b.rows).any() for a, b in zip(one, rows(6, seed=2), strict=True))


def test_memory_stays_at_a_few_chunks_whatever_the_map(tmp_path):
    rows, block = 60_000, np.random.default_rng(0).integers(0, 256, (1000, 84, 84), np.uint8)
    flags = np.zeros(1000, bool)
    with FrameWriter(tmp_path / "log", (84, 84), num_actions=2) as writer:
        for _ in range(rows // 1000):
            writer.append(block, flags, flags, flags, flags)
    data = load_frames(tmp_path / "log")
    assert data.sampled_rows.size == rows - 1
    with Prefetcher(data, 32, 32, seed=0, ahead=2) as chunks:
        next(chunks)
        before, peak = resident_bytes(), 0
        touched = np.zeros(rows, bool)
        for _ in range(30):
            touched[next(chunks).rows] = True
            peak = max(peak, resident_bytes())
        chunk = sum(array.nbytes for array in next(chunks))
        limit = (2 + 2) * chunk  # three that are held, one in the reader's hands
    assert touched.mean() > 0.3  # with their stacks, that is most of the file
    assert data.frames.nbytes > 2.5 * limit
    # Neither the process's own memory nor its mapped pages grow with what was read.
    assert peak - before < limit


def test_nothing_to_draw_is_said():
    data = make_log([1, 1], [False, False])
    with pytest.raises(SappError, match="every row ends an episode by time-out"):
        Prefetcher(data, 2, 2, seed=0)
    with pytest.raises(SappError, match="batch_size is 0"):
        Prefetcher(make_log([3], [True]), 0, 2, seed=0)


def test_a_file_cut_short_is_said(tmp_path):
    save_frames(make_log([400], [True], side=32), tmp_path / "log")
    data = load_frames(tmp_path / "log")
    with (tmp_path / "log" / "frames.npy").open("r+b") as file:
        file.truncate(2000)
    with Prefetcher(data, 64, 2, seed=0) as chunks, pytest.raises(SappError, match="ended while it was read"):
        next(chunks)
