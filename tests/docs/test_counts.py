"""Counts on pages, in words most of them, are those of the code, of the tests and of committed rows.

``test_numbers.py`` finds numbers that may be results; these are small or in words, so each is named here. A page's
fragment is made from what it counts and must stand there word for word, whatever the line breaks.
"""

from __future__ import annotations

import ast
import csv
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from more_formats import FORMATS as MORE_FORMATS
from scenarios import SCENARIOS

from sapp.algorithms import BCQ, BEAR, CQL, EDAC, IQL, UWAC, FisherBRC
from sapp.algorithms.cql import ALPHA_SCALES, STATES_AT_ONCE
from sapp.algorithms.edac import edac, sac_n
from sapp.data import FrameDataset
from sapp.data.benchmark_names import NAMES
from sapp.data.loaders.dqn_replay import save_dqn_replay
from sapp.data.loaders.limits import FREE, RATIO
from sapp.experiments.grid import SCALES, scaled
from sapp.experiments.paper_grids import OTHER_ALPHAS, alpha_sweep, table1
from sapp.ope.diagnostics import Limits
from sapp.report.sources import read
from sapp.runs.phases import sa_protocol
from sapp.runs.plan import SETTINGS
from sapp.tabular.divergence import DIVERGENCES
from sapp.tabular.uneven_coverage import CASES
from sapp.theory.audit import ALPHAS
from sapp.theory.chain_tuned import GRID, SHARES
from sapp.theory.families import FAMILIES, REDRAWN
from sapp.training.population import STRIDE, TOGETHER
from sapp.weights import OccupancyModel
from sapp.weights.registry import ABOUT
from studies.arithmetic.arithmetic import read_rows as arithmetic_rows
from studies.baselines import tables as baselines
from studies.ope.rows import read as estimates
from studies.physics.tables import rows as replayed
from studies.state_ratios.page import SHIFTS, cell
from studies.state_ratios.page import rows as ratios
from studies.table1.part import SHUFFLED

ROOT = Path(__file__).parents[2]
WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
)  # fmt: skip
Fragments = Callable[[], Iterator[str]]
COUNTS: dict[str, Fragments] = {}
"""By page."""


def counts_of(page: str) -> Callable[[Fragments], Fragments]:
    """Register what makes a page's fragments."""

    def register(made: Fragments) -> Fragments:
        COUNTS[page] = made
        return made

    return register


def word(count: float) -> str:
    """A whole number in words."""
    assert count == int(count)
    return {30: "thirty", 50: "fifty", 100: "hundred"}.get(int(count)) or WORDS[int(count)]


def assigned(file: str, name: str) -> ast.expr:
    """What a module of the tests sets a name to, as it is written there."""
    for node in ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            return node.value
    raise AssertionError(f"{file} has no {name}")


def keys(file: str, name: str) -> list[str]:
    """The keys of a dictionary of the tests, without those of dictionaries that it unpacks."""
    return [each.value for each in assigned(file, name).keys if each is not None]


def values(file: str, name: str) -> Any:
    """A literal of the tests."""
    return ast.literal_eval(assigned(file, name))


def of_make(name: str) -> int:
    """A number that the Makefile sets."""
    (found,) = re.findall(rf"(?m)^{name} \?= (\d+)$", (ROOT / "Makefile").read_text(encoding="utf-8"))
    return int(found)


def csv_rows(file: str) -> list[dict[str, str]]:
    """Rows of a study."""
    with open(ROOT / "studies" / file, encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


@counts_of("docs/reliability.md")
def reliability() -> Iterator[str]:
    """How much `make test`, `make fuzz` and `make faults` try."""
    source = (ROOT / "tests" / "fuzz" / "test_fuzz.py").read_text(encoding="utf-8")
    (cases,) = map(int, re.findall(r'"SAPP_FUZZ_CASES", "(\d+)"', source))
    formats = [*keys("fuzz/test_fuzz.py", "FORMATS"), *MORE_FORMATS]
    slow = values("fuzz/test_fuzz.py", "SLOW")
    total = sum(max(1, cases // slow.get(name, 1)) for name in formats)
    rows = [json.loads(line) for line in (ROOT / "bench/rows/reliability.jsonl").read_text().splitlines()]
    assert {row["name"] for row in rows if row["kind"] == "fuzz"} == set(formats)
    yield f"`make test` generates some {round(total, -2)} cases from a seed"
    yield f"`make fuzz` {of_make('FUZZ'):,} of most kinds"
    yield f"`make faults` (`FAULTS={of_make('FAULTS')}`: cases per command, half as many where it trains)"
    quick = word(len(values("faults/test_faults.py", "QUICK")))
    yield f"does this to {len(SCENARIOS)} commands, `make test` to {quick} of them"
    pairs, few = (values("faults/test_races.py", name) for name in ("PAIRS", "FEW"))
    yield f"`make faults` starts {sum(pairs.values())} pairs of processes on the same"
    yield f"`make test` starts {sum(few.values())}."
    hostile = (ROOT / "tests" / "faults" / "test_hostile.py").read_text(encoding="utf-8")
    (times,) = re.findall(r"max\(LEAST, (\d) \* size\)", hostile)
    yield f"{len(keys('faults/test_hostile.py', 'HOSTILE'))} files and folders (`tests/faults/test_hostile.py`)"
    (power,) = re.findall(r"(?m)^LEAST = 1 << (\d+)$", hostile)
    yield f"more than {word(int(times))} times its size (or {2 ** (int(power) - 20)} MiB)"
    yield f"more than {RATIO} times its size (and more than {FREE >> 20} MiB)"
    yield f"(`JAX_DEFAULT_PRNG_IMPL` and {word(len(SETTINGS) - 1)} more)"


@counts_of("README.md")
def readme() -> Iterator[str]:
    """What there is, and how many baselines were trained."""
    estimators = [name for name, about in ABOUT.items() if "state ratio" in about]
    yield f"{word(len(estimators))} estimators of that ratio"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (seeds,) = map(int, re.findall(r'"hopper-medium", seeds=(\d)', text))
    yield f"{word(2 * seeds)} runs train together"
    yield f"its {word(len(NAMES))} locomotion datasets"
    yield f"(two layers of 256, batch size 256, {3 * CQL().action_samples} sampled actions)"
    yield f"Of {word(len(baselines.PUBLISHED))} baselines, these and Fisher-BRC come within four points"
    grid = table1(scaled("paper"))
    steps = {1_000_000: "a million"}[sa_protocol()[-1].steps]
    yield f"main table ({word(len(grid.datasets))} datasets, {steps} steps)"
    (six,) = read([ROOT / "studies" / "six_datasets" / "rows" / "scores.csv"])
    yield f"([{word(len(six.datasets))} datasets](studies/six_datasets/README.md))"


@counts_of("docs/cli.md")
def cli() -> Iterator[str]:
    """Where the device runs many steps at once, and what can be made."""
    yield f"multiples of {STRIDE} steps are fastest"
    yield f"`all` makes all {word(len(NAMES))}."
    yield f"makes {word(3 * 2)} variants per seed"


@counts_of("docs/experiments.md")
def experiments() -> Iterator[str]:
    """Of the grids."""
    assert "small" in SCALES
    yield f"Table 1, {word(len(table1(scaled('paper')).datasets))} datasets"
    yield f"Table 6, {word(len(alpha_sweep(scaled('paper')).datasets))} datasets"
    yield f"CQL at α {', '.join(f'{each:g}' for each in OTHER_ALPHAS[:-1])} and {OTHER_ALPHAS[-1]:g}"
    yield f"medium and random data, 200k steps, {word(len(scaled('small').seeds))} seeds"
    assert scaled("small").steps == 200_000


@counts_of("docs/algorithms/cql.md")
def cql() -> Iterator[str]:
    """The penalty's actions, and the protocol."""
    each = CQL().action_samples
    yield f"{word(each).capitalize()} actions come from π(·|s), {word(each)} from π(·|s')"
    yield f"and {word(each)} are uniform over the action box"
    yield f"log Σ exp over {3 * each} actions of"
    first, ratio, joint = (phase.steps for phase in sa_protocol())
    yield f"{first // 1000}k steps of CQL, {ratio // 1000}k of the ratio alone, {joint // 10**6}M of both"


@counts_of("docs/performance.md")
def performance() -> Iterator[str]:
    """Samples, actions, steps of a graph."""
    yield f"A {word(UWAC().passes)} dropout samples of {word(UWAC().next_actions)} actions per state"
    each = CQL().action_samples
    yield f"{3 * each + 1} scored actions per state ({3 * each} proposals and the logged one)"
    yield f"{word(STRIDE)} steps (`STRIDE`)"


@counts_of("docs/architecture.md")
def architecture() -> Iterator[str]:
    """Steps of a graph, and the programs that share it."""
    yield f"{word(STRIDE)} steps (`STRIDE`) are one iteration"
    yield f"shared by up to {word(TOGETHER)} programs of different shapes"


@counts_of("docs/benchmarks.md")
def benchmarks() -> Iterator[str]:
    """Of CQL's penalty."""
    each = CQL().action_samples
    yield f"{each} actions from each of three sources"
    yield f"products over {3 * each + 1} actions × {CQL().batch_size} states"
    yield f"accumulated over {STATES_AT_ONCE} states at a time"


@counts_of("docs/precision.md")
def precision() -> Iterator[str]:
    """What settings were compared on."""
    rows = arithmetic_rows(ROOT / "studies" / "arithmetic" / "rows.csv")
    yield f"On {word(len({row.dataset for row in rows}))} datasets over {max(row.step for row in rows):,} steps"
    learners = keys("algorithms/test_large_values.py", "LEARNERS")
    yield f"check in every setting that {word(len(learners))} algorithms learn"
    yield f"the penalty's {word(3 * CQL().action_samples)} sampled actions"


@counts_of("docs/algorithms/bear.md")
def bear() -> Iterator[str]:
    """Its draws."""
    yield f"{word(BEAR().mmd_samples)} draws of π, y {word(BEAR().mmd_samples)} of the VAE"


@counts_of("docs/algorithms/edac.md")
def edac_layers() -> Iterator[str]:
    """Its layers."""
    yield f"{word(len(EDAC().hidden)).capitalize()} layers of {EDAC().hidden[0]}, the critics' last layer"


@counts_of("docs/algorithms/fisher-brc.md")
def fisher() -> Iterator[str]:
    """Its mixture."""
    own = FisherBRC()
    yield f"{word(own.components)} tanh-Gaussians"
    yield f"{word(len(own.hidden))} layers of {own.hidden[0]} with orthogonal"


@counts_of("docs/physics.md")
def physics_page() -> Iterator[str]:
    """Which rows were replayed: an episode of HalfCheetah has a thousand steps."""
    (rows,) = {int(row["rows"]) for row in replayed() if row["file"].startswith("halfcheetah")}
    yield f"each recorded state of the first {word(rows // 1000)} episodes of D4RL's files"


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


@counts_of("docs/offline-evaluation.md")
def offline_evaluation() -> Iterator[str]:
    """Every limit of trust."""
    own = Limits()
    yield f"in widths of its interval | {own.drift[0]:g} | {own.drift[1]:g} |"
    yield f"target rate × steps × (1−γ), fewer than | {own.horizons[0]:g} | {own.horizons[1]:g} |"
    yield f"returns from all logged states if that is more | {own.width[0]:g} | {own.width[1]:g} |"
    yield f"| fewer logged episodes than | {own.episodes[0]} | {own.episodes[1]} |"
    yield f"carried by fewer than {own.effective_episodes:g} episodes"
    yield f"more than {own.disagreement:g} standard errors and a quarter spread apart"


@counts_of("docs/state-ratios.md")
def particles() -> Iterator[str]:
    """Of the one-step model."""
    own = OccupancyModel()
    yield f"{own.slices} slices of {own.particles} states follow the policy"
    yield f"clipped to tanh(μ ± {own.width:g}σ)"
    over = {100: "a hundred", 1000: "a thousand"}
    yield f"the model's parameters over about {over[round(1 / own.model_average)]} steps"
    yield f"from the classifier's average over about {over[round(1 / own.average)]}."


@counts_of("docs/faq.md")
def faq() -> Iterator[str]:
    """How far scales of α are apart."""
    yield f"by a factor of up to {word(max(ALPHA_SCALES.values()) / min(ALPHA_SCALES.values()))}, see [CQL]"


@counts_of("docs/algorithms/iql.md")
def iql() -> Iterator[str]:
    """Its defaults."""
    own = IQL()
    assert own.actor_lr == own.critic_lr == own.value_lr == 3e-4
    yield f"| τ (`expectile`), β, learning rates | {own.expectile:g}, {own.beta:g}, 3e-4 |"
    yield f"| {own.batch_size}, {own.discount:g}, {own.tau:g}, one million |"
    yield f"{word(len(own.hidden))} layers of {own.hidden[0]}, orthogonal"


@counts_of("docs/atari-data.md")
def frames() -> Iterator[str]:
    """Defaults of frames and shards."""
    stack = inspect.signature(FrameDataset).parameters["stack"].default
    yield f"the `stack` ({stack}) frames t−{stack - 1} … t"
    rows = inspect.signature(save_dqn_replay).parameters["shard_rows"].default
    yield f"at most `shard_rows` ({rows:,}) rows"


@counts_of("docs/export.md")
def export() -> Iterator[str]:
    """Candidates of the policies that choose."""
    assert BCQ().candidates == BEAR().candidates == UWAC().candidates
    yield f"the best of a {word(BCQ().candidates)} candidates (BCQ, BEAR, UWAC)"


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


def test_the_oldest_python_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in readme


def test_the_presets_of_edac_and_sac_n_are_its_pages() -> None:
    """η and the number of critics, for every dataset of the benchmark."""
    text = (ROOT / "docs" / "algorithms" / "edac.md").read_text(encoding="utf-8")
    for name in NAMES:
        environment, _, quality = name.partition("-")
        (row,) = re.findall(rf"(?m)^\| {environment} \| (\d+) \| ([^|]+) \| ([^|]+) \|$", text)
        plain, *others = row[1].split("; ")
        eta = next((each.split()[0] for each in others if quality in re.split(r" on | and ", each)), plain)
        assert (edac(name).critics, edac(name).eta) == (int(row[0]), float(eta)), name
        first, _, rest = row[2].partition(" on medium, else ")
        assert sac_n(name).critics == int(first if quality == "medium" or not rest else rest), name


def missing(text: str, fragments: Iterator[str]) -> list[str]:
    """The fragments that a page does not have."""
    flat = " ".join(text.split())
    return [each for each in fragments if each.lower() not in flat.lower()]


@pytest.mark.parametrize("page", COUNTS)
def test_counts_on_the_page_are_what_there_is(page: str) -> None:
    assert missing((ROOT / page).read_text(encoding="utf-8"), COUNTS[page]()) == []
