"""Where the time of a step goes on a GPU: the kernels of a population's program by name, with their microseconds.

    python bench/kernel_times.py --members 54 --hidden 256,256 --precision mixed --phase joint

The profiler does not see into the one graph that the program usually is, so here its kernels run one by one: the sum is
larger than the time of a step in training, and the shares are what counts.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_command_buffer="

import jax
from population import PHASES, dataset

import sapp
from sapp.runs.members import Member
from sapp.training import program
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population
from sapp.weights import DualDICE


def kernel_times(folder: Path) -> dict[str, tuple[int, float]]:
    """Count and seconds of each kernel in a trace, by its name without numbers at the end."""
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for file in folder.rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            if "GPU" not in plane.name:
                continue
            for line in plane.lines:
                if not line.name.startswith("Stream"):
                    continue
                for event in line.events:
                    count, seconds = found[re.sub(r"[._]\d+$", "", event.name)]
                    found[re.sub(r"[._]\d+$", "", event.name)] = count + 1, seconds + event.duration_ns * 1e-9
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=54)
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--hidden", default="256,256")
    parser.add_argument("--phase", choices=list(PHASES), default="joint")
    parser.add_argument("--most", type=int, default=40, help="kernels shown")
    options = parser.parse_args()
    data = dataset(17, 6, 100_000)
    program._run_on_gpu = program.run
    widths = tuple(int(width) for width in options.hidden.split(","))
    algorithm = sapp.CQL(weights=DualDICE(), hidden=widths, precision=options.precision, kernel=options.kernel)
    members = [Member(str(seed), algorithm, 0, seed) for seed in range(options.members)]
    population, phase = Population(members, DeviceData.of([data]), [spec_of(data)]), PHASES[options.phase]
    learner, sums = population.init(), population.empty_sums(phase)
    steps = 4 * population.stride
    for _ in range(3):
        learner, sums = population.run(learner, sums, phase, steps)
    jax.block_until_ready(learner)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            began = time.perf_counter()
            learner, sums = population.run(learner, sums, phase, steps)
            jax.block_until_ready(learner)
            clock = time.perf_counter() - began
        found = kernel_times(Path(folder))
    per = 1e6 / (steps * options.members)
    total = sum(seconds for _, seconds in found.values())
    print(f"{clock * per:.2f} us per run-step by the clock (with the profiler on), {total * per:.2f} by kernels")
    for name, (count, seconds) in sorted(found.items(), key=lambda item: -item[1][1])[: options.most]:
        print(f"{seconds * per:8.3f} us  {count / steps:6.2f} per step  {name}")


if __name__ == "__main__":
    main()
