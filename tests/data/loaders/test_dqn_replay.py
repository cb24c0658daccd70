from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pytest
from frame_logs import make_log, resident_bytes

import sapp
from sapp.core.errors import SappError
from sapp.data.ledger import Kind, Ledger
from sapp.data.loaders.dqn_files import save_array, shard_path
from sapp.data.loaders.dqn_replay import load_dqn_replay, save_dqn_replay

ARRAYS = ("frames", "action", "reward", "terminal", "timeout")
LENGTHS, ENDS = [6, 1, 3, 2, 1, 5, 4], [True, True, False, True, False, True, False]


def put(folder, number, observation, action, reward, terminal, add_count=None, level=1):
    """Shard N as Dopamine writes it, by plain means."""
    arrays = {
        f"$store$_observation_ckpt.{number}.gz": np.asarray(observation),
        f"$store$_action_ckpt.{number}.gz": np.asarray(action),
        f"$store$_reward_ckpt.{number}.gz": np.asarray(reward),
        f"$store$_terminal_ckpt.{number}.gz": np.asarray(terminal),
    }
    if add_count is not None:
        arrays[f"add_count_ckpt.{number}.gz"] = np.array(add_count)
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in arrays.items():
        with gzip.open(folder / name, "wb", compresslevel=level) as file:
            np.save(file, value)


def get(folder, name):
    with gzip.open(folder / name) as file:
        return np.load(file)


def assert_same(one, other):
    for key in ARRAYS:
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key), err_msg=key)
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize("shard_rows", [1_000_000, 20, 5])
def test_written_then_read_is_the_same(tmp_path, shard_rows):
    data = make_log(LENGTHS, ENDS, provenance={"made": "by hand"}, action_labels=("a", "b", "c"))
    save_dqn_replay(data, tmp_path / "log", shard_rows=shard_rows)
    back = load_dqn_replay(tmp_path / "log")
    assert_same(back, data)
    for key in ("name", "environment", "num_actions", "stack", "action_labels"):
        assert getattr(back, key) == getattr(data, key)
    assert back.provenance["made"] == {"made": "by hand"}
    assert_same(sapp.load(tmp_path / "log"), data)
    # Again, byte for byte.
    save_dqn_replay(back, tmp_path / "again", shard_rows=shard_rows)
    for file in sorted((tmp_path / "log").glob("*.gz")):
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_the_layout_is_dopamines(tmp_path):
    data = make_log([3, 2, 4], [True, True, True])
    save_dqn_replay(data, tmp_path, shard_rows=12)
    names = ["$store$_observation", "$store$_action", "$store$_reward", "$store$_terminal", "$store$_timeout"]
    expected = {f"{name}_ckpt.{n}.gz" for name in (*names, "add_count", "invalid_range") for n in (0, 1)}
    assert {each.name for each in tmp_path.iterdir()} == expected | {"sapp.json"}
    frames = get(tmp_path, "$store$_observation_ckpt.0.gz")
    assert frames.dtype == np.uint8
    # Three rows of zeros before each episode; the third one, of seven rows with them, did not fit.
    assert frames[:, 1, 1].tolist() == [0, 0, 0, 1, 2, 3, 0, 0, 0, 11, 12]
    action, reward = get(tmp_path, "$store$_action_ckpt.0.gz"), get(tmp_path, "$store$_reward_ckpt.0.gz")
    assert (action.dtype, reward.dtype) == (np.int32, np.float32)
    assert action.tolist() == [0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1]
    terminal = get(tmp_path, "$store$_terminal_ckpt.0.gz")
    assert terminal.dtype == np.uint8
    assert np.flatnonzero(terminal).tolist() == [5, 10]
    assert get(tmp_path, "add_count_ckpt.0.gz") == 11
    # Cursor 11 of a buffer of 12 rows: the row before it and the stack behind it, going round.
    assert get(tmp_path, "invalid_range_ckpt.0.gz").tolist() == [10, 11, 0, 1, 2]
    assert len(get(tmp_path, "$store$_observation_ckpt.1.gz")) == 7


def test_a_plain_log_padded_or_not(tmp_path):
    data = make_log([3, 2, 4], [True, True, False])
    plain = {key: np.array(getattr(data, key)) for key in ARRAYS}
    put(tmp_path / "plain", 0, plain["frames"], plain["action"], plain["reward"], plain["terminal"].astype(np.uint8))
    back = load_dqn_replay(tmp_path / "plain")
    assert_same(back, data)  # the episode cut at the end is a time-out
    assert back.timeout.tolist() == [False] * 8 + [True]
    assert back.provenance["padded"] is False
    assert back.provenance["num_actions_from"] == "the largest action in the log"
    rows = np.concatenate([[-1] * 3, [0, 1, 2], [-1] * 3, [3, 4], [-1] * 3, [5, 6, 7, 8]])
    padded = {key: np.where((rows >= 0).reshape(-1, *[1] * (value.ndim - 1)), value[rows], 0).astype(value.dtype)
              for key, value in plain.items()}  # fmt: skip
    # A first frame that happens to be black is a frame: only as many rows are dropped as there are zero rows.
    padded["frames"][3] = 0
    plain["frames"][0] = 0
    put(tmp_path / "runs" / "replay_logs", 0, padded["frames"], padded["action"], padded["reward"],
        padded["terminal"].astype(np.uint8))  # fmt: skip
    back = load_dqn_replay(tmp_path / "runs")
    for key in ARRAYS:
        np.testing.assert_array_equal(getattr(back, key), plain[key])
    assert back.provenance["padded"] is True
    assert len(load_dqn_replay(tmp_path / "runs", padded=False)) == 18
    ledger = Ledger.of(back)
    assert (ledger.rows, ledger.dropped, back.size) == (18, 9, 9)
    assert ledger.lines(Kind.DROPPED) == ["9 rows of zeros in front of episodes were left out"]
    assert [each.use for each in ledger.columns] == ["frames", "action", "reward", "terminal (the task ended)"]
    mapped = load_dqn_replay(tmp_path / "runs", into=tmp_path / "map")
    assert Ledger.of(sapp.load(tmp_path / "map")) == Ledger.of(mapped) == ledger


def test_every_shard_cuts_its_last_episode(tmp_path):
    data = make_log([4, 4], [True, True])
    for number, rows in enumerate((slice(0, 3), slice(3, 6), slice(6, 8))):
        put(tmp_path, number, data.frames[rows], data.action[rows], data.reward[rows], data.terminal[rows].astype(int))
    back = load_dqn_replay(tmp_path)
    assert back.terminal.tolist() == data.terminal.tolist()
    assert np.flatnonzero(back.timeout).tolist() == [2, 5]
    assert back.stacks([3])[0, :, 1, 1].tolist() == [0, 0, 0, 4]  # not a frame of the shard before
    assert load_dqn_replay(tmp_path, shards=[2]).size == 2
    with pytest.raises(SappError, match="no shard 7; there are 0 to 2"):
        load_dqn_replay(tmp_path, shards=[7])


def test_a_buffer_that_is_not_full_or_went_round(tmp_path):
    data = make_log([8], [False])
    put(tmp_path / "part", 0, data.frames, data.action, data.reward, np.zeros(8, np.uint8), add_count=5)
    part = load_dqn_replay(tmp_path / "part")
    assert part.size == 5
    assert Ledger.of(part).lines(Kind.DROPPED) == ["3 rows were never filled (add_count)"]
    assert (Ledger.of(part).rows, Ledger.of(part).dropped) == (8, 3)
    put(tmp_path / "round", 0, data.frames, data.action, data.reward, np.zeros(8, np.uint8), add_count=8 * 3 + 2)
    back = load_dqn_replay(tmp_path / "round")
    assert np.flatnonzero(back.timeout).tolist() == [1, 7]  # the write cursor lies before row 2


def test_subsets(tmp_path):
    data = make_log([6, 5, 7, 6, 9, 4], [True] * 6)
    both = make_log([5, 5, 5, 5, 8], [True] * 5)
    for number, part in enumerate((data, both)):
        put(tmp_path, number, part.frames, part.action, part.reward, part.terminal.astype(np.uint8))
    first = load_dqn_replay(tmp_path, per_shard=8)
    np.testing.assert_array_equal(first.frames, np.concatenate([data.frames[:8], both.frames[:8]]))
    assert np.flatnonzero(first.timeout).tolist() == [7, 15]
    tenth = load_dqn_replay(tmp_path, fraction=0.1)
    np.testing.assert_array_equal(tenth.frames, np.concatenate([data.frames[:4], both.frames[:3]]))
    whole = load_dqn_replay(tmp_path, shards=[0], per_shard=12, take="episodes", seed=1)
    assert whole.terminal.sum() == whole.num_episodes
    ledger = Ledger.of(whole)
    (left,) = [each for each in ledger.entries if each.kind is Kind.DROPPED]
    assert (ledger.rows, ledger.rows - ledger.dropped, left.asked) == (37, whole.size, True)
    lost = 1 - np.abs(whole.reward).sum() / np.abs(data.reward).sum()
    assert left.reward == pytest.approx(lost)
    assert "1 of 2 shards were read, as asked" in ledger.lines()
    lengths = whole.episode_lengths
    assert lengths.sum() >= 12 > lengths.sum() - lengths.max()
    stored = {data.frames[a : b + 1].tobytes() for a, b in zip(data.episode_starts, data.episode_ends, strict=True)}
    for a, b in zip(whole.episode_starts, whole.episode_ends, strict=True):
        assert whole.frames[a : b + 1].tobytes() in stored
    others = {load_dqn_replay(tmp_path, per_shard=12, take="episodes", seed=s).fingerprint for s in range(6)}
    assert len(others) > 1
    again = load_dqn_replay(tmp_path, shards=[0], per_shard=12, take="episodes", seed=1)
    assert again.fingerprint == whole.fingerprint
    assert load_dqn_replay(tmp_path, per_shard=10_000).size == data.size + both.size
    for options, message in (
        ({"fraction": 0}, "fraction is 0"),
        ({"fraction": 0.1, "per_shard": 3}, "not both"),
        ({"per_shard": 0}, "per_shard is 0"),
        ({"fraction": 0.5, "take": "last"}, "choose first or episodes"),
    ):
        with pytest.raises(SappError, match=message):
            load_dqn_replay(tmp_path, **options)


def test_into_a_map_without_holding_the_frames(tmp_path):
    frames = np.random.default_rng(0).integers(0, 256, (20_000, 84, 84), np.uint8)
    ends = (np.arange(20_000) % 500 == 499).astype(np.uint8)
    put(tmp_path / "log", 0, frames, ends, ends.astype(np.float32), ends, level=0)
    size, first = frames.nbytes, frames[12_345].copy()
    del frames
    before = resident_bytes()
    data = load_dqn_replay(tmp_path / "log", into=tmp_path / "map")
    assert data.mapped
    assert data.size == 20_000
    np.testing.assert_array_equal(data.frames[12_345], first)
    assert resident_bytes() - before < 0.7 * size  # a block of 4096 frames at a time, twice
    assert sapp.load(tmp_path / "map").fingerprint == data.fingerprint


@pytest.fixture
def log(tmp_path):
    data = make_log(LENGTHS, ENDS, side=16)
    save_dqn_replay(data, tmp_path)
    return tmp_path


def _one_line(log, match, **options):
    with pytest.raises(SappError, match=match) as caught:
        load_dqn_replay(log, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["action", "reward", "terminal"])
def test_a_missing_companion_is_named(log, key):
    (log / f"$store$_{key}_ckpt.0.gz").unlink()
    _one_line(log, rf"its companion \$store\$_{key}_ckpt\.0\.gz is missing")


def test_rows_too_few_or_too_many_for_the_header_are_named(log):
    path = log / "$store$_observation_ckpt.0.gz"
    raw = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(raw[:-256]))
    _one_line(log, "ends after 42 of 43 rows")
    path.write_bytes(gzip.compress(raw + b"x"))
    _one_line(log, "goes on after its 43 rows")


def test_shards_of_different_logs_and_other_trouble(log, tmp_path):
    put(log, 1, np.zeros((3, 4, 4), np.uint8), np.zeros(3, int), np.zeros(3, np.float32), np.zeros(3, np.uint8))
    _one_line(log, "frames are .16, 16. in shard 0 but .4, 4. in shard 1")
    _one_line(tmp_path / "nowhere", "no .store._observation_ckpt")
    (log / "sapp.json").write_text("{")
    _one_line(log, r"sapp\.json: is damaged")
    with pytest.raises(SappError, match="holds shards already"):
        save_dqn_replay(make_log([2], [True]), log)


def test_show_in_numbers(tmp_path, capsys):
    from sapp.cli.main import main

    data = make_log([6, 1, 3], [True, True, False])
    save_dqn_replay(data, tmp_path / "log")
    assert main(["data", "show", str(tmp_path / "log"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["transitions"], shown["episodes"], shown["terminals"], shown["timeouts"]) == (10, 3, 2, 1)
    assert shown["lengths"]["maximum"] == 6
    assert shown["returns"]["minimum"] == float(np.min(data.episode_returns))
    assert shown["frames"] == {
        "stack": 4, "height": 4, "width": 4, "bytes": 160, "mapped": False, "sampled": 9,
        "action_counts": {"0": 4, "1": 3, "2": 3},
    }  # fmt: skip
    assert main(["data", "convert", str(tmp_path / "log"), str(tmp_path / "map")]) == 0
    assert "10 rows" in capsys.readouterr().out
    assert main(["data", "show", str(tmp_path / "map"), "--plot", str(tmp_path / "log.png")]) == 0
    text = capsys.readouterr().out
    assert "4 frames of 4×4 and 3 discrete actions" in text
    assert "160 bytes in a memory map" in text
    assert (tmp_path / "log.png").stat().st_size > 1000
    assert main(["data", "check", str(tmp_path / "log")]) == 2
    assert "observations are images" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value"),
    [("terminal", -1), ("terminal", 2), ("timeout", -1), ("timeout", 2), ("action", -1), ("action", 2**31),
     ("action", 2**32 + 1)],
)  # fmt: skip
def test_numbers_that_would_wrap_or_count_as_none_are_refused(log, key: str, value: int) -> None:
    path = shard_path(log, key, 0)
    column = get(log, path.name).astype(np.int64)
    column[5] = value
    save_array(path, column)
    _one_line(log, rf"{re.escape(path.name)}: (holds|action is) {value};")
