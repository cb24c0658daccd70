"""How long ``sapp train cql`` takes from the command to its first gradient step, and with how much memory.

    python bench/first_step.py                          # synthetic rows of HalfCheetah's sizes; three rounds
    python bench/first_step.py --data hopper-medium     # or whatever else `sapp train` takes
    python bench/first_step.py --rounds 5 --json bench/rows/cpu-first-step.jsonl

With the command's default sizes. A round is two starts: one without any compiled program, one with those of the first.
The step is done when its row is in metrics.csv, which is asked to have one for every step. Seconds of the wall depend
on what else the machine does, which is measured; seconds of the CPU hardly do.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from worker import SIZES, arrays, machine_seconds  # noqa: E402

LOOK = 0.02
"""Seconds between looks for the row."""
STEPS = 100_000
"""More than are ever made: the run is interrupted."""


def synthetic(path: Path) -> None:
    """The rows that all of bench learns from, as a file."""
    from sapp import save_npz
    from sapp.data import Dataset

    raw = arrays()
    seen = raw["observation"]
    save_npz(Dataset(seen[:-1], raw["action"], raw["reward"], seen[1:], raw["terminal"], raw["timeout"]), path)


def start(arguments: Sequence[str], out: Path, programs: Path) -> dict[str, float]:
    """One start of ``sapp train``, ended after its first step: seconds, CPU seconds, cores others used, peak MiB."""
    words = ["train", *arguments, "--steps", str(STEPS), "--log-every", "1", "--out", str(out), "--quiet"]
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XLA_"))}
    surroundings |= {
        "XDG_CACHE_HOME": str(programs), "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])),
    }  # fmt: skip
    with tempfile.TemporaryFile("w+") as said:
        machine, began = machine_seconds(), time.perf_counter()
        child = subprocess.Popen([sys.executable, "-m", "sapp", *words], env=surroundings, stdout=said, stderr=said)
        try:
            while not first_row(out / "metrics.csv"):
                if child.poll() is not None:
                    said.seek(0)
                    raise SystemExit(f"sapp {' '.join(words)} ended before its first step:\n{said.read()[-2000:]}")
                time.sleep(LOOK)
            took, all_of_it = time.perf_counter() - began, machine_seconds() - machine
            own, peak = of_process(child.pid)
        finally:
            child.send_signal(signal.SIGINT)
            child.wait()
    return {"seconds": took, "cpu": own, "others": max(0.0, all_of_it - own) / took, "memory": peak}


def first_row(table: Path) -> bool:
    """Whether a whole row follows the head."""
    return table.exists() and table.read_bytes().count(b"\n") > 1


def of_process(number: int) -> tuple[float, float]:
    """CPU seconds of a process so far and its largest resident size, MiB (Linux)."""
    after_name = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(int(each) for each in after_name[11:13])
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return ticks / os.sysconf("SC_CLK_TCK"), peak / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="what to train on (default: synthetic rows)")
    parser.add_argument("--algorithm", default="cql")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also append one JSON object a start to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.data is None:
            synthetic(folder / "rows.npz")
        source = options.data or str(folder / "rows.npz")
        for number in range(options.rounds):
            for which in ("first", "second"):
                found = start(
                    [options.algorithm, source], folder / f"run-{number}-{which}", folder / f"programs-{number}"
                )
                print(
                    f"{which} start: {found['seconds']:.1f} s ({found['cpu']:.1f} s of CPU; others used "
                    f"{found['others']:.1f} cores), peak {found['memory']:.0f} MiB",
                    flush=True,
                )
                if options.json:
                    row: dict[str, Any] = {
                        "algorithm": options.algorithm, "data": options.data or "synthetic", "rows": SIZES["rows"],
                        "start": which, **{key: round(float(value), 2) for key, value in found.items()},
                        "cores": os.cpu_count(), "jax": version("jax"), "python": platform.python_version(),
                    }  # fmt: skip
                    if options.data is not None:
                        del row["rows"]
                    with options.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
