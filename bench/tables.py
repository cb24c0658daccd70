"""The tables of docs/performance.md and docs/benchmarks.md, from the rows in bench/rows: python -m bench.tables"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PHASES = {"base": "CQL", "joint": "SA-CQL"}
LAYERS = {"256,256": "two", "256,256,256": "three"}
PARTS = {
    "large products of the proposals": r"nvjet_sm90_t",
    "small products, TF32 (logged action, targets, actor, the actor's critics)": r"gemm_fusion|xmma_gemm",
    "the kernels `first`, `last`, `back`": r"(first|last|back)$",
    "the ratio's half-precision products and kernels": r"nvjet_sm90_hss|split_weight|\w*_hidden_?$|back_to_inputs_?$",
    "all else: reductions, concatenations, passes over hidden layers, Adam": r"",
}
"""Where a kernel of the profile belongs, by its name: the first pattern that matches."""


def rates() -> list[Mapping[str, Any]]:
    """The measured rates."""
    return [json.loads(line) for line in (HERE / "rows" / "h200-rates.jsonl").read_text(encoding="utf-8").splitlines()]


def rate(members: int, phase: str, hidden: str = "256,256", precision: str = "mixed") -> int | None:
    """Run-steps per second of one configuration, if it was measured."""
    for row in rates():
        if (row["members"], row["phase"], row["hidden"], row["precision"]) == (members, phase, hidden, precision):
            return int(row["run_steps_per_s"])
    return None


def sections() -> dict[str, str]:
    """The marked sections of both pages."""
    return of_gpu() | of_cpu()


def of_gpu() -> dict[str, str]:
    """Those of performance.md."""
    return {"rates": rates_table(), "kernels": kernels_table(), "traffic": traffic_table()}


def of_cpu() -> dict[str, str]:
    """Those of benchmarks.md."""
    return {"d3rlpy": d3rlpy_table(), "products": products_sentence(), "start": start_table()}


def rates_table() -> str:
    """Run-steps per second by members, layers and precision."""
    keys = dict.fromkeys((row["members"], row["hidden"], row["precision"]) for row in rates())
    lines = []
    for members, hidden, precision in sorted(keys, reverse=True):
        base, joint = (rate(members, phase, hidden, precision) for phase in PHASES)
        cost = f"{base / joint:.2f} ×" if base and joint else ""
        lines.append(
            [str(members), LAYERS[hidden], precision, *(f"{each:,}" if each else "" for each in (base, joint)), cost]
        )
    head = ("members", "layers of 256", "precision", *PHASES.values(), "SA-CQL's cost")
    caption = "Run-steps per second on one H200, batch 256, 17 observations, 6 actions."
    return table("Rates", caption, head, lines).markdown().strip()


def kernels_table() -> str:
    """Microseconds per run-step of SA-CQL by part, summed from the profiler's kernels."""
    files = {"54 members, two layers": "54-two-layers", "24 members, three layers": "24-three-layers"}
    sums = {}
    for title, name in files.items():
        text = (HERE / "rows" / f"h200-kernels-{name}.txt").read_text(encoding="utf-8")
        parts = dict.fromkeys(PARTS, 0.0)
        for micros, kernel in re.findall(r"(?m)^\s+([\d.]+) us\s+[\d.]+ per step\s+(.+)$", text):
            parts[next(part for part, pattern in PARTS.items() if re.match(pattern, kernel.strip()))] += float(micros)
        sums[title] = parts
    lines = [[part, *(f"{sums[title][part]:.1f}" for title in sums)] for part in PARTS]
    lines.append(["all kernels", *(f"{sum(each.values()):.1f}" for each in sums.values())])
    caption = "Microseconds per run-step of SA-CQL in `mixed`, by the profiler, kernels one by one."
    return table("Where the time goes", caption, ("part", *sums), lines).markdown().strip()


def traffic_table() -> str:
    """Launches and bytes of a step of SA-CQL by the way in which its critics' gradient is computed."""
    rows = [json.loads(line) for line in (HERE / "rows" / "h200-traffic.jsonl").read_text("utf-8").splitlines()]
    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    lines: dict[str, list[str]] = {}
    for row in rows:
        line = lines.setdefault(f"{row['members']} members, {LAYERS[row['hidden']]} layers", [])
        line.append(f"{row['bytes'] / 1e9:.1f} ({row['launches']})")
    caption = "GB (launches) of a step of SA-CQL in `mixed`, by `kernel`."
    head = ("", *(f"`{kernel}`" for kernel in kernels))
    return table("Traffic", caption, head, [[name, *cells] for name, cells in lines.items()]).markdown().strip()


def d3rlpy_table() -> str:
    """Steps per second and memory of both libraries on two cores."""
    found = json.loads((HERE / "rows" / "cpu-d3rlpy.json").read_text(encoding="utf-8"))
    lines = []
    for name in ("sapp CQL", "sapp SA-CQL", "d3rlpy CQL"):
        row = found["results"]["turns"][name]
        middle, low, high = row["ms"]
        lines.append([name, f"{1e3 / middle:.1f}", f"{low:.1f} to {high:.1f}", f"{row['memory']:.0f}"])
    (speed, *spread), (cost, *_) = found["speed"], found["cost"]
    head = ("", "steps per second", "ms per step, rounds", "peak MiB")
    caption = (
        f"{found['results']['kept']} quiet rounds. CQL is {speed:.2f} times as fast as d3rlpy's "
        f"({spread[0]:.2f} to {spread[1]:.2f}); SA-CQL takes {cost:.2f} times as long as CQL."
    )
    return table("Two cores", caption, head, lines).markdown().strip()


def products_sentence() -> str:
    """How much of a step its matrix products take."""
    rows = [json.loads(line) for line in (HERE / "rows" / "cpu-floor.jsonl").read_text("utf-8").splitlines()]
    shares: dict[str, list[str]] = {}
    for row in rows:
        layers = LAYERS[",".join(map(str, row["hidden"]))]
        shares.setdefault(layers, []).append(f"{100 * row['share']:.0f} % ({row['algorithm']})")
    told = (f"{' and '.join(each)} with {layers} layers" for layers, each in shares.items())
    return f"Products alone take this much of a step's time: {'; '.join(told)}."


def start_table() -> str:
    """From the command to the first step, without compiled programs and with them: medians of some starts."""
    rows = [json.loads(line) for line in (HERE / "rows" / "cpu-first-step.jsonl").read_text("utf-8").splitlines()]
    kinds = {"first": "nothing compiled before", "second": "programs of an earlier start"}
    lines = []
    for start, name in kinds.items():
        own = [row for row in rows if row["start"] == start]
        least, most = (pick(row["seconds"] for row in own) for pick in (min, max))
        cpu, others, memory = (statistics.median(row[key] for row in own) for key in ("cpu", "others", "memory"))
        lines.append([name, f"{least:.1f} to {most:.1f}", f"{cpu:.1f}", f"{others:.1f}", f"{memory:.0f}"])
    head = ("", "seconds", "of the CPU", "cores others used", "peak MiB")
    caption = f"`sapp train cql` with its default sizes on two cores; {len(rows) // len(kinds)} starts of each kind."
    return table("To the first step", caption, head, lines).markdown().strip()


if __name__ == "__main__":
    write_sections(DOCS / "performance.md", of_gpu())
    write_sections(DOCS / "benchmarks.md", of_cpu())
