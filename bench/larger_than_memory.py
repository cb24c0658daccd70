"""A log of frames larger than memory: written piece by piece, opened, trained on; memory at each point.

    python bench/larger_than_memory.py --folder DISK/log --transitions 5_000_000 --steps 900

Frames are synthetic and every byte of them is written: five million take 35 GB of disk, which is given back at the end.
``own`` is what the process allocated, ``peak`` also counts pages of the mapped file that were read.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import numpy as np

import sapp
from sapp.data.loaders.frame_files import FrameWriter

PIECE, EPISODE, SIZE, ACTIONS = 10_000, 1_000, 84, 6


def memory() -> str:
    """Of this process, as Linux counts it."""
    lines = (line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    status = {key: value for key, value in lines if key in ("RssAnon", "VmHWM")}
    own, peak = (int(status[key].split()[0]) / 2**20 for key in ("RssAnon", "VmHWM"))
    return f"own {own:.2f} GiB, peak {peak:.2f} GiB"


def write(folder: Path, transitions: int) -> None:
    """Random frames, a little different in each piece."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (PIECE, SIZE, SIZE), dtype=np.uint8)
    last = np.arange(PIECE) % EPISODE == EPISODE - 1
    with FrameWriter(folder, (SIZE, SIZE), num_actions=ACTIONS) as writer:
        for piece in range(-(-transitions // PIECE)):
            frames[:, piece % SIZE] ^= 1 + piece % 255
            actions = rng.integers(0, ACTIONS, PIECE).astype(np.int32)
            rewards = rng.integers(-1, 2, PIECE).astype(np.float32)
            writer.append(frames, actions, rewards, last, np.zeros(PIECE, bool))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="of the log; must not exist yet")
    parser.add_argument("--transitions", type=lambda text: int(text.replace("_", "")), default=5_000_000)
    parser.add_argument("--steps", type=int, default=900, help="in all, a third in each phase")
    options = parser.parse_args()
    run = options.folder.with_name(f"{options.folder.name}-run")
    columns = {name: sapp.preset(name, "ALE/Pong-v5") for name in ("discrete-cql", "sa-discrete-cql")}
    third = max(1, options.steps // 3)
    try:
        began = time.perf_counter()
        write(options.folder, options.transitions)
        print(f"written in {time.perf_counter() - began:.0f} s: {memory()}", flush=True)
        began = time.perf_counter()
        data = sapp.load(options.folder)
        print(f"{len(data):,} rows opened in {time.perf_counter() - began:.2f} s: {memory()}", flush=True)
        began = time.perf_counter()
        phases = sapp.sa_protocol(third, third, third)
        sapp.train(columns, data, phases=phases, out=run, stream=True, eval_every=0, copy_data=False, progress=False)
        print(f"{3 * third} steps of two members in {time.perf_counter() - began:.0f} s: {memory()}", flush=True)
    finally:
        for folder in (options.folder, run):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
