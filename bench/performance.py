"""The speed table, the scaling curves and the memory of docs/performance.md, for the machine this runs on.

    python bench/performance.py --out performance.jsonl            # some six minutes on a GPU; --part to choose
    python bench/performance.py --out performance.jsonl --part peers --peer .bench-venv/bin/python
    python bench/performance.py --out performance.jsonl --figure docs/images/performance.png

Each line of the table is measured in a process of its own and each curve in one, from small to large, so that the peak
of memory is theirs. Lines already in the file are not measured again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
MEMBERS, BATCHES, WIDTHS = (1, 2, 6, 18, 54, 108), (64, 128, 256, 512, 1024), (64, 128, 256, 512)
PARTS = ("table", "members", "batch", "width", "peers")

Configuration = dict[str, list]
"""Lists of what ``bench/population.py`` takes; it measures their product."""


def configurations(part: str) -> list[Configuration]:
    """What each part of the page needs, a process each; the paper's table first."""
    fast: Configuration = {"precision": ["mixed"], "kernel": ["auto"], "batch": [256]}
    curve = fast | {"hidden": ["256,256"], "members": [18], "phases": ["joint"]}
    if part == "table":
        found = []
        for hidden in ("256,256", "256,256,256"):
            sizes = {"hidden": [hidden], "members": [54], "phases": ["base", "joint"]}
            found += [fast | sizes, fast | sizes | {"members": [1]}, fast | sizes | {"kernel": ["xla"]}]
        return found
    if part == "members":
        return [curve | {"members": list(MEMBERS)}]
    if part == "batch":
        return [curve | {"batch": list(BATCHES)}]
    return [curve | {"hidden": [f"{width},{width}" for width in WIDTHS]}]


def measure(configuration: Configuration, seconds: float) -> list[dict]:
    command = [sys.executable, str(HERE / "population.py"), "--seconds", str(seconds)]
    for name, values in configuration.items():
        command += [f"--{name}", *map(str, values)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        subprocess.run([*command, "--json", str(file)], env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
        return read(file)


def peer(python: str, compiled: bool, seconds: float) -> list[dict]:
    """d3rlpy's steps per second on the GPU, one run at a time as it trains; nothing if it is not installed there."""
    words = ["cuda"] + (["compile"] if compiled else [])
    limit = 240.0 if compiled else 120.0
    counts = [20, max(20, int(50 * seconds)), max(20, int(50 * seconds))]  # the first warms up
    try:
        done = subprocess.run(
            [python, str(HERE / "worker_d3rlpy.py"), *words],
            input="".join(f"step {count}\n" for count in counts),
            capture_output=True, text=True, timeout=limit, env=os.environ | {"OMP_NUM_THREADS": "8"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"d3rlpy{' compiled' if compiled else ''}: not measured, it took longer than {limit:.0f} s", flush=True)
        return []
    if done.returncode != 0:
        print(f"d3rlpy: not measured ({done.stderr.strip().splitlines()[-1]})", flush=True)
        return []
    about, _, *timed = [json.loads(line) for line in done.stdout.splitlines()]
    rate = max(count / answer["seconds"] for count, answer in zip(counts[1:], timed, strict=True))
    row = {"peer": "d3rlpy", "compiled": about["compiled"], "steps_per_s": rate, "versions": about}
    print(f"d3rlpy {about['d3rlpy']}{' compiled' if compiled else ''}: {rate:,.0f} steps/s", flush=True)
    return [row]


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def known(rows: list[dict], configuration: Configuration) -> bool:
    """Whether the file holds every measurement of a configuration."""
    names = ["phase" if name == "phases" else name for name in configuration]
    mine = {tuple(row.get(name) for name in names) for row in rows}
    return mine >= set(itertools.product(*configuration.values()))


def draw(rows: list[dict], path: Path) -> None:
    """Run-steps per second and memory against members, batch and width."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.8), layout="constrained")
    axes = figure.subplots(1, 4)
    fast = [
        row for row in rows if row.get("phase") == "joint" and row["kernel"] == "auto" and row["precision"] == "mixed"
    ]

    def line(axis, chosen: list[dict], x, y, labels: tuple[str, str]) -> None:
        points = sorted({x(row): y(row) for row in chosen}.items())
        places, values = zip(*points, strict=True)
        axis.plot(places, values, marker="o")
        axis.set(xlabel=labels[0], ylabel=labels[1], xscale="log", ylim=(0.0, 1.1 * max(values)))
        axis.set_xticks(places, [str(place) for place in places])
        axis.minorticks_off()
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.grid(alpha=0.3)

    two = [row for row in fast if row["hidden"] == "256,256"]
    members = [row for row in two if row["batch"] == 256]
    rate = lambda row: row["run_steps_per_s"]  # noqa: E731
    line(axes[0], members, lambda row: row["members"], rate, ("members", "run-steps/s"))
    line(axes[1], [r for r in two if r["members"] == 18], lambda r: r["batch"], rate, ("batch", "run-steps/s"))
    widths = [r for r in fast if r["members"] == 18 and r["batch"] == 256 and len(set(r["hidden"].split(","))) == 1]
    widths = [r for r in widths if r["hidden"].count(",") == 1]
    line(axes[2], widths, lambda r: int(r["hidden"].split(",")[0]), rate, ("width of two layers", "run-steps/s"))
    per_member = lambda row: row["peak"] / row["members"] / 2**20  # noqa: E731
    line(axes[3], members, lambda row: row["members"], per_member, ("members", "peak MiB a member"))
    figure.suptitle(f"SA-CQL, mixed, fused kernel, {fast[0]['device']}")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", nargs="+", default=list(PARTS[:-1]), choices=PARTS)
    parser.add_argument("--peer", default=sys.executable, help="Python that has d3rlpy, for --part peers")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each timed stretch")
    parser.add_argument("--figure", type=Path, help="draw what the file holds instead of measuring")
    options = parser.parse_args()
    if options.figure:
        draw(read(options.out), options.figure)
        return
    for part in options.part:
        if part == "peers":
            found = [row for compiled in (False, True) for row in peer(options.peer, compiled, options.seconds)]
            keep(options.out, found)
            continue
        for configuration in configurations(part):
            if not known(read(options.out), configuration):
                keep(options.out, measure(configuration, options.seconds))


def keep(path: Path, rows: list[dict]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
