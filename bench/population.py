"""Speed of a population's phases: run-steps per second by precision and number of members.

python bench/population.py --members 15 30 --precision mixed tf32 --hidden 256,256,256
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import jax
import numpy as np
from rate import measure

import sapp
from sapp.data import Dataset
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population
from sapp.weights import DualDICE

PHASES = {
    "base": Phase("base", 0, base=True, ratio=False, weighted=False),
    "ratio": Phase("ratio", 0, base=False, ratio=True, weighted=False),
    "joint": Phase("joint", 0),
}


def dataset(observations: int, actions: int, rows: int) -> Dataset:
    rng = np.random.default_rng(0)
    observation = rng.normal(size=(rows + 1, observations)).astype(np.float32)
    return Dataset(
        observation[:-1],
        np.tanh(rng.normal(size=(rows, actions))).astype(np.float32),
        rng.normal(size=rows).astype(np.float32),
        observation[1:],
        rng.random(rows) < 0.002,
        np.zeros(rows, bool),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="+", default=[1])
    parser.add_argument("--precision", nargs="+", default=["float32"])
    parser.add_argument("--kernel", nargs="+", default=["auto"])
    parser.add_argument("--phases", nargs="+", default=list(PHASES))
    parser.add_argument("--hidden", nargs="+", default=["256,256,256"])
    parser.add_argument("--batch", type=int, nargs="+", default=[256])
    parser.add_argument("--observations", type=int, default=17)
    parser.add_argument("--actions", type=int, default=6)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path, help="also append one JSON object a line to this file")
    options = parser.parse_args()
    data = dataset(options.observations, options.actions, options.rows)
    everything = options.precision, options.kernel, options.hidden, options.batch, options.members
    for precision, kernel, hidden, batch, count in itertools.product(*everything):
        widths = tuple(int(width) for width in hidden.split(","))
        algorithm = sapp.CQL(
            weights=DualDICE(), hidden=widths, precision=precision, kernel=kernel, batch_size=batch
        )  # fmt: skip
        members = [Member(str(seed), algorithm, 0, seed) for seed in range(count)]
        population = Population(members, DeviceData.of([data]), [spec_of(data)])
        for name in options.phases:
            rate, compiled = measure(population, PHASES[name], options.seconds)
            rate *= count
            peak = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
            print(
                f"{precision:8} {kernel:6} {hidden:12} batch {batch:4} {count:3} members  {name:6} "
                f"{rate:10,.0f} run-steps/s  (compile {compiled:.1f} s, peak so far {peak / 2**20:,.0f} MiB)",
                flush=True,
            )
            if options.json:
                row = {"precision": precision, "kernel": kernel, "hidden": hidden, "batch": batch}
                row |= {"members": count, "phase": name, "run_steps_per_s": rate, "compile_s": compiled, "peak": peak}
                with options.json.open("a") as file:
                    file.write(json.dumps(row | {"device": jax.local_devices()[0].device_kind}) + "\n")


if __name__ == "__main__":
    main()
