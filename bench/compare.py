"""Ours beside d3rlpy in one run: steps per second of CQL at equal sizes, SA-CQL's cost, memory, import time.

    python bench/compare.py
    python bench/compare.py --rounds 20 --json bench.json
    python bench/compare.py --cores 1                   # CPU time on one core: for a machine that is never idle

d3rlpy gets an environment of its own (``.bench-venv``, made on first use). Every timed process keeps to the same two
cores and they take turns. A turn counts only if other processes took less than a tenth of a core meanwhile: with other
work on the machine the peer loses more than we do (its threads wait for one another), and the ratio would flatter us.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from worker import SIZES, machine_seconds

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER_HOME = ROOT / ".bench-venv"
PEER_PACKAGES = ["torch==2.13.0", "d3rlpy==2.8.1"]  # torch first: a CPU-only build is enough, d3rlpy takes any
QUIET = 0.1
TARGETS = {"speed": 1.2, "cost": 1.2, "import": 2.0, "help": 0.5}


def peer_python(console: Console) -> Path:
    """The peer's interpreter; its environment is made once."""
    python, stamp = PEER_HOME / "bin" / "python", PEER_HOME / ".installed"
    if not stamp.exists() or stamp.read_text().split() != PEER_PACKAGES:
        console.print(f"making {PEER_HOME} with {' and '.join(PEER_PACKAGES)} (once, minutes)")
        subprocess.run([sys.executable, "-m", "venv", str(PEER_HOME)], check=True)
        (PEER_HOME / ".gitignore").write_text("*\n")
        for package in PEER_PACKAGES:
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", package], check=True)
        stamp.write_text("\n".join(PEER_PACKAGES))
    return python


def environment(cores: int) -> dict[str, str]:
    """The same number of threads for everybody, and our package importable wherever this was started."""
    keep = {key: value for key, value in os.environ.items() if key not in ("XLA_FLAGS", "PYTHONPATH")}
    threads = {"OMP_NUM_THREADS": str(cores), "MKL_NUM_THREADS": str(cores)}
    return keep | threads | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}


class Worker:
    """A timed process that sleeps between its turns."""

    def __init__(self, cores: int, python: Path | str, script: str, *arguments: str) -> None:
        pinned = sorted(os.sched_getaffinity(0))[:cores] if hasattr(os, "sched_getaffinity") else []
        self.cores = cores
        self.errors = (PEER_HOME / f"{Path(script).stem}-{'-'.join(arguments) or 'plain'}.log").open("w+")
        self.process = subprocess.Popen(
            [str(python), str(HERE / script), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, env=environment(cores),
            preexec_fn=(lambda: os.sched_setaffinity(0, pinned)) if pinned else None,
        )  # fmt: skip
        self.about = self._answer()

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise SystemExit(f"{' '.join(self.process.args)} stopped:\n{self.errors.read()[-2000:]}")
        return json.loads(line)

    def ask(self, task: str, steps: int) -> dict:
        self.process.stdin.write(f"{task} {steps}\n")
        self.process.stdin.flush()
        answer = self._answer() | {"steps": steps}
        if self.cores == 1:  # CPU time does not see the others
            answer |= {"seconds": answer["cpu"], "others": 0.0}
        return answer

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()


def spread(values: list[float]) -> tuple[float, float, float]:
    """Median and quartiles."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def quiet_turn(worker: Worker, task: str, steps: int, until: float) -> dict:
    """One turn in which nobody else was at work, tried again until ``until``; then whatever comes."""
    while True:
        while worker.cores > 1 and time.monotonic() < until and others_busy(0.3):
            pass  # the look itself also lets the thread pools of the one before fall asleep
        answer = worker.ask(task, steps)
        if answer["others"] < QUIET or time.monotonic() >= until:
            return answer


def others_busy(seconds: float) -> bool:
    """Whether the machine is at work while we and our workers are not."""
    before = machine_seconds()
    time.sleep(seconds)
    return machine_seconds() - before > QUIET * seconds


def measure(
    turns: dict[str, tuple[Worker, str]], rounds: int, seconds: float, patience: float, console: Console
) -> dict:
    """Turn after turn, round after round; quiet turns are waited for, ``patience`` seconds in all."""
    until = time.monotonic() + patience
    steps = {}
    for name, (worker, task) in turns.items():
        worker.ask(task, 3)  # compiles, fills caches
        steps[name] = max(5, round(5 * seconds / quiet_turn(worker, task, 5, until)["seconds"]))
    done: list[dict] = []
    for number in range(1, rounds + 1):
        entry = {name: quiet_turn(*turn, steps[name], until) for name, turn in turns.items()}
        done.append(entry)
        times = ", ".join(f"{name} {1e3 * a['seconds'] / a['steps']:.1f} ms" for name, a in entry.items())
        console.print(f"round {number}{'' if quiet(entry) else ' (others busy)'}: {times}", style="dim")
    kept = [entry for entry in done if quiet(entry)]
    enough = len(kept) >= 3
    kept = kept if enough else done

    def pace(entry: dict, name: str) -> float:
        return 1e3 * entry[name]["seconds"] / entry[name]["steps"]

    table = {
        name: {
            "ms": spread([pace(entry, name) for entry in kept]), "memory": max(entry[name]["memory"] for entry in done)
        }
        for name in turns
    }  # fmt: skip

    def ratio(over: str, under: str) -> tuple[float, float, float]:
        return spread([pace(entry, over) / pace(entry, under) for entry in kept])

    return {"turns": table, "rounds": len(done), "kept": len(kept), "quiet": enough, "ratio": ratio}


def quiet(entry: dict) -> bool:
    """Whether nobody else was at work in any turn of this round."""
    return all(answer["others"] < QUIET for answer in entry.values())


def seconds_of(command: list[str], times: int = 7) -> float:
    """Least wall time of a command: the first run fills the disk cache, others' work only adds."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(2))
        took.append(time.perf_counter() - began)
    return min(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="rounds of one turn each")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one turn")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds to wait for a quiet machine")
    parser.add_argument("--cores", type=int, default=2, choices=(1, 2), help="1: compare CPU time")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    console = Console()
    peer = peer_python(console)

    cores = options.cores
    ours, ours_sa = (Worker(cores, sys.executable, "worker_sapp.py", name) for name in ("cql", "sa-cql"))
    plain, compiled = Worker(cores, peer, "worker_d3rlpy.py"), Worker(cores, peer, "worker_d3rlpy.py", "compile")
    turns = {
        "sapp CQL": (ours, "step"),
        "d3rlpy CQL": (plain, "step"),
        "sapp SA-CQL": (ours_sa, "step"),
        "d3rlpy CQL, update only": (plain, "update"),
    }
    if compiled.about["compiled"]:
        turns["d3rlpy CQL, compiled"] = (compiled, "step")
    result = measure(turns, options.rounds, options.seconds, options.patience, console)
    for worker in (ours, ours_sa, plain, compiled):
        worker.close()

    ratio = result.pop("ratio")
    rivals = [name for name in turns if name.startswith("d3rlpy") and not name.endswith("update only")]
    fastest = min(rivals, key=lambda name: result["turns"][name]["ms"][0])
    speed, cost = ratio(fastest, "sapp CQL"), ratio("sapp SA-CQL", "sapp CQL")
    update_only = ratio("d3rlpy CQL, update only", "sapp CQL")
    python = sys.executable
    imports = {
        "python (nothing)": seconds_of([python, "-c", "pass"]),
        "import sapp": seconds_of([python, "-c", "import sapp"]),
        "import all of sapp's training": seconds_of([python, "-c", "from sapp import CQL, DualDICE, load, train"]),
        "sapp --help": seconds_of([python, "-m", "sapp", "--help"]),
        "import d3rlpy": seconds_of([str(peer), "-c", "import d3rlpy"]),
    }

    sizes = f"batch {SIZES['batch']}, layers {SIZES['hidden']}, 3×{SIZES['samples']} actions"
    table = Table(title=f"CQL on {cores} core{'s' if cores > 1 else ''}: {sizes}")
    for column in ("", "measured", "spread", "target"):
        table.add_column(column, justify="left" if not column else "right")
    for name, row in result["turns"].items():
        middle, low, high = row["ms"]
        table.add_row(name, f"{1e3 / middle:.1f} steps/s", f"{low:.1f}–{high:.1f} ms per step", "")
    verdicts = {
        f"speed: sapp over {fastest}": (speed[0], speed, "×", TARGETS["speed"], speed[0] >= TARGETS["speed"]),
        "speed: sapp over d3rlpy's update alone": (update_only[0], update_only, "×", None, None),
        "cost: SA-CQL over CQL": (cost[0], cost, "×", TARGETS["cost"], cost[0] <= TARGETS["cost"]),
    }
    for name, (value, (_, low, high), unit, target, met) in verdicts.items():
        goal = "" if target is None else f"{'≥' if name.startswith('speed') else '≤'} {target} {'✓' if met else '✗'}"
        table.add_row(name, f"{value:.2f} {unit}", f"{low:.2f}–{high:.2f}", goal)
    for name in ("sapp CQL", "sapp SA-CQL", "d3rlpy CQL"):
        table.add_row(f"memory: {name}", f"{result['turns'][name]['memory']:.0f} MiB", "peak", "")
    goals = {"import sapp": TARGETS["import"], "sapp --help": TARGETS["help"]}
    for name, value in imports.items():
        goal = f"< {goals[name]} s {'✓' if value < goals[name] else '✗'}" if name in goals else ""
        table.add_row(f"start: {name}", f"{value:.2f} s", "", goal)
    console.print(table)
    console.print(
        f"{result['kept']} of {result['rounds']} rounds kept"
        + ("; times are of the CPU, not of the wall" if cores == 1 else "")
        + ("" if result["quiet"] else ": the machine was busy, nothing here counts; repeat when it is idle")
        + ("" if compiled.about["compiled"] else "; d3rlpy ignores compile_graph on CPUs (CUDA only)")
    )
    if options.json:
        record = {
            "sizes": SIZES, "versions": plain.about | ours.about | {"python": platform.python_version()},
            "cores": cores, "machine": platform.processor() or platform.machine(), "results": result,
            "speed": speed, "speed_update_only": update_only, "cost": cost, "imports": imports, "targets": TARGETS,
        }  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
