"""How near the truth are estimated state ratios?

    python -m studies.state_ratios --policy POLICY --out runs/state-ratios --limit 1500
    python -m studies.state_ratios --out runs/state-ratios --cost 54

Problems (``problems``) × shifts k × seeds × estimators. While an estimator learns, the policy
moves from k = 0 to its shift over the first half of the steps, then stays. Then, over logged states: the Spearman
correlation of estimated and true log-ratios; the correlation of the log-min–max weights made of them, in batches of
256; the error of the value E_D[w·r]/E_D[w] in standard deviations of the data's rewards; the largest |ν| or |log ratio|
seen on the way; seconds per step and learner. The truth is counted in small cells of the state space,
exact (``finite``), or, where neither can be had (HalfCheetah), the mean of two classifiers between many true samples of
policy and behaviour, each on its own half of them; how well the two rank alike is printed, since no estimate can agree
with the truth better than the truth with itself. ``ceiling`` is what the estimators' own classifier makes of other true
samples in as many steps.

All learners of a problem and estimator train as one program. Results are written after each such group, and called
again with the same ``--out`` the study goes on where it stopped; ``--limit`` ends it in time.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

from sapp.core.files import write_text
from sapp.core.precision import Precision
from studies.state_ratios.costs import costs
from studies.state_ratios.estimates import ceiling, train
from studies.state_ratios.judging import Row, tables
from studies.state_ratios.problems import NAMES, make_problem
from studies.state_ratios.truth import NOISES, SMALL, Scale, ground

SHIFTS = (0.0, 1.0, 2.0, 4.0)
ESTIMATORS = ("ceiling", "dualdice", "occupancy", "unpaired", "infonce")

def load(folder: Path) -> list[Row]:
    """Results so far."""
    file = folder / "state-ratios.json"
    if not file.exists():
        return []
    return [Row(**row) for row in json.loads(file.read_text(encoding="utf-8"))["rows"]]


def save(folder: Path, rows: Sequence[Row], scale: Scale) -> None:
    """JSON, CSV and the table, whole or not at all."""
    content = {"scale": asdict(scale), "rows": [asdict(row) for row in rows]}
    write_text(folder / "state-ratios.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Row.__dataclass_fields__))
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    write_text(folder / "state-ratios.csv", text.getvalue())

def bench(
    problems: Sequence[str], groups: Sequence[str], shifts: Sequence[float], scale: Scale, out: Path,
    policy: Path | None = None, limit: float = float("inf"),
) -> list[Row]:  # fmt: skip
    """Everything that is not in ``out`` yet, until the time is up."""
    deadline, rows = time.monotonic() + limit, load(out)
    for name in problems:
        done = {row.estimator.split(",")[0].split(" ")[0] for row in rows if row.problem == name}
        missing = [group for group in groups if group not in done]
        if not missing:
            continue
        if time.monotonic() > deadline:
            break
        problem = make_problem(name, policy)
        began = time.perf_counter()
        at = ground(problem, shifts, scale)
        print(f"{name}: {len(at.data):,} transitions and the truth in {time.perf_counter() - began:.0f} s", flush=True)
        for group in missing:
            began = time.perf_counter()
            found = ceiling(name, at, scale) if group == "ceiling" else train(problem, at, group, scale, deadline)
            if found is None:
                print(f"{name}, {group}: out of time, not kept; call again to go on", flush=True)
                return rows
            rows = [*rows, *found]
            save(out, rows, scale)
            print(f"{name}, {group}: {time.perf_counter() - began:.0f} s", flush=True)
    return rows

def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policy", type=Path, help="file of D4RL's halfcheetah policy (default: a random linear one)")
    parser.add_argument("--problems", nargs="*", default=NAMES, choices=NAMES)
    parser.add_argument("--estimators", nargs="+", default=ESTIMATORS, choices=ESTIMATORS)
    parser.add_argument("--shifts", nargs="+", type=float, default=SHIFTS)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--noises", type=float, nargs="+", choices=tuple(NOISES), help="of the model (default: all)")
    parser.add_argument("--small", action="store_true", help="a few steps of tiny networks, to see that it runs")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--cost", type=int, default=0, metavar="MEMBERS", help="time CQL with each estimator instead")
    parser.add_argument("--precision", default="auto", choices=get_args(Precision), help="of CQL, for --cost")
    options = parser.parse_args(arguments)
    if options.cost:
        timed = costs(options.cost, 20 if options.small else 300, options.precision)
        write_text(options.out / f"cost-{options.cost}.json", json.dumps(timed, indent=1) + "\n")
        print("\n".join(f"{row['column']:10s} {1e3 * row['seconds']:8.3f} ms  {row['times CQL']:.2f}" for row in timed))
        return
    given = {name: getattr(options, name) for name in ("steps", "seeds", "noises")}
    changes: dict[str, Any] = {
        name: tuple(value) if name == "noises" else value for name, value in given.items() if value is not None
    }
    scale = replace(SMALL if options.small else Scale(), **changes)
    rows = bench(
        options.problems, options.estimators, options.shifts, scale, options.out, options.policy, options.limit
    )
    print_tables(rows)


def print_tables(rows: Sequence[Row]) -> None:
    """The tables as Markdown."""
    print("\n".join(table.markdown() for table in tables(rows)))


if __name__ == "__main__":
    main()
