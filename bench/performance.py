"""The speed table, the scaling curves and the memory of docs/performance.md, for the machine this runs on.

    python bench/performance.py --out performance.jsonl            # about ten minutes on a GPU; --part to choose
    python bench/performance.py --out performance.jsonl --figure docs/images/performance.png

Every measurement is a process of its own, so that peak memory is its own; compiled programs are cached between them.
Lines already in the file are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FAST = {"precision": "bf16", "kernel": "auto"}
MEMBERS, BATCHES, WIDTHS = (1, 2, 6, 18, 54, 108), (64, 128, 256, 512, 1024), (64, 128, 256, 512)


def configurations(part: str) -> list[dict[str, object]]:
    """What each part of the page needs; the paper's table first."""
    both = ["base", "joint"]
    if part == "table":
        found: list[dict[str, object]] = []
        for hidden in ("256,256", "256,256,256"):
            found += [{**FAST, "hidden": hidden, "members": 54, "phases": both}]
            found += [{**FAST, "hidden": hidden, "members": 1, "phases": both}]
            found += [{"precision": "bf16", "kernel": "xla", "hidden": hidden, "members": 54, "phases": both}]
            found += [{"precision": "tf32", "kernel": "xla", "hidden": hidden, "members": 54, "phases": ["base"]}]
        return found
    if part == "members":
        return [{**FAST, "hidden": "256,256", "members": count, "phases": ["joint"]} for count in MEMBERS]
    if part == "batch":
        return [{**FAST, "hidden": "256,256", "members": 18, "batch": size, "phases": ["joint"]} for size in BATCHES]
    return [{**FAST, "hidden": f"{width},{width}", "members": 18, "phases": ["joint"]} for width in WIDTHS]


def measure(configuration: dict[str, object], seconds: float) -> list[dict[str, object]]:
    command = [sys.executable, str(HERE / "population.py"), "--seconds", str(seconds)]
    for name, value in configuration.items():
        command += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        subprocess.run([*command, "--json", str(file)], env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def known(rows: list[dict], configuration: dict[str, object]) -> bool:
    wanted = {"batch": 256} | {name: value for name, value in configuration.items() if name != "phases"}
    phases = configuration["phases"]
    assert isinstance(phases, list)
    mine = {row["phase"] for row in rows if all(row[name] == value for name, value in wanted.items())}
    return mine >= set(phases)


def draw(rows: list[dict], path: Path) -> None:
    """Run-steps a second and memory against members, batch and width."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.8), layout="constrained")
    axes = figure.subplots(1, 4)
    fast = [row for row in rows if row["phase"] == "joint" and row["kernel"] == "auto" and row["precision"] == "bf16"]

    def line(axis, chosen: list[dict], x, y, labels: tuple[str, str]) -> None:
        points = sorted((x(row), y(row)) for row in chosen)
        axis.plot(*zip(*points, strict=True), marker="o")
        axis.set(xlabel=labels[0], ylabel=labels[1], xscale="log", yscale="log")

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
    figure.suptitle(f"SA-CQL, bf16, fused kernel, {rows[0]['device']}")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", nargs="+", default=["table", "members", "batch", "width"])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--figure", type=Path, help="draw what the file holds instead of measuring")
    options = parser.parse_args()
    if options.figure:
        draw(read(options.out), options.figure)
        return
    for part in options.part:
        for configuration in configurations(part):
            if known(read(options.out), configuration):
                continue
            with options.out.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in measure(configuration, options.seconds))


if __name__ == "__main__":
    main()
