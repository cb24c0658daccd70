"""Experiments: a run is never done twice, nothing is lost, and the same grid gives the same store."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_experiment import tiny_grid

from sapp.core.errors import SappError
from sapp.experiments import driver
from sapp.experiments.driver import run_experiment
from sapp.experiments.store import TABLES, Store
from sapp.runs.members import MemberId

COLUMNS = ("CQL", "SA-CQL", "shuffled", "matched", "random")


def everything(store: Path) -> dict[str, list[dict[str, object]]]:
    with Store(store) as opened:
        return {table: opened.rows(table) for table in TABLES}


def quiet(_: str) -> None:
    pass


def test_the_store_holds_every_cell_once(finished: Path) -> None:
    rows = everything(finished / "results.sqlite")
    assert [(row["variant"], row["seed"]) for row in rows["cells"]] == [(c, s) for c in COLUMNS for s in (0, 1)]
    assert len(rows["runs"]) == 10
    assert len(rows["evaluations"]) == 10 * 2 * 2  # members × evaluations × episodes
    assert {row["step"] for row in rows["evaluations"]} == {10, 20}
    assert {(row["phase"], row["step"]) for row in rows["metrics"]} == {
        ("pretrain", -10), ("ratio", 0), ("joint", 10), ("joint", 20),
    }  # fmt: skip
    assert rows["experiments"][0]["focus"] == "SA-CQL"


def test_nothing_is_trained_twice(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(finished / "results.sqlite")
    monkeypatch.setattr(driver.sapp, "train", None)  # would be called, were anything trained
    monkeypatch.setattr(driver.sapp, "resume", None)
    said: list[str] = []
    run_experiment(tiny_grid(), finished, progress=False, say=said.append)
    assert said == ["cql-point: 10 runs, all done before"]
    assert everything(finished / "results.sqlite") == before


def test_another_experiment_takes_the_runs_it_shares(finished: Path, tmp_path: Path, monkeypatch) -> None:
    from dataclasses import replace

    monkeypatch.setattr(driver.sapp, "train", None)
    store = shutil.copy(finished / "results.sqlite", tmp_path / "results.sqlite")
    run_experiment(replace(tiny_grid(), name="ratio-quality"), tmp_path, store, progress=False, say=quiet)
    rows = everything(Path(store))
    assert len(rows["runs"]) == 10
    assert {row["experiment"] for row in rows["cells"]} == {"random-ratio", "ratio-quality"}


def test_a_grown_grid_trains_only_what_is_new(finished: Path, tmp_path: Path, monkeypatch) -> None:
    wanted: list[set[MemberId]] = []

    def note(folder, family, datasets, phases, scale, members, progress, time_limit):
        wanted.append(set(members))
        raise SappError("far enough")

    monkeypatch.setattr(driver, "_trained", note)
    store = shutil.copy(finished / "results.sqlite", tmp_path / "results.sqlite")
    with pytest.raises(SappError, match="1 of 1 jobs failed"):
        run_experiment(tiny_grid(seeds=(0, 1, 5)), tmp_path, store, progress=False, say=quiet)
    assert wanted == [{MemberId(column, "point-6", 5) for column in COLUMNS}]


def test_a_lost_store_is_made_again_from_the_runs(finished: Path, tmp_path: Path, monkeypatch) -> None:
    """As after a kill between the end of training and the store: the finished run is collected, not trained anew."""
    monkeypatch.setattr(driver.sapp, "train", None)
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    (out / "results.sqlite").unlink()
    run_experiment(tiny_grid(), out, progress=False, say=quiet)
    assert everything(out / "results.sqlite") == everything(finished / "results.sqlite")


DRIVE = """
import sys
sys.path[:0] = ROOTS
from sapp.experiments.driver import run_experiment
from tiny_experiment import tiny_grid
print("started", flush=True)
run_experiment(tiny_grid(steps=600), sys.argv[1], progress=False)
print("finished", flush=True)
"""


def start(folder: Path, out: Path) -> subprocess.Popen[str]:
    roots = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    script = folder / "drive.py"
    script.write_text(DRIVE.replace("ROOTS", repr(roots)))
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return subprocess.Popen(
        [sys.executable, str(script), str(out)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> None:
    output, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    assert "finished" in output


def kill_once(process: subprocess.Popen[str], seen) -> None:
    """Kill the driver as soon as something is on disk."""
    deadline = time.monotonic() + 300
    while not seen() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_killed_driver_goes_on_and_two_runs_give_the_same_store(tmp_path: Path) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    finish(start(tmp_path, straight))

    kill_once(start(tmp_path, broken), lambda: any(broken.glob("*/shared/config.json")))
    kill_once(start(tmp_path, broken), lambda: any(broken.glob("*/joint/checkpoints/00000001?0.safetensors")))
    half = everything(broken / "results.sqlite")
    assert not half["runs"]  # all of a job or none of it
    finish(start(tmp_path, broken))
    assert everything(broken / "results.sqlite") == everything(straight / "results.sqlite")
    assert len(list(broken.glob("cql-point-*"))) == 1
