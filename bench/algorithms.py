"""Steps per second of every algorithm at its published sizes: as a population on an accelerator, and alone on a CPU
beside d3rlpy where it has the algorithm.

    python bench/algorithms.py population --members 18 --precision tf32 --seconds 2
    python bench/algorithms.py alone --rounds 3 --seconds 3

``population`` needs nothing beyond sapp's own dependencies. In ``alone`` every contender is a process of its own,
pinned to the same cores, and they take turns as in ``bench/compare.py``, whose environment for d3rlpy is used.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

NAMES = (
    "td3bc", "iql", "rebrac", "bc", "cql", "edac", "fisher-brc", "brac", "brac-mmd", "bcq", "bear", "uwac", "sac-n",
    "sa-td3bc",
)  # fmt: skip
PEERS = {"td3bc": "TD3PlusBC", "iql": "IQL", "rebrac": "ReBRAC", "bc": "BC", "cql": "CQL", "bcq": "BCQ", "bear": "BEAR"}
"""What d3rlpy has, by its own name."""
DATASET = "halfcheetah-medium-v2"
"""Whose presets are used unless another's are asked for."""
SIZES = {"halfcheetah-medium-v2": (17, 6), "hopper-medium-v2": (11, 3), "walker2d-medium-v2": (17, 6)}
"""Observations and actions by dataset."""


def measure(
    name: str, dataset: str, members: int, precision: str | None, seconds: float, data: object, spec: object
) -> dict:
    """Compile, then time three chunks of about a third of ``seconds``; schedules are taken to be past their start."""
    from rate import measure as timed

    import sapp
    from sapp.algorithms.config import override
    from sapp.runs.members import Member
    from sapp.runs.phases import Phase
    from sapp.training.population import Population

    algorithm = override(sapp.preset(name, dataset), {} if precision is None else {"precision": precision})
    population = Population([Member(str(i), algorithm, 0, i) for i in range(members)], data, [spec])
    rate, compiled = timed(population, Phase("joint", 0), seconds / 3, algorithm.preparation + 100_000, even=2)
    return {
        "algorithm": name, "dataset": dataset, "members": members, "batch": algorithm.batch_size,
        "precision": precision, "steps_per_second": rate, "run_steps_per_second": rate * members,
        "compile_seconds": compiled,
    }  # fmt: skip


def populations(options: argparse.Namespace) -> list[dict]:
    """One line an algorithm."""
    from population import dataset

    from sapp.training.device_data import DeviceData, spec_of

    data = dataset(*SIZES[options.dataset], options.rows)
    device, spec = DeviceData.of([data]), spec_of(data)
    rows = []
    for name in options.algorithms:
        row = measure(name, options.dataset, options.members, options.precision, options.seconds, device, spec)
        rows.append(row)
        print(
            f"{name:12} {row['members']:3} members, batch {row['batch']:4}: {row['run_steps_per_second']:9,.0f} "
            f"run-steps/s, {row['steps_per_second']:8,.1f} steps/s each (compile {row['compile_seconds']:.1f} s)",
            flush=True,
        )
    return rows


def alone(options: argparse.Namespace) -> list[dict]:
    """Ours and the peer's, one member each, turn by turn."""
    from compare import Worker, peer_python, quiet_turn, spread
    from rich.console import Console

    peer = peer_python(Console())
    rows = []
    for name in options.algorithms:
        workers = {"sapp": Worker(options.cores, sys.executable, "worker_algorithm.py", name)}
        if name in PEERS:
            workers["d3rlpy"] = Worker(options.cores, peer, "worker_d3rlpy_algorithm.py", PEERS[name])
        until = time.monotonic() + options.patience
        steps, paces = {}, {who: [] for who in workers}
        for who, worker in workers.items():
            worker.ask("step", 4)
            steps[who] = max(4, round(4 * options.seconds / worker.ask("step", 4)["seconds"]))
        for _ in range(options.rounds):
            for who, worker in workers.items():
                answer = quiet_turn(worker, "step", steps[who], until)
                paces[who].append(answer["seconds"] / answer["steps"])
        for worker in workers.values():
            worker.close()
        row = {"algorithm": name, "cores": options.cores}
        for who, values in paces.items():
            middle, low, high = spread(values)
            row |= {f"{who}_steps_per_second": 1 / middle, f"{who}_quartiles": [1 / high, 1 / low]}
        rows.append(row)
        print(
            f"{name:12} " + ", ".join(f"{who} {row[f'{who}_steps_per_second']:.1f} steps/s" for who in paces),
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("population", "alone"))
    parser.add_argument("--algorithms", nargs="+", default=NAMES)
    parser.add_argument("--members", type=int, default=18)
    parser.add_argument("--dataset", choices=SIZES, default=DATASET, help="population: whose presets")
    parser.add_argument("--precision", choices=("auto", "float32", "tf32", "mixed"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3.0, help="timed work an algorithm, or length of a turn")
    parser.add_argument("--cores", type=int, default=2, choices=(1, 2), help="1: compare CPU time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for a quiet machine")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    rows = populations(options) if options.what == "population" else alone(options)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
