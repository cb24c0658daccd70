"""Hashes of what training leaves: run it before and after a change that must keep the bits, on one machine.

    JAX_PLATFORMS=cpu python bench/same_bits.py > before
    JAX_PLATFORMS=cpu python bench/same_bits.py | diff before -

CQL, SA-CQL (DualDICE) and TD3+BC with tiny networks, two seeds each. One line per array of the last checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

import sapp
from sapp.algorithms import TD3BC
from sapp.data import Dataset


def dataset(rows: int = 600, episode: int = 50) -> Dataset:
    """A random walk in three dimensions with actions of two."""
    rng = np.random.default_rng(0)
    observation = np.cumsum(rng.normal(size=(rows + 1, 3)) * 0.1, axis=0).astype(np.float32)
    last = np.arange(1, rows + 1) % episode == 0
    terminal = last & (rng.random(rows) < 0.5)
    return Dataset(
        observation[:-1], np.tanh(rng.normal(size=(rows, 2))).astype(np.float32),
        rng.normal(size=rows).astype(np.float32), observation[1:], terminal, last & ~terminal,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    small = {"hidden": (16, 16), "batch_size": 32}
    algorithms = {
        "cql": sapp.CQL(**small, action_samples=4),
        "sa-cql": sapp.CQL(**small, action_samples=4, weights=sapp.DualDICE(hidden=(16, 16))),
        "td3bc": TD3BC(**small),
    }
    third = options.steps // 3
    phases = {"sa-cql": sapp.sa_protocol(options.steps - 2 * third, pretrain=third, ratio=third)}
    for name, algorithm in algorithms.items():
        with tempfile.TemporaryDirectory() as folder:
            run = sapp.train(
                algorithm, dataset(), seeds=2, steps=options.steps, phases=phases.get(name), eval_every=0,
                log_every=70, out=Path(folder) / "run", progress=False,
            )  # fmt: skip
            arrays = load_file(max(run.checkpoints.items())[1])
        for key, array in sorted(arrays.items()):
            print(name, key, hashlib.sha256(array.tobytes()).hexdigest()[:16])


if __name__ == "__main__":
    main()
