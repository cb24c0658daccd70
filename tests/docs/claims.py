"""Fragments of pages that hold results, made from committed rows; each must stand on its page word for word."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from populations import POPULATIONS
from scipy.stats import t

from bench.tables import PHASES, rate
from sapp.core.statistics import student
from sapp.ope.calibration import NETWORKS
from sapp.ope.diagnostics import Limits, Verdict
from sapp.report.sources import read
from studies.arithmetic.arithmetic import agreement, read_rows
from studies.baselines import tables as baselines
from studies.benchmark_data import table as eighteen
from studies.benchmark_data.levels import D4RL_RETURNS, d4rl_return
from studies.ope import coverage
from studies.ope.rows import read as read_estimates
from studies.physics.tables import rows as replayed
from studies.state_ratios.page import SHIFTS
from studies.state_ratios.page import cell as of_seeds
from studies.state_ratios.page import rows as ratios

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
Claims = Callable[[], Iterator[str]]
CLAIMS: dict[str, Claims] = {}
"""By page."""


def claims_of(page: str) -> Callable[[Claims], Claims]:
    """Register a function that makes a page's fragments."""

    def register(made: Claims) -> Claims:
        CLAIMS[page] = made
        return made

    return register


def cpu_seconds(beginning: str) -> float:
    """What a command took on all cores together, start included: the most of those that begin so."""
    lines = (ROOT / "bench" / "rows" / "commands.jsonl").read_text(encoding="utf-8").splitlines()
    return max(row["cpu_seconds"] for row in map(json.loads, lines) if row["command"].startswith(beginning))


@claims_of("docs/experiments.md")
def experiments() -> Iterator[str]:
    """How often Student's interval of three to ten seeds holds the mean where some collapse, by simulation."""
    population, held = POPULATIONS["collapse"], []
    for count in range(3, 11):
        seeds = population.draw(np.random.default_rng(count), (100_000, count))
        half = t.ppf(0.975, count - 1) * seeds.std(1, ddof=1) / count**0.5
        held.append(float(np.mean(np.abs(seeds.mean(1) - population.mean) <= half)))
    yield f"covers only {100 * min(held):.0f} to {100 * max(held):.0f} %"


@claims_of("docs/offline-evaluation.md")
def offline_evaluation() -> Iterator[str]:
    """Where trust ends, and how much wider intervals are."""
    limits = Limits()
    for low, high in (limits.off_data, limits.outside):
        yield f"| {100 * low:.0f} % | {100 * high:.0f} % |"
    yield f"are made {NETWORKS:g} times as wide"


@claims_of("docs/datasets.md")
def datasets() -> Iterator[str]:
    """How long a dataset takes, from a tenth of it."""
    assert 60 < 10 * cpu_seconds("sapp data make") < 240, "of two cores"
    yield "D4RL's size: a minute or two on two cores"
    yield "a minute or two per million transitions on two cores"


@claims_of("docs/theory.md")
def theory() -> Iterator[str]:
    """How long the audit takes."""
    yield f"about {round(cpu_seconds('sapp theory audit'), -1)} s of one core"


@claims_of("README.md")
def readme() -> Iterator[str]:
    """Rates on a GPU, and final scores beside the published ones."""
    yield "| one H200 | one run | 54 runs |"
    for phase, name in PHASES.items():
        yield f"sapp, {name} | {rate(1, phase):,} | {rate(54, phase):,}"
    lines = (ROOT / "bench" / "rows" / "h200-peers.jsonl").read_text(encoding="utf-8").splitlines()
    plain, compiled = (row["run_steps_per_s"] for row in map(json.loads, lines))
    yield f"compiled | {plain:g}; {compiled:g}"
    made = baselines.scores()
    for name in ("TD3+BC", "IQL", "ReBRAC"):
        method, run = baselines.METHODS[name]
        cells = []
        for dataset, published in zip(baselines.DATASETS, baselines.PUBLISHED[name][1:], strict=True):
            found = baselines.of(made, method, run, dataset)
            cells.append(f"{student(list(found[max(found)].values())).value:.1f} ({published})")
        yield " | ".join(cells)


    assert cpu_seconds("sapp demo") < 180, "of one core, then"
    yield "draws the picture above in under three minutes"
    exact = STUDIES / "uneven_coverage" / "rows" / "exact-uneven-coverage.json"
    lost = {row["variant"]: row["lost"] for row in json.loads(exact.read_text(encoding="utf-8"))["rows"]}
    yield f"takes {100 * (1 - lost['SA-CQL, w'] / lost['CQL']):.0f} % off the loss of the best constant penalty"


@claims_of("docs/performance.md")
def performance() -> Iterator[str]:
    """Work and memory that follow from sizes: two critics on (17 + 6) inputs, two layers of 256, batch 256."""
    layers = (23 * 256, 256 * 256, 256)
    scored = 2 * 256 * 30
    passes = 2 * sum(layers) + sum(layers[1:])  # forward, gradients of weights, gradients of inputs but the first
    yield f"are {2 * scored * passes / 1e9:.1f} GFLOP"
    yield f"is {2 * 256 * 32:,} rows × 256"
    yield f"{2 * (256 * 10 * 100) * 256 * 4 / 1e9:.1f} GB of hidden units"
    yield f"per state are {2 * (2 * 256 * 10 * 100) * layers[1] / 1e9:.0f} GFLOP per step"


def met(name: str) -> list[bool]:
    """Whether a baseline's final scores are within 4 points of those printed, by dataset."""
    made = baselines.scores()
    found = [baselines.of(made, *baselines.METHODS[name], dataset) for dataset in baselines.DATASETS]
    scores = [np.mean(list(each[max(each)].values())) for each in found]
    return [abs(ours - float(theirs)) < 4 for ours, theirs in zip(scores, baselines.PUBLISHED[name][1:], strict=True)]


@claims_of("studies/README.md")
def answers() -> Iterator[str]:
    """How many baselines reach their published scores."""
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    reached = sum(all(met(name)) for name in baselines.PUBLISHED)
    yield f"{words[reached]} of {words[len(baselines.PUBLISHED)]} do on all three datasets, within 4 points"


@claims_of("studies/arithmetic/README.md")
def arithmetic() -> Iterator[str]:
    """What became of the float16 kernel."""
    rows = read_rows(STUDIES / "arithmetic" / "rows.csv")
    late = [each.td[1] / each.td[0] for each in agreement(rows, "tf32", "float16")]
    yield f"TD errors were {min(late):.0f} to {max(late):.0f} times TF32's"
    for dataset in {row.dataset for row in rows}:
        early = [
            np.mean([r.td for r in rows if (r.dataset, r.precision) == (dataset, name) and r.step <= 100_000])
            for name in ("tf32", "float16")
        ]
        assert abs(early[1] / early[0] - 1) < 0.2, "for the first third they agree"


@claims_of("studies/atari/README.md")
def atari() -> Iterator[str]:
    """Where Pong's fork was stopped, after as many plain updates."""
    with open(STUDIES / "atari" / "rows" / "curves.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["game"], row["column"]) == ("Pong", "SA-CQL")]
    yield f"at {max(int(row['updates']) for row in rows) - 10_000:,} joint updates"


@claims_of("studies/benchmark_data/README.md")
def benchmark_data() -> Iterator[str]:
    """How far mean returns are from published ones."""
    rows = eighteen.read(STUDIES / "benchmark_data" / "rows" / "datasets.csv")
    apart = [abs(rows[name]["return_mean"] / d4rl_return(name) - 1) for name in rows if name in D4RL_RETURNS]
    yield f"within {100 * max(apart):.1f} % of D4RL's wherever D4RL's is published"


def steps_of(study: str, variants: Sequence[str]) -> list[int]:
    """The last joint steps of variants."""
    (experiment,) = read([STUDIES / study / "rows" / "scores.csv"])
    found = (max(max(m.evaluations) for m in experiment.members if m.variant == name) for name in variants)
    return sorted(set(found))


@claims_of("studies/six_datasets/README.md")
def six_datasets() -> Iterator[str]:
    """Its length."""
    (last,) = steps_of("six_datasets", ("CQL", "SA-CQL", "shuffled", "matched", "random"))
    yield f"then {last:,} of both"


@claims_of("studies/skewed_coverage/README.md")
def skewed_coverage() -> Iterator[str]:
    """Its length, and its members."""
    short, long = steps_of("skewed_coverage", ("occupancy", "dualdice", "infonce"))
    (experiment,) = read([STUDIES / "skewed_coverage" / "rows" / "scores.csv"])
    yield f"{short:,} to {long:,} joint steps"
    yield f"at {long:,} joint steps (TD-InfoNCE: {short:,})"
    yield f"All {len(experiment.members)} members"


@claims_of("studies/ope/README.md")
def ope() -> Iterator[str]:
    """How often plain intervals hold the truth, how often estimates are trusted, and where DualDICE was."""
    rows = read_estimates(STUDIES / "ope" / "rows" / "control")
    tests = [row for row in rows if coverage.problem_of(row) not in coverage.SET_ON]
    kept = {
        (row["problem"], row["policy"], row["draw"])
        for row, _, verdict in coverage.quoted(tests)
        if verdict is not Verdict.REFUSED and row["exact"] != "True"
    }
    plain = [
        coverage.holds(row, interval)
        for row, interval, _ in coverage.quoted(tests, 1.0)
        if (row["problem"], row["policy"], row["draw"]) in kept
    ]
    yield f"in {sum(plain)} of {len(plain)} cases"
    verdicts = [v for row, _, v in coverage.quoted(rows) if coverage.problem_of(row) in coverage.KINDS["locomotion"]]
    yield f"only {sum(v is Verdict.TRUSTED for v in verdicts)} of {len(verdicts)} estimates get this verdict"
    assert len(verdicts) == 16
    yield "the shares for locomotion rest on sixteen estimates"
    named = ("CartPole", "Acrobot", "InvertedPendulum")
    shares = [
        row["estimate"] / row["truth"]
        for row in rows
        if (row["estimator"], row["policy"]) == ("dice", "behaviour") and coverage.problem_of(row) in named
    ]
    yield f"({min(shares):.2f} to {max(shares):.2f} of the true value on CartPole, Acrobot and InvertedPendulum"


@claims_of("studies/physics/README.md")
def physics() -> Iterator[str]:
    """What the same rows are off by without the restored physics; no end of an episode differs with it."""
    plain = [float(row["median"]) for row in replayed() if row["physics"] == "v4"]
    yield f"off by {min(plain):.2f} to {max(plain):.2f} in the median"
    assert all(row["terminals"] == "0" for row in replayed() if row["physics"] == "d4rl")


@claims_of("studies/state_ratios/README.md")
def state_ratios() -> Iterator[str]:
    """Rank correlations over problems and distances, of the one-step model and of DualDICE's regression."""
    made = ratios()

    def ends(estimator: str, problems: Sequence[str]) -> str:
        means = [np.mean(of_seeds(made, p, estimator, shift, "spearman")) for p in problems for shift in SHIFTS]
        return f"{min(means):.2f} to {max(means):.2f}".replace("-", "−")

    yield f"(mean rank correlations of {ends('now', ('corridors', 'pendulum', 'halfcheetah'))})"
    yield f"DualDICE, on two, has {ends('dualdice regression', ('corridors', 'pendulum'))}"
    near, far = (np.mean(of_seeds(made, "corridors", "dualdice ζ", shift, "largest")) for shift in (0.0, 4.0))
    assert far > 1000 * near, "its values explode"


@claims_of("docs/guides/own-logs.md")
def own_logs() -> Iterator[str]:
    """How long a stranger's log takes to become a policy, and what that returns."""
    row = json.loads((ROOT / "bench" / "rows" / "strangers-log.json").read_text(encoding="utf-8"))
    train, select = (int(row["parts"][name]) for name in ("train", "select"))
    yield f"{int(row['seconds'])} seconds in all on two\ncores (training {train}, estimates {select})"
    yield f"return was −{-row['logs_return']}; the chosen policy's, −{-row['policy_return']}"
