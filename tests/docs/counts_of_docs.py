"""Fragments of the README and of docs/ that count what code and tests have."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator

from counts import ROOT, counts_of, keys, of_make, values, word
from more_formats import FORMATS as MORE_FORMATS
from scenarios import SCENARIOS

from sapp.algorithms import BCQ, BEAR, CQL, EDAC, IQL, REM, UWAC, FisherBRC
from sapp.algorithms.cql import ALPHA_SCALES, STATES_AT_ONCE
from sapp.collect.online_dqn import train as collect_dqn
from sapp.data import FrameDataset
from sapp.data.benchmark_names import NAMES
from sapp.data.loaders.dqn_replay import save_dqn_replay
from sapp.data.loaders.limits import FREE, RATIO
from sapp.experiments.grid import SCALES, scaled
from sapp.experiments.paper_grids import OTHER_ALPHAS, alpha_sweep, table1
from sapp.export.policy import TIES, TOLERANCE
from sapp.ope.diagnostics import Limits
from sapp.ope.doubly_robust import REPLICATES
from sapp.report.sources import read
from sapp.runs.phases import sa_protocol
from sapp.runs.plan import SETTINGS
from sapp.training.guard import LOST, SPEAK, STOP
from sapp.training.population import STRIDE, TOGETHER
from sapp.weights import OccupancyModel
from sapp.weights.paper import GAMES
from sapp.weights.registry import ABOUT
from studies.arithmetic.arithmetic import read_rows as arithmetic_rows
from studies.baselines import tables as baselines
from studies.physics.tables import rows as replayed


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
    every = inspect.signature(collect_dqn).parameters["checkpoint_every"].default
    yield f"(`checkpoint_every`, {every:,} steps)"
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
    yield f"Table 2, {word(len(GAMES))} games"
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
    """Steps of a graph, the programs that share it, and the frames that a test counts."""
    loop = (ROOT / "tests" / "training" / "test_loop.py").read_text(encoding="utf-8")
    (deepest,) = re.findall(r"assert len\(deepest\) <= (\d+)", loop)
    yield f"There are {word(int(deepest))} frames between `sapp.train`"
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
    yield f"exceeds {SPEAK:g} times the limit"
    yield f"squared TD error {word(LOST)} times what one step can add"
    yield f"A member beyond {word(STOP)} times the limit is stopped"
    yield f"check in every setting that {word(len(learners))} algorithms learn"
    yield f"the penalty's {word(3 * CQL().action_samples)} sampled actions"


@counts_of("docs/algorithms/bear.md")
def bear() -> Iterator[str]:
    """Its draws."""
    own = BEAR()
    widths = ["-".join(map(str, each)) for each in (own.hidden, own.vae_hidden)]
    yield f"actor and critics {widths[0]}, VAE {widths[1]}, learning rates {own.actor_lr:g}".replace("0.0001", "1e-4")
    yield f"σ = {own.sigma:g}, ε = {own.threshold:g}"
    yield f"the best of {own.candidates} draws of π"
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


@counts_of("docs/offline-evaluation.md")
def offline_evaluation() -> Iterator[str]:
    """Every limit of trust."""
    own = Limits()
    yield f"episodes and bags are resampled {REPLICATES:,} times"
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


@counts_of("docs/algorithms/rem.md")
def rem() -> Iterator[str]:
    """Its defaults."""
    own = REM()
    yield f"| `ensemble` | {own.ensemble} heads on one encoder |"
    yield f"u ~ U(0,1)^{own.ensemble}, drawn once per mini-batch"
    yield f"| `target_every` | {own.target_every:,} updates ({4 * own.target_every:,} of their agent steps"
    yield f"| `batch_size` | {own.batch_size} |"
    assert (own.lr, own.adam_eps) == (5e-5, 3.125e-4)
    yield "| `lr`, `adam_eps` | 5e-5, 3.125e-4 |"


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


@counts_of("docs/data.md")
def data() -> Iterator[str]:
    """The benchmark's names."""
    tasks, qualities = ({name.partition("-")[part] for name in NAMES} for part in (0, 2))
    yield f"({word(len(tasks))} tasks × {word(len(qualities))} qualities)"


@counts_of("docs/datasets.md")
def shipped() -> Iterator[str]:
    """Snapshots of each environment."""
    card = json.loads((ROOT / "sapp/collect/benchmark/policies/card.json").read_text(encoding="utf-8"))
    (count,) = {len(each["snapshots"]) for each in card["environments"].values()}
    yield f"with about {word(count)} snapshots of one SAC run"


@counts_of("docs/export.md")
def export() -> Iterator[str]:
    """Candidates of the policies that choose."""
    assert BCQ().candidates == BEAR().candidates == UWAC().candidates
    yield f"more than {TOLERANCE:.0e} (relative".replace("e-0", "e-")
    yield f"on at most {100 * TIES:g} % of inputs"
    yield f"the best of a {word(BCQ().candidates)} candidates (BCQ, BEAR, UWAC)"
