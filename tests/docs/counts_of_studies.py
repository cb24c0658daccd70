"""Fragments of the studies' pages that count what rows and scripts have."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from counts import ROOT, counts_of, csv_rows, word

from sapp.algorithms import CQL
from sapp.data.benchmark_names import NAMES
from sapp.report.sources import read
from sapp.runs.phases import sa_protocol
from sapp.tabular.divergence import DIVERGENCES
from sapp.tabular.uneven_coverage import CASES
from sapp.theory.audit import ALPHAS
from sapp.theory.chain_tuned import GRID, SHARES
from sapp.theory.families import FAMILIES, REDRAWN
from studies.baselines import tables as baselines
from studies.ope.rows import read as estimates
from studies.physics.tables import rows as replayed
from studies.state_ratios.page import SHIFTS, cell
from studies.state_ratios.page import rows as ratios
from studies.table1.part import SHUFFLED


@counts_of("studies/physics/README.md")
def physics_study() -> Iterator[str]:
    """As its page says."""
    files = {row["file"] for row in replayed()}
    (rows,) = {int(row["rows"]) for row in replayed() if row["file"].startswith("halfcheetah")}
    yield f"the first {word(rows // 1000)} episodes of {word(len(files))} genuine D4RL files"
    yield f"D4RL's files of the {word(len({name.split('_')[0] for name in files}))} environments"


@counts_of("studies/state_ratios/README.md")
def state_ratios() -> Iterator[str]:
    """Problems of each estimator, how far policies were shifted, seeds, and the sizes of tests' problems."""
    made = ratios()
    problems = [{row["problem"] for row in made if row["estimator"] == name} for name in ("now", "dualdice regression")]
    near = [{row["problem"] for row in made if row["problem"] in each} & {"corridors", "pendulum", "halfcheetah"}
            for each in problems]  # fmt: skip
    yield f"ranks logged states on {word(len(near[0]))} problems"
    yield f"up to {word(max(SHIFTS))} standard deviations away"
    yield f"DualDICE, on {word(len(near[1]))}, has"
    yield f"k = {', '.join(f'{each:g}' for each in SHIFTS[:-1])} or {SHIFTS[-1]:g} of the behaviour's"
    seeds = {len(cell(made, name, "now", shift, "spearman")) for name in near[0] for shift in SHIFTS}
    assert len(seeds) == 1
    yield f"γ = 0.99, {word(*seeds)} seeds."


@counts_of("studies/sepsis/README.md")
def sepsis() -> Iterator[str]:
    """Logs and grids of either divergence."""
    found = {}
    for name in ("kl", "cql"):
        rows = csv_rows(f"sepsis/rows/{name}.csv")
        tuning = [row for row in rows if row["role"] == "tuning"]
        grid = sorted({float(row["alpha"]) for row in tuning if row["method"] == "pp"})
        counts = sorted({float(row["alpha"]) for row in tuning if row["method"] == "count"})
        assert counts == pytest.approx([10 * alpha for alpha in grid])
        logs = ({row["draw"] for row in rows if (row["role"] == "tuning") == first} for first in (True, False))
        found[name] = (*map(len, logs), grid)
    tasks = (ROOT / "tests" / "tabular" / "test_tasks.py").read_text(encoding="utf-8")
    states, doses = re.findall(r"transition\.shape == \((\d+), (\d+),", tasks)[0]
    yield f"{states} states, {doses} doses"
    tune, judge, grid = found["kl"]
    yield f"over {tune} tuning logs of each size. The table covers {judge} other logs"
    assert (grid[0], grid[-1]) == (1e-3, 1.0)
    yield f"The grid has {len(grid)} values from 10⁻³ to 1 (for counts, ten times as large)"
    tune, judge, grid = found["cql"]
    yield f"({tune} to tune, {judge} to evaluate)"
    assert (grid[0], grid[-1]) == (1e-4, 0.03)
    yield f"({word(len(grid))} values of α from 10⁻⁴ to 0.03)"


@counts_of("studies/theory/README.md")
def theory() -> Iterator[str]:
    """Families in which the theorems on upper bounds say something, and what was varied."""
    rows = csv_rows("theory/rows/audit.csv")
    says = {
        row["family"]
        for row in rows
        if re.fullmatch(r"theorem[1357]-repaired", row["statement"])
        and int(row["informative"]) >= 0.02 * int(row["checked"])
    }
    yield f"except in {word(len(says))} families built to avoid this"
    families = {row["family"] for row in rows}
    assert families == set(FAMILIES)
    yield f"# every statement over {word(len(families))} families"
    yield f"There are {word(len(families))} families"
    yield f"{word(len(REDRAWN))} single MDPs, *{REDRAWN[0]}* and *{REDRAWN[1]}*"
    yield f"{word(len(DIVERGENCES))} divergences, {word(len(ALPHAS))} values of α, two of γ"
    yield f"in {100 * SHARES[0]:g} to {100 * SHARES[1]:g} % of its trajectories"
    yield f"α is 0 or one of {len(GRID) - 1} values between 10⁻³ and 100"


@counts_of("studies/README.md")
def answers() -> Iterator[str]:
    """The short answers' own."""
    (six,) = read([ROOT / "studies" / "six_datasets" / "rows" / "scores.csv"])
    yield f"on one of {word(len(six.datasets))} datasets"
    yield f"do on all {word(len(baselines.DATASETS))} datasets, within 4 points; state-aware weights add little"


@counts_of("studies/uneven_coverage/README.md")
def uneven() -> Iterator[str]:
    """The worlds' episodes."""
    yield f"Every episode of a {word(CASES['uneven coverage'].length)} steps begins"


@counts_of("studies/atari/README.md")
def atari() -> Iterator[str]:
    """Logs as the command beside makes them; evaluations as the grid has them."""
    text = (ROOT / "studies" / "atari" / "README.md").read_text(encoding="utf-8")
    (shares,) = set(re.findall(r"--epsilon ([\d.,]+)", text))
    *some, last = [f"{100 * float(share):g}" for share in shares.split(",")]
    yield f"{word(len(some) + 1)} quarters of the steps have {', '.join(some)} and {last} % random actions"
    grid = (ROOT / "studies" / "atari" / "grid.py").read_text(encoding="utf-8")
    (episodes,) = re.findall(r"eval_episodes=(\d+)", grid)
    yield f"Evaluations have {word(int(episodes))} episodes"


@counts_of("studies/skewed_coverage/README.md")
def skewed() -> Iterator[str]:
    """What was trained."""
    (found,) = read([ROOT / "studies" / "skewed_coverage" / "rows" / "scores.csv"])
    seeds = len({each.seed for each in found.members})
    yield f"({word(len(found.datasets))} datasets, {word(seeds)} seeds,"
    yield f"on four of the {word(len(found.datasets))} datasets"


@counts_of("studies/ope/README.md")
def ope() -> Iterator[str]:
    """Policies around each controller, and those of the earlier run."""
    rows = estimates(ROOT / "studies" / "ope" / "rows" / "control")
    (each,) = {len({row["policy"] for row in rows if row["problem"] == name}) for name in {r["problem"] for r in rows}}
    yield f"a family of {word(each)} policies"
    (bags,) = re.findall(r'"bags": (\d+)', (ROOT / "studies" / "ope" / "control.py").read_text(encoding="utf-8"))
    yield f"steps (point: 1,500) and {word(int(bags))} bags"


@counts_of("studies/table1/README.md")
def controls() -> Iterator[str]:
    """Where the shuffled control is run."""
    yield f"it is run on {word(sum(map(len, SHUFFLED)))} datasets"
    yield f"# The paper's Table 1: {word(len(NAMES))} datasets"


@counts_of("studies/benchmark_data/README.md")
def datasets() -> Iterator[str]:
    """How many there are."""
    yield f"The {word(len(NAMES))} datasets made with the shipped policies"
    yield f"# the {word(len(NAMES))} datasets on this machine"


@counts_of("studies/medium_datasets/README.md")
def medium() -> Iterator[str]:
    """The presets' networks and protocol."""
    own = CQL()
    yield f"Networks have {word(len(own.hidden))} layers of {own.hidden[0]}; batch size {own.batch_size}"
    first, ratio, _ = (phase.steps for phase in sa_protocol())
    yield f"({first:,} + {ratio:,} + joint steps)"
