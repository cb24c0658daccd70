"""What a timed process is asked: ``run STEPS`` lines on standard input, one JSON answer each on standard output.

Imported by the workers of ours and of the peer, so it needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

SIZES = {"observations": 17, "actions": 6, "rows": 100_000, "batch": 256, "hidden": [256, 256], "samples": 10}
"""The same for everybody: HalfCheetah's sizes, CQL's usual batch and network, 10 actions from each of three sources."""


def arrays() -> dict:
    """Synthetic transitions: 100 episodes' worth of noise; speed does not depend on what is in them."""
    import numpy as np

    rng = np.random.default_rng(0)
    rows = SIZES["rows"]
    timeouts = np.zeros(rows, bool)
    timeouts[999::1000] = True
    return {
        "observation": rng.normal(size=(rows + 1, SIZES["observations"])).astype(np.float32),
        "action": np.tanh(rng.normal(size=(rows, SIZES["actions"]))).astype(np.float32),
        "reward": rng.normal(size=rows).astype(np.float32),
        "terminal": np.zeros(rows, bool),
        "timeout": timeouts,
    }


def machine_seconds() -> float:
    """CPU seconds spent by everything on the machine so far (0 where /proc/stat is missing)."""
    try:
        with open("/proc/stat") as file:
            user, nice, system, _, _, irq, soft, steal = map(int, file.readline().split()[1:9])
    except OSError:
        return 0.0
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    times = os.times()
    return times.user + times.system


def peak_memory() -> float:
    """Largest resident size of this process so far, MiB."""
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1024**2 if sys.platform == "darwin" else 1024)


def open_answers() -> TextIO:
    """Where answers go: standard output, which is then taken away from libraries that print (to standard error)."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def serve(tasks: dict[str, Callable[[int], None]], about: dict, answers: TextIO) -> None:
    """Answer until standard input ends. A task's call does that many gradient steps and returns when they are done."""
    print(json.dumps(about), file=answers)
    for line in sys.stdin:
        name, steps = line.split()
        machine, own, began = machine_seconds(), own_seconds(), time.perf_counter()
        tasks[name](int(steps))
        took = time.perf_counter() - began
        spent = own_seconds() - own
        others = max(0.0, machine_seconds() - machine - spent) / took
        answer = {"seconds": took, "cpu": spent, "others": others, "memory": peak_memory()}
        print(json.dumps(answer), file=answers)
