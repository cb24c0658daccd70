"""A run killed with SIGKILL at random moments and resumed ends with the bits of an uninterrupted one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from sapp.data import Dataset, save_npz
from sapp.runs import metric_tables as tables

KILLS, STEPS = (20, 20_000) if os.environ.get("SAPP_FAULTS") else (5, 12_500)
"""Twenty kills with ``make faults``."""

TRAIN = """
import sys
from pathlib import Path
import sapp
from sapp.weights import control

out, data = Path(sys.argv[1]), sys.argv[2]
print("started", flush=True)
if (out / "config.json").exists():
    sapp.resume(out, progress=False)
else:
    weights = sapp.DualDICE(hidden=(8,))
    small = dict(hidden=(8,), batch_size=8, action_samples=1)
    columns = {kind: sapp.CQL(weights=control(weights, kind), **small) for kind in ("uniform", "real")}
    sapp.train(
        columns, data, phases=sapp.sa_protocol(STEPS, 200, 200), out=out, log_every=25, checkpoint_every=25,
        eval_every=0, progress=False,
    )
print("finished", flush=True)
""".replace("STEPS", str(STEPS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kill")
    rng = np.random.default_rng(0)
    rows = 400
    observation = rng.normal(size=(rows + 1, 3)).astype(np.float32)
    dataset = Dataset(
        observation[:-1], np.tanh(rng.normal(size=(rows, 2))), rng.normal(size=rows), observation[1:],
        rng.random(rows) < 0.02, rng.random(rows) < 0.02, name="noise",
    )  # fmt: skip
    save_npz(dataset, folder / "noise.npz")
    (folder / "train.py").write_text(TRAIN)
    return folder


def start(folder: Path, out: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    environment = environment | {
        "PYTHONPATH": str(root),
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return subprocess.Popen(
        [sys.executable, str(folder / "train.py"), str(out), str(folder / "noise.npz")],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> None:
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "finished" in output


def test_killed_again_and_again_it_has_the_same_bits(folder: Path, long_environment: dict[str, str]) -> None:
    straight, broken = folder / "straight", folder / "broken"
    finish(start(folder, straight, long_environment))

    rng = random.Random(0)
    stages = []
    for kill in range(KILLS):
        process = start(folder, broken, long_environment)
        assert process.stdout is not None
        process.stdout.readline()
        before = newest(broken)
        if kill % 5:  # four of five while steps, rows and checkpoints are being written, the fifth while it starts up
            deadline = time.monotonic() + 120
            while newest(broken) <= before and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(rng.uniform(0.0, 0.25))
        else:
            time.sleep(rng.uniform(0.0, 2.0))
        process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
        assert "finished" not in output, "the run is too short for its kills"
        stages.append(newest(broken))
    assert len(set(stages)) > KILLS // 2  # the kills hit different stages

    finish(start(folder, broken, long_environment))
    last = f"{400 + STEPS:010d}.safetensors"
    expected = load_file(straight / "checkpoints" / last)
    found = load_file(broken / "checkpoints" / last)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert array.tobytes() == found[name].tobytes(), name
    assert not list((broken / "checkpoints").glob(".*")), "a half-written checkpoint was left behind"
    assert rows(broken) == rows(straight)


def newest(run: Path) -> int:
    """Step of the newest checkpoint, −1 before the first."""
    return max((int(file.stem) for file in run.glob("checkpoints/0*.safetensors")), default=-1)


def rows(run: Path) -> list[dict[str, str]]:
    """metrics.csv without the clock."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in tables.read(run / "metrics.csv")]
