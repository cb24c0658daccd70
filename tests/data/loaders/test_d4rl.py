from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load
from sapp.data.loaders.d4rl import PUBLISHED, Published, download, is_name, load_d4rl, load_hdf5

MEDIUM = {
    "hopper": (911, [1465, 1413], [470, 441], 2),
    "halfcheetah": (2000, [4670, 4880], [1000, 1000], 0),
    "walker2d": (2000, [3500, 3663], [1000, 1000], 0),
}


def write(path: Path, **arrays: Any) -> Path:
    with h5py.File(path, "w") as file:
        for key, value in arrays.items():
            file[key.replace("__", "/")] = value
    return path


def trapped(data: Dataset) -> dict[str, Any]:
    """Arrays as replay files have them: float64, rewards of (N, 1), float flags."""
    return {
        "observations": data.observation.astype(np.float64),
        "actions": data.action.astype(np.float64),
        "rewards": data.reward.astype(np.float64)[:, None],
        "terminals": data.terminal.astype(np.float64),
        "timeouts": data.timeout.astype(np.float64),
        "next_observations": data.next_observation.astype(np.float64),
    }


@pytest.mark.parametrize("environment", MEDIUM)
def test_genuine_medium_files(genuine: Path, environment: str) -> None:
    data = load(genuine / "d4rl" / f"{environment}_medium-v2.hdf5")
    size, returns, lengths, terminals = MEDIUM[environment]
    assert data.size == size
    # Known to the unit only (and 4669.48 is noted as 4670).
    np.testing.assert_allclose(data.episode_returns, returns, atol=0.6)
    assert data.episode_lengths.tolist() == lengths
    assert data.terminal.sum() == terminals
    assert data.timeout.sum() == 2 - terminals
    assert (data.name, data.environment, data.physics) == (f"{environment}-medium-v2", environment, "d4rl")
    assert data.provenance["behaviour_algorithm"] == "SAC"


def test_what_a_file_says_of_itself_is_known(d4rl_file: Path) -> None:
    environment, _, kind = d4rl_file.stem.partition("_")
    data = load(d4rl_file)
    assert data.name == f"{environment}-{kind.replace('_', '-')}"
    assert (data.environment, data.physics) == (environment, "d4rl" if kind.endswith("v2") else data.physics)
    assert data.provenance.get("behaviour_algorithm") == (None if kind == "random-v1" else "SAC")
    assert (data.terminal | data.timeout).sum() == data.num_episodes == 2
    assert data.observation.dtype == data.reward.dtype == np.float32
    assert data.reward.ndim == 1


def test_files_equal_what_h5py_reads(d4rl_file: Path) -> None:
    path, data = d4rl_file, load(d4rl_file)
    with h5py.File(path) as file:
        for mine, theirs in (
            ("observation", "observations"),
            ("action", "actions"),
            ("reward", "rewards"),
            ("next_observation", "next_observations"),
            ("terminal", "terminals"),
            ("timeout", "timeouts"),
        ):
            raw = file[theirs][()].astype(getattr(data, mine).dtype)
            np.testing.assert_array_equal(getattr(data, mine), raw.reshape(getattr(data, mine).shape))
        np.testing.assert_array_equal(data.extras["qpos"], file["infos/qpos"][()])
        np.testing.assert_array_equal(data.extras["log_prob"], file["infos/action_log_probs"][()])
    assert data.num_episodes == 2
    assert data.provenance["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    inside = ~(data.terminal | data.timeout)
    np.testing.assert_array_equal(data.next_observation[inside], data.observation[1:][inside[:-1]])


def test_boundaries_are_found_without_timeouts(d4rl_file: Path, tmp_path: Path) -> None:
    whole = load(d4rl_file)
    arrays = trapped(whole)
    del arrays["timeouts"]
    found = load(write(tmp_path / d4rl_file.name, **arrays))
    assert found.fingerprint == whole.fingerprint


def test_files_without_successors_lose_only_timeout_rows(d4rl_file: Path, tmp_path: Path) -> None:
    whole = load(d4rl_file)
    arrays = trapped(whole)
    del arrays["next_observations"]
    found = load(write(tmp_path / d4rl_file.name, **arrays))
    kept = ~whole.timeout
    assert found.size == kept.sum()
    going = ~found.terminal
    np.testing.assert_array_equal(found.next_observation[going], whole.next_observation[kept][going])
    np.testing.assert_array_equal(found.episode_lengths, whole.episode_lengths - whole.timeout[whole.episode_ends])


def test_every_trap_at_once(small: Dataset, tmp_path: Path) -> None:
    data = load_hdf5(write(tmp_path / "log.h5", **trapped(small), infos__qpos=np.arange(6)), environment="Small-v0")
    assert data.fingerprint == small.fingerprint
    assert (data.name, data.environment, data.physics) == ("log", "Small-v0", None)
    assert data.extras["qpos"].tolist() == list(range(6))


def test_names() -> None:
    assert is_name("hopper-medium-replay-v2")
    assert not is_name("hopper-medium")
    assert not is_name("hopper-good-v2")


def test_the_table_of_published_files() -> None:
    assert len(PUBLISHED) == 18
    assert len({each.sha256 for each in PUBLISHED.values()}) == 18
    assert all(len(each.sha256) == 64 and int(each.sha256, 16) and each.size > 5e7 for each in PUBLISHED.values())
    assert PUBLISHED["walker2d-medium-expert-v2"].file == "walker2d_medium_expert-v2.hdf5"


BAD_FILES: dict[str, tuple[str, list[str]]] = {
    "missing key": ("no_rewards", ["no reward", "observations"]),
    "empty file": ("empty", ["empty", "0 bytes"]),
    "truncated": ("truncated", ["HDF5", "damaged"]),
    "not HDF5": ("text", ["HDF5", "damaged"]),
    "nan": ("nan", ["reward", "row 2"]),
    "no rows": ("no_rows", ["0 rows"]),
    "group for array": ("group", ["no reward columns", "observations"]),
    "text array": ("strings", ["rewards", "not a number"]),
    "minari layout": ("minari", ["Minari", "id"]),
    "uneven lengths": ("uneven", ["action", "5 rows", "6"]),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(small: Dataset, tmp_path: Path, case: str) -> None:
    kind, words = BAD_FILES[case]
    path, arrays = tmp_path / "bad.hdf5", trapped(small)
    if kind == "no_rewards":
        del arrays["rewards"]
    elif kind == "nan":
        arrays["rewards"][2] = np.nan
    elif kind == "no_rows":
        arrays = {key: value[:0] for key, value in arrays.items()}
    elif kind == "group":
        del arrays["rewards"]
        arrays["rewards__x"] = 1
    elif kind == "strings":
        arrays["rewards"] = np.array([b"a"] * 6)
    elif kind == "minari":
        arrays = {"episode_0__observations": np.zeros(3)}
    elif kind == "uneven":
        arrays["actions"] = arrays["actions"][:5]
    write(path, **arrays)
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:1500])
    elif kind == "text":
        path.write_text("hello, this is not HDF5\n" * 100)
    with pytest.raises(SappError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in ["bad.hdf5", *words]:
        assert word in message


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a body; can promise more bytes than it sends."""

    body = b""
    promise = 0

    def do_GET(self) -> None:
        if "absent" in self.path:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(self.promise or len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Handler]]]:
    handler = type("Fresh", (Handler,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", handler
        httpd.shutdown()
        thread.join()


@pytest.fixture
def published(
    small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: tuple[str, type[Handler]]
) -> tuple[str, type[Handler], Path]:
    """A server that has "hopper-medium-v2", a table that expects just that, and an empty cache folder."""
    address, handler = server
    handler.body = write(tmp_path / "served.hdf5", **trapped(small)).read_bytes()
    entry = Published("hopper_medium-v2.hdf5", len(handler.body), hashlib.sha256(handler.body).hexdigest())
    monkeypatch.setitem(PUBLISHED, "hopper-medium-v2", entry)
    cache = tmp_path / "cache"
    monkeypatch.setenv("D4RL_DATASET_DIR", str(cache))
    return address, handler, cache


def test_download_by_name_then_from_the_cache(published: tuple[str, type[Handler], Path], small: Dataset) -> None:
    address, handler, cache = published
    seen: list[tuple[int, int]] = []
    data = load("hopper-medium-v2", mirror=address, progress=lambda done, size: seen.append((done, size)))
    assert data.fingerprint == small.fingerprint
    assert (data.name, data.environment, data.physics) == ("hopper-medium-v2", "hopper", "d4rl")
    assert seen[-1] == (len(handler.body), len(handler.body))
    assert [each.name for each in cache.iterdir()] == ["hopper_medium-v2.hdf5"]
    handler.body = b""
    assert load("hopper-medium-v2").fingerprint == small.fingerprint


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("hash", ["SHA-256", "instead of"]),
        ("short", ["bytes instead of"]),
        ("dropped", ["bytes instead of"]),
        ("endless", ["bytes instead of"]),
        ("absent", ["404"]),
        ("refused", ["download failed"]),
        ("scheme", ["http or https"]),
    ],
)
def test_bad_downloads_leave_nothing(published: tuple[str, type[Handler], Path], change: str, words: list[str]) -> None:
    address, handler, cache = published
    if change == "hash":
        handler.body = handler.body[:-1] + bytes([handler.body[-1] ^ 1])
    elif change == "short":
        handler.body = handler.body[:-10]
    elif change == "dropped":
        handler.promise, handler.body = len(handler.body), handler.body[:1000]
    elif change == "endless":
        handler.body = handler.body + bytes(1 << 24)
    elif change == "absent":
        address += "/absent"
    elif change == "refused":
        address = "http://127.0.0.1:9"
    elif change == "scheme":
        address = "file:///tmp"
    with pytest.raises(SappError) as caught:
        load_d4rl("hopper-medium-v2", mirror=address)
    message = str(caught.value)
    assert "\n" not in message
    for word in [*words, "hopper_medium-v2.hdf5", "D4RL_DATASET_DIR", str(cache)]:
        assert word in message
    assert not cache.exists() or not list(cache.iterdir())


def test_interrupted_download_leaves_nothing(published: tuple[str, type[Handler], Path]) -> None:
    address, _, cache = published

    def interrupt(done: int, size: int) -> None:
        raise KeyboardInterrupt

    entry = PUBLISHED["hopper-medium-v2"]
    with pytest.raises(KeyboardInterrupt):
        download(f"{address}/x", cache / entry.file, entry.size, entry.sha256, interrupt)
    assert not list(cache.iterdir())


def test_another_file_under_a_published_name(published: tuple[str, type[Handler], Path], small: Dataset) -> None:
    _, _, cache = published
    cache.mkdir()
    path = write(cache / "hopper_medium-v2.hdf5", **trapped(small.take_episodes(1)))
    with pytest.raises(SappError, match=r"hopper_medium-v2\.hdf5: is not the published hopper-medium-v2"):
        load("hopper-medium-v2")
    assert load(path).num_episodes == 1


def test_older_versions_load_from_the_cache_only(published: tuple[str, type[Handler], Path], small: Dataset) -> None:
    _, _, cache = published
    with pytest.raises(SappError, match=r"hopper-medium-replay-v1: no such D4RL dataset.*hopper-medium-replay-v2"):
        load("hopper-medium-replay-v1")
    cache.mkdir()
    write(cache / "hopper_medium_replay-v1.hdf5", **trapped(small))
    assert load("hopper-medium-replay-v1").name == "hopper-medium-replay-v1"


def test_unknown_name_says_the_nearest() -> None:
    with pytest.raises(SappError, match=r"hoper-medium-v2.*did you mean 'hopper-medium-v2'\?"):
        load("hoper-medium-v2")


@pytest.mark.parametrize(("inside", "listed"), [(50, []), (51, ["infos/…"])])
def test_of_the_columns_of_a_group_fifty_are_listed(tmp_path: Path, inside: int, listed: list[str]) -> None:
    rows = np.arange(20.0)
    groups = {f"infos__x{number}": 0.0 for number in range(inside)}
    path = write(tmp_path / "log.hdf5", observations=rows[:, None], actions=np.zeros((20, 1)), rewards=rows,
                 terminals=rows % 10 == 9, **groups)  # fmt: skip
    names = [each.name for each in Ledger.of(load(path)).columns if each.name.startswith("infos/")]
    assert [name for name in names if "x" not in name] == listed
    assert len(names) == 50 + len(listed)
