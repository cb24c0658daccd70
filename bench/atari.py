"""Steps per second and memory of discrete CQL on frames of Atari's size, as a population; d3rlpy's beside it if wanted.

    python bench/atari.py --members 12 --batch 32 64 --precision tf32 mixed --frames 1_000_000
    python bench/atari.py --members 1 12 --methods patches conv --seconds 3 --d3rlpy
    python bench/atari.py --members 60 --columns 1 5 --algorithms sa-discrete-cql --batch 32 --precision mixed

Frames are synthetic (their content does not change the work). ``memory`` is what the frames take on the device beside
their raw bytes; ``peak`` is the device's peak until then. Needs NumPy, JAX, equinox and optax; --d3rlpy also PyTorch
and d3rlpy, which it trains alone, on the same device, through its public interface.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

SIZE, ACTIONS = 84, 6
EPISODE = 1_000
"""Rows of an episode."""


def synthetic(rows: int) -> Any:
    """A log of random frames: a block of them over and over."""
    from sapp.data.frames import FrameDataset

    rng = np.random.default_rng(0)
    block = rng.integers(0, 256, (min(rows, 4_096), SIZE, SIZE), dtype=np.uint8)
    frames = np.empty((rows, SIZE, SIZE), np.uint8)
    for first in range(0, rows, len(block)):
        frames[first : first + len(block)] = block[: rows - first]
    last = np.arange(rows) % EPISODE == EPISODE - 1
    return FrameDataset(
        frames, rng.integers(0, ACTIONS, rows).astype(np.int32), rng.integers(-1, 2, rows).astype(np.float32),
        last, np.zeros(rows, bool), num_actions=ACTIONS, name="synthetic",
    )  # fmt: skip


def algorithm(name: str, batch: int, precision: str, method: str) -> Any:
    """The preset for Pong at the given sizes."""
    import sapp
    from sapp.algorithms.config import override

    changes = {"batch_size": batch, "network.precision": precision, "network.method": method}
    return override(sapp.preset(name, "ALE/Pong-v5"), changes)


def peak() -> int | None:
    """Bytes that the device had in use at most; None where it does not say."""
    import jax

    found = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    return None if found is None else int(found)


def measure(chosen: Any, members: int, columns: int, data: Any, spec: Any, seconds: float) -> dict[str, Any]:
    """Compile, then time three stretches of about a third of ``seconds`` each."""
    from rate import measure as timed

    from sapp.runs.members import Member
    from sapp.runs.phases import Phase
    from sapp.training.population import Population

    shared = max(1, members // columns)
    population = Population([Member(str(i), chosen, 0, i % shared) for i in range(members)], data, [spec])
    rate, compiled = timed(population, Phase("joint", 0), seconds / 3)
    return {"steps_per_second": rate, "run_steps_per_second": rate * members, "compile_seconds": compiled}


def measure_d3rlpy(batch: int, seconds: float) -> float:
    """Updates per second of d3rlpy's DiscreteCQL, one learner, on the GPU if PyTorch sees one."""
    import d3rlpy
    import torch

    rng = np.random.default_rng(0)
    episodes = [
        d3rlpy.dataset.Episode(
            rng.integers(0, 256, (EPISODE, 1, SIZE, SIZE), dtype=np.uint8),
            rng.integers(0, ACTIONS, (EPISODE, 1)), rng.integers(-1, 2, (EPISODE, 1)).astype(np.float32), True,
        )
        for _ in range(4)
    ]  # fmt: skip
    data = d3rlpy.dataset.create_infinite_replay_buffer(
        episodes, transition_picker=d3rlpy.dataset.FrameStackTransitionPicker(n_frames=4)
    )
    config = d3rlpy.algos.DiscreteCQLConfig(
        batch_size=batch, observation_scaler=d3rlpy.preprocessing.PixelObservationScaler()
    )
    cuda = torch.cuda.is_available()
    learner = config.create(device="cuda:0" if cuda else "cpu")
    learner.build_with_dataset(data)
    count = 10
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(count):
            learner.update(data.sample_transition_batch(batch))
        if cuda:
            torch.cuda.synchronize()
        rate = count / (time.perf_counter() - began)
        count = max(10, int(rate * seconds))
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, nargs="+", default=[12])
    parser.add_argument("--columns", type=int, nargs="+", default=[1], help="members that share a batch")
    parser.add_argument("--batch", type=int, nargs="+", default=[64])
    parser.add_argument("--algorithms", nargs="+", default=["discrete-cql", "sa-discrete-cql"])
    parser.add_argument("--precision", nargs="+", default=["tf32"])
    parser.add_argument("--methods", nargs="+", default=["patches"])
    parser.add_argument("--frames", type=lambda text: int(text.replace("_", "")), default=200_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--d3rlpy", action="store_true")
    parser.add_argument("--json", type=Path, help="also append one JSON object a line to this file")
    options = parser.parse_args()

    import jax

    from sapp.training.device_frames import DeviceFrames, frame_spec

    host = synthetic(options.frames)
    began = time.perf_counter()
    data = jax.block_until_ready(DeviceFrames.of([host]))
    took, spec = time.perf_counter() - began, frame_spec(host)
    raw, held = host.frames.nbytes, sum(leaf.nbytes for leaf in jax.tree.leaves(data))
    device = jax.devices()[0].device_kind
    print(f"{device}: {options.frames:,} frames, {raw / 2**30:.2f} GiB raw, on the device {held / raw:.3f} times that; "
          f"uploaded in {took:.1f} s, peak {(peak() or 0) / 2**30:.2f} GiB")  # fmt: skip

    def note(row: dict[str, Any]) -> None:
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps({"device": device, "frames": options.frames, **row}) + "\n")

    note({"memory_ratio": held / raw, "peak_bytes": peak()})
    for batch in options.batch:
        if options.d3rlpy:
            rate = measure_d3rlpy(batch, options.seconds)
            print(f"d3rlpy DiscreteCQL   1 member, batch {batch}: {rate:9,.1f} steps/s", flush=True)
            note({"algorithm": "d3rlpy", "batch": batch, "steps_per_second": rate})
        for name, members, columns, precision, method in itertools.product(
            options.algorithms, options.members, options.columns, options.precision, options.methods
        ):
            row = measure(algorithm(name, batch, precision, method), members, columns, data, spec, options.seconds)
            print(
                f"{name:16} {members:3} members in {columns} columns, batch {batch}, {precision:7} {method:7}: "
                f"{row['run_steps_per_second']:9,.0f} run-steps/s, {row['steps_per_second']:8,.1f} steps/s each "
                f"(compile {row['compile_seconds']:.0f} s, peak {(peak() or 0) / 2**30:.2f} GiB)",
                flush=True,
            )
            note({"algorithm": name, "members": members, "columns": columns, "batch": batch, "precision": precision,
                  "method": method, "peak_bytes": peak(), **row})  # fmt: skip


if __name__ == "__main__":
    main()
