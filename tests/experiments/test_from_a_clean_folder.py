"""The paper's table for an environment with one command, from nothing: data, a kill, going on, the report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sapp.experiments import text_store
from sapp.experiments.store import Store

SCALED_DOWN = """
import sys
from dataclasses import replace
from sapp.data import benchmark_names
from sapp.experiments import grid

benchmark_names.TRANSITIONS["hopper"] = (2_000,) * 6
small = replace(grid.SCALES["paper"], steps=600, pretrain=20, ratio=20, eval_every=300, eval_episodes=1, log_every=50)
grid.SCALES["paper"] = replace(small, changes=grid.SCALES["smoke"].changes)
from sapp.cli.main import main
sys.argv = ["sapp", "experiment", "table1", "--scale", "paper", "--methods", "CQL,SA-CQL,matched",
            "--datasets", "hopper-medium", "--seeds", "0,2", "--quiet", "--rows", "rows"]
main()
"""
"""The command as it is typed, of the paper's scale in small."""


def start(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {
        "MINARI_DATASETS_PATH": str(folder / "minari"), "PYTHONPATH": str(Path(__file__).parents[2]),
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", SCALED_DOWN], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip


def kill(process: subprocess.Popen[str], seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not seen() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()[0]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_one_command_makes_the_data_goes_on_after_kills_and_ends_with_the_report(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "experiment-table1-paper"
    kill(start(tmp_path), lambda: any(tmp_path.glob("minari/sapp/hopper/.medium-v0.partial/*.npz"))
         or any(tmp_path.glob("minari/sapp/hopper/medium-v0")))  # fmt: skip
    kill(start(tmp_path), lambda: any(out.glob("cql-hopper-*/joint/checkpoints/*300.safetensors")))
    assert not (out / "report.html").exists()
    (data,) = tmp_path.glob("minari/sapp/hopper/medium-v0/data/*.hdf5")
    made = data.stat().st_mtime_ns

    last = start(tmp_path)
    said = last.communicate(timeout=400)[0]
    assert last.returncode == 0, said
    assert "cql-hopper: 6 runs of 6 to train on hopper-medium" in said
    assert data.stat().st_mtime_ns == made, "data are made once"
    assert len(list(out.glob("cql-hopper-*"))) == 1, "the same run went on"
    with Store(out / "results.sqlite") as store:
        assert {(row["variant"], row["seed"]) for row in store.rows("cells")} == {
            (variant, seed) for variant in ("CQL", "SA-CQL", "matched") for seed in (0, 2)
        }
        assert {row["step"] for row in store.rows("evaluations")} == {300, 600}
        assert {row["transitions"] for row in store.rows("runs")} == {2_000}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "hopper-medium" in page
    assert "SA-CQL, the paper" in page
    assert len(text_store.read(tmp_path / "rows").rows["runs"]) == 6
    again = start(tmp_path)
    assert "6 runs, all done before" in again.communicate(timeout=400)[0]
