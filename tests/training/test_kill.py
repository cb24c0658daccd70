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

KILLS, STEPS = (20, 12_000) if os.environ.get("SAPP_FAULTS") else (5, 4_000)
"""Twenty kills with ``make faults``."""
EVERY = 25
"""Steps between checkpoints."""

SERVER = """
import os
import sys
import traceback
from pathlib import Path
import sapp
import sapp.training.train
from sapp.weights import control

data = sys.argv[1]


def go(out):
    if (out / "config.json").exists():
        sapp.resume(out, progress=False)
        return
    weights = sapp.DualDICE(hidden=(8,))
    small = dict(hidden=(8,), batch_size=8, action_samples=1)
    columns = {kind: sapp.CQL(weights=control(weights, kind), **small) for kind in ("uniform", "real")}
    sapp.train(
        columns, data, phases=sapp.sa_protocol(STEPS, 200, 200), out=out, log_every=EVERY, checkpoint_every=EVERY,
        eval_every=0, progress=False,
    )


for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            go(Path(line.strip()))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
""".replace("STEPS", str(STEPS)).replace("EVERY", str(EVERY))
"""A process that has imported everything, without a backend of JAX, and forks itself for each start."""


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
    (folder / "server.py").write_text(SERVER)
    return folder


class Server:
    """Starts the training of a run, a process each."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        environment = environment | {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        self._errors = (folder / "errors").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, str(folder / "server.py"), str(folder / "noise.npz")],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip

    def start(self, out: Path) -> int:
        """The process's id."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{out}\n")
        self._process.stdin.flush()
        return self._answer()

    def ended(self) -> int:
        """The exit code of what was started last, once it has ended."""
        return self._answer()

    def finish(self, out: Path) -> None:
        """Train to the end."""
        self.start(out)
        assert self.ended() == 0, Path(self._errors.name).read_text()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._errors.close()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def test_killed_again_and_again_it_has_the_same_bits(folder: Path, long_environment: dict[str, str]) -> None:
    straight, broken = folder / "straight", folder / "broken"
    server = Server(folder, long_environment)
    server.finish(straight)

    rng = random.Random(0)
    stages = []
    for kill in range(KILLS):
        before = newest(broken)
        child = server.start(broken)
        # four of five while steps, rows and checkpoints are being written, the fifth while it starts up
        wanted = before + (rng.randrange(1, 9) * EVERY if kill % 5 else 1)
        deadline = time.monotonic() + (120 if kill % 5 else rng.uniform(0.0, 1.0))
        while newest(broken) < wanted and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        assert server.ended() == -signal.SIGKILL, "the run is too short for its kills"
        stages.append(newest(broken))
    assert len(set(stages)) > KILLS // 2  # the kills hit different stages

    server.finish(broken)
    server.close()
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
