"""Fragments of the README and of the pages in docs/ about use, speed, precision and reliability."""

from __future__ import annotations

import ast
import inspect
import json
import re
import signal
import tomllib
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any, get_args

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import test_split_fp16
import typer
from fragments import ROOT, csv_rows, fragments_of, keys, of_make, values, word
from more_formats import FORMATS as MORE_FORMATS
from populations import COLLAPSE, POPULATIONS
from scenarios import SCENARIOS
from scipy.stats import t

from bench.tables import LAYERS, PHASES, rate, rates
from sapp import CQL
from sapp.algorithms import UWAC
from sapp.algorithms.cql import ALPHA_SCALES, STATES_AT_ONCE, propose
from sapp.algorithms.registry import ABOUT
from sapp.cli.main import app
from sapp.cli.select import ALL_REFUSED
from sapp.collect.online_dqn import train as collect_dqn
from sapp.core.comparisons import compare
from sapp.core.precision import BF16, TF32
from sapp.core.pytrees import usable
from sapp.core.spec import Spec
from sapp.core.statistics import Estimate, Interval, student
from sapp.data.benchmark_names import NAMES
from sapp.data.loaders.limits import FREE, RATIO
from sapp.experiments import text_store
from sapp.experiments.grid import scaled
from sapp.experiments.paper_grids import B0, OTHER_ALPHAS, alpha_sweep, table1
from sapp.kernels.conservative import Tiles
from sapp.kernels.split_fp16 import Thirds
from sapp.ope.calibration import NETWORKS
from sapp.ope.diagnostics import Limits, Measures, reasons_of
from sapp.ope.doubly_robust import REPLICATES
from sapp.ope.offline import SHARE, scales
from sapp.ope.support import RARE
from sapp.report.report_tables import best
from sapp.report.sources import read
from sapp.runs.learners import Learner
from sapp.runs.phases import sa_protocol
from sapp.runs.plan import SETTINGS
from sapp.training.guard import LOST, SPEAK, STOP
from sapp.training.population import STRIDE, TOGETHER
from sapp.weights.paper import GAMES
from sapp.weights.registry import ABOUT as WEIGHTS
from studies.arithmetic.arithmetic import read_rows as arithmetic
from studies.baselines import tables as baselines
from studies.ope import coverage
from studies.ope.rows import read as estimates

PARTS = {2: "half", 3: "third", 5: "fifths", 10: "tenth"}
"""By the number of parts of a whole, as the pages have them."""
TWO = "256,256"
"""The layers of the rates that pages quote."""
UNEVEN = "studies/uneven_coverage/rows"
CONFIDENCE = inspect.signature(Estimate.interval).parameters["confidence"].default


def text(file: str) -> str:
    """A file of the repository."""
    return (ROOT / file).read_text(encoding="utf-8")


def argument(file: str, name: str) -> Any:
    """The default of a script's option."""
    for node in ast.walk(ast.parse(text(file))):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.args[0]) == repr(name):
            return next(ast.literal_eval(each.value) for each in node.keywords if each.arg == "default")
    raise AssertionError(f"{file} has no {name}")


def found_in(file: str, pattern: str) -> str:
    """The one match of a pattern in a file."""
    (found,) = re.findall(pattern, text(file))
    return str(found)


def rows(name: str) -> list[dict[str, Any]]:
    """Rows of a measurement."""
    return [json.loads(line) for line in text(f"bench/rows/{name}.jsonl").splitlines()]


@cache
def final_scores(name: str) -> list[tuple[int, list[float]]]:
    """A baseline's last step and its seeds' scores there, by dataset."""
    made = baselines.scores()
    runs = [baselines.of(made, *baselines.METHODS[name], dataset) for dataset in baselines.DATASETS]
    return [(max(found), list(found[max(found)].values())) for found in runs]


def critics() -> int:
    """How many CQL has."""
    spec = Spec(2, 1, jnp.zeros(2), jnp.ones(2))
    state = jax.eval_shape(CQL(hidden=(8,)).init, jax.random.PRNGKey(0), spec)
    (count,) = {leaf.shape[0] for leaf in jax.tree.leaves(state.critics)}
    return int(count)


def proposals() -> int:
    """The actions that CQL's penalty scores per state."""
    count = CQL().action_samples
    drawn = jax.ShapeDtypeStruct((1, count, 1), jnp.float32), jax.ShapeDtypeStruct((1, count), jnp.float32)
    actions, _ = jax.eval_shape(propose, drawn, drawn, jax.random.PRNGKey(0))
    return int(actions.shape[1])


def project() -> dict[str, Any]:
    """What pyproject.toml says of the package."""
    return dict(tomllib.loads(text("pyproject.toml"))["project"])


@fragments_of("README.md")
def readme() -> Iterator[str]:
    """What there is, rates on a GPU, final scores beside the published ones, and what was found."""
    others = {name.removeprefix("discrete-") for name in ABOUT} - {"cql"}
    yield f"CQL and {word(len(others))} other algorithms"
    ratios = [name for name, about in WEIGHTS.items() if "state ratio" in about]
    yield f"{word(len(ratios))} estimators of that ratio"
    yield f"with Python {project()['requires-python'].removeprefix('>=')} or newer:"
    (demo,) = (row["cpu_seconds"] for row in rows("commands") if row["command"] == "sapp demo")
    assert demo < 180
    yield "draws the picture above in under three minutes"
    seeds = int(found_in("README.md", r'"hopper-medium", seeds=(\d)'))
    yield f"{word(2 * seeds)} runs train together"
    yield f"its {word(len(NAMES))} locomotion datasets"
    measured = [row for row in rates() if (row["hidden"], row["precision"]) == (TWO, "mixed")]
    ((device, batch),) = {(row["device"].removeprefix("NVIDIA "), row["batch"]) for row in measured}
    yield f"({LAYERS[TWO]} layers of {TWO.split(',')[0]}, batch size {batch}, {proposals()} sampled actions)"
    first, last = sorted({row["members"] for row in measured})
    yield f"| {word(1)} {device} | {word(first)} run | {last} runs | command |"
    command = f"python bench/population.py --members {first} {last} --precision auto --hidden {TWO}"
    for phase, how in (("base", f"`{command} --phases base`"), ("joint", "the same with `--phases joint`")):
        yield f"sapp, {PHASES[phase]} | {rate(first, phase):,} | {rate(last, phase):,} | {how} |"
    plain, compiled = rows("h200-peers")
    assert (plain["compiled"], compiled["compiled"]) == (False, True)
    speeds = f"{plain['run_steps_per_s']:g}; {compiled['run_steps_per_s']:g}"
    yield f"| d3rlpy {plain['version']}, CQL; compiled | {speeds} |"
    good = []
    for name, (source, *printed) in baselines.PUBLISHED.items():
        finals = final_scores(name)
        steps, (whose, theirs) = max(step for step, _ in finals), source.split(", ")
        scores = [student(each) for _, each in finals]
        if all(abs(ours.value - float(other)) < 4 for ours, other in zip(scores, printed, strict=True)):
            good.append(name)
            cells = " | ".join(f"{ours.value:.1f} ({other})" for ours, other in zip(scores, printed, strict=True))
            short = f"{steps / 1e6:g}M" if steps >= 1e6 else f"{steps / 1e3:g}k"
            if name != "Fisher-BRC":
                yield f"| {name}, {short} steps ({whose}{'' if short == theirs else f', {theirs}'}) | {cells} |"
        else:
            assert steps < float(theirs.removesuffix("M")) * 1e6, "trained for fewer steps"
    assert good == ["TD3+BC", "IQL", "ReBRAC", "Fisher-BRC"]
    (seeds,) = {len(scores) for name in baselines.PUBLISHED for _, scores in final_scores(name)}
    yield f"Final scores of {word(seeds)} seeds, CORL's in brackets, on the medium"
    yield f"Of {word(len(baselines.PUBLISHED))} baselines, these and Fisher-BRC come within four points"
    yield f"published scores on all {word(len(baselines.DATASETS))}; the others, trained for fewer steps, do not"
    lost = {row["variant"]: row["lost"] for row in json.loads(text(f"{UNEVEN}/exact-uneven-coverage.json"))["rows"]}
    yield f"takes {100 * (1 - lost['SA-CQL, w'] / lost['CQL']):.0f} % off the loss of the best constant penalty"
    worlds = {row["world"] for row in csv_rows("uneven_coverage/rows/learned.csv")}
    yield f"`python -m studies.uneven_coverage --out runs/uneven --worlds {len(worlds)}`"
    (six,) = read([ROOT / "studies" / "six_datasets" / "rows" / "scores.csv"])
    yield f"([{word(len(six.datasets))} datasets](studies/six_datasets/README.md))"
    assert sa_protocol()[-1].steps == 1_000_000
    yield f"main table ({word(len(table1(scaled('paper')).datasets))} datasets, a million steps)"


@fragments_of("docs/performance.md")
def performance() -> Iterator[str]:
    """Work and memory that follow from sizes, and what the kernels do."""
    assert argument("bench/end_to_end.py", "--share") == 0.1
    yield "the SA-CQL column of Table 1, projected from a tenth of it"
    sampled, dropout, count = proposals(), UWAC(), critics()
    observations, actions = (argument("bench/population.py", f"--{name}") for name in ("observations", "actions"))
    (batch,), hidden = {row["batch"] for row in rates()}, [int(width) for width in TWO.split(",")]
    yield (
        f"Batch {batch}, {LAYERS[TWO]} layers of {hidden[0]}, {observations} observations, {actions} actions, "
        f"{word(count)} critics, {sampled + 1} scored actions per state ({sampled} proposals and the logged one)"
    )
    layers = ((observations + actions) * hidden[0], hidden[0] * hidden[1], hidden[1])
    scored = count * batch * sampled
    passes = 2 * sum(layers) + sum(layers[1:])  # forward, gradients of weights, gradients of inputs but the first
    yield f"are {2 * scored * passes / 1e9:.1f} GFLOP"
    slots = Tiles(count, batch, sampled, actions, hidden[0]).slots
    yield f"is {count * batch * slots:,} rows × {hidden[0]}, written and read"
    kernels = re.findall(r"= call\(", text("sapp/kernels/conservative.py"))
    yield f": {word(len(kernels))} passes between the vendor library's products compute"
    (parts,) = {len(each) for each in get_args(Thirds)}
    yield f"split into float16 numbers; {word(parts)} float16 products are then as exact"
    test = test_split_fp16.test_values_and_gradients_are_as_exact_as_float32s_own
    (cases,) = (mark.args[1] for mark in test.pytestmark if mark.args[0] == ("scale", "spread"))
    tested = [scale for scale, _ in cases]
    yield f"of size {min(tested):g} to {max(tested):g} the worst error".replace("e+09", "e9")
    yield f"{word(STRIDE)} steps (`STRIDE`) form one CUDA graph"
    yield f"A {word(dropout.passes)} dropout samples of {word(dropout.next_actions)} actions per state"
    samples = dropout.batch_size * dropout.next_actions * dropout.passes
    yield f"write and read {2 * samples * dropout.hidden[1] * 4 / 1e9:.1f} GB of hidden units"
    work = 2 * count * samples * dropout.hidden[0] * dropout.hidden[1]
    yield f"actions per state are {work / 1e9:.0f} GFLOP per step"
    assert jnp.finfo(jnp.float16).nmant == TF32
    yield f"with TF32's {TF32 + 1} bits, so it is used with `tf32` and `mixed`"


@fragments_of("docs/precision.md")
def precision() -> Iterator[str]:
    """Bits of each setting, what rounding costs, how settings were checked, limits of values, and affected pages."""
    yield f"to the nearest of TF32's {TF32 + 1} significant bits"
    sampled = f"{word(proposals())} sampled actions"
    yield f"score the {sampled} of the penalty with bfloat16 operands ({BF16 + 1} significant bits)"
    yield f"such as that over the penalty's {sampled}"
    discount = CQL().discount
    yield f"a systematic error by γ/(1 − γ), which is {discount / (1 - discount):.0f} at γ = {discount:g}"
    near = float(found_in("tests/networks/test_mlp.py", r"\(64, 64\), precision, bias=([\d.]+)\)"))
    listed = found_in("tests/kernels/test_conservative.py", r'parametrize\("value", \[([\d._, ]+)\]\)')
    tried = [float(each.replace("_", "")) for each in listed.split(", ")]
    assert tried[0] == near
    told = [f"near {value:,g} are {np.spacing(ml_dtypes.bfloat16(value)):g} apart" for value in tried]
    yield f"(In bfloat16, numbers {' and numbers '.join(told)}, so"
    compared = arithmetic(ROOT / "studies" / "arithmetic" / "rows.csv")
    datasets = {row.dataset for row in compared}
    yield f"On {word(len(datasets))} datasets over {max(row.step for row in compared):,} steps"
    learners = keys("algorithms/test_large_values.py", "LEARNERS")
    yield f"check in every setting that {word(len(learners))} algorithms learn"
    inputs = int(found_in("tests/networks/test_mlp.py", r"(?s)def test_nearby_inputs_have.*?size=\((\d+), 11\)"))
    yield f"that a critic's values near {near:g} differ at {inputs:,} nearby inputs"
    yield f"exceeds {SPEAK:g} times the limit, or its root mean"
    yield f"squared TD error {word(LOST)} times what one step can add"
    yield f"A member beyond {word(STOP)} times the limit is stopped"
    (six,) = read([ROOT / "studies" / "six_datasets" / "rows" / "scores.csv"])
    yield f"the short answers of {word(len(six.datasets))} datasets, medium datasets"


@fragments_of("docs/benchmarks.md")
def benchmarks() -> Iterator[str]:
    """The task that both libraries were given, when a turn counts, and what a step computes."""
    found = json.loads(text("bench/rows/cpu-d3rlpy.json"))
    sizes, layers = found["sizes"], found["sizes"]["hidden"]
    yield f"CQL with batch size {sizes['batch']}, {word(len(layers))} layers of {layers[0]}, {sizes['samples']} actions"
    sources = word(proposals() / CQL().action_samples)
    yield f"from each of {sources} sources, {sizes['observations']} observations, {sizes['actions']} actions, fixed α"
    yield f"on {sizes['rows']:,} synthetic rows"
    yield f"in its own process on the same {word(found['cores'])} cores"
    yield f"They take turns of {word(argument('bench/compare.py', '--seconds'))} seconds"
    share = float(found_in("bench/compare.py", r"(?m)^QUIET = ([\d.]+)$"))
    yield f"less than a {PARTS[round(1 / share)]} of a core"
    yield f"products over {proposals() + 1} actions × {CQL().batch_size} states"
    yield f"accumulated over {STATES_AT_ONCE} states at a time"


@fragments_of("docs/reading-the-report.md")
def report() -> Iterator[str]:
    """What is bold, and the level of intervals."""
    yield f"the {word(inspect.signature(best).parameters['count'].default)} best in each row are bold"
    yield f"over all possible seeds lies, with {100 * CONFIDENCE:g} % confidence"


@fragments_of("docs/offline-evaluation.md")
def offline_evaluation() -> Iterator[str]:
    """Replicates, the factor of intervals and the problems that set it, the exit code, and every limit of trust."""
    left_out = np.exp(-1.0)  # (1 - 1/n)ⁿ of many episodes
    yield f"(about a {PARTS[round(1 / left_out)]} of them), and episodes and bags are resampled {REPLICATES:,} times"
    yield f"intervals of network estimates are made {NETWORKS:g} times as wide"
    fitted = [row for row in estimates(ROOT / "studies" / "ope" / "rows" / "control") if row["exact"] != "True"]
    used = {coverage.problem_of(row) for row in fitted} & set(coverage.SET_ON)
    assert coverage.smallest_factor([row for row in fitted if coverage.problem_of(row) in used]) == NETWORKS
    yield f"the smallest factor that sufficed on {word(len(used))} problems"
    yield f"if all are refused the exit code is {ALL_REFUSED}."
    limits = Limits()
    (off, far), (out, beyond) = ([f"{100 * share:g} %" for share in each] for each in (limits.off_data, limits.outside))
    yield f"less likely under β̂ than {100 * (1 - RARE):g} % of the logged ones | {off} | {far} |"
    yield f"start values outside what the rewards allow | {out} | {beyond} |"
    yield f"in widths of its interval | {limits.drift[0]:g} | {limits.drift[1]:g} |"
    yield f"target rate × steps × (1−γ), fewer than | {limits.horizons[0]:g} | {limits.horizons[1]:g} |"
    yield f"returns from all logged states if that is more | {limits.width[0]:g} | {limits.width[1]:g} |"
    yield f"| fewer logged episodes than | {limits.episodes[0]} | {limits.episodes[1]} |"
    yield f"carried by fewer than {limits.effective_episodes:g} episodes"
    flat, line = np.zeros(101), np.arange(101.0)
    low, high = (scales(flat, np.minimum(line, at))[0] for at in (50.0, 100.0))
    assert (low, high) == (45.0, 90.0), "from 5 to 95 of 101 values"
    assert scales(line, flat)[1] == 90.0 * SHARE
    yield f"in spreads ({50 - low:g}–{5 + high:g} %) of the logged returns, or in {PARTS[round(1 / SHARE)]} of"
    apart = Measures(limits.episodes[0], 0.0, limits.disagreement + 0.01, 0.26, 0.0, 0.0, None, "", 1.0, (-1.0, 1.0), 1)
    interval = Interval(0.0, -0.1, 0.1)
    assert len(reasons_of(apart, interval)) == 1
    assert not reasons_of(replace(apart, difference=0.24), interval)
    assert not reasons_of(replace(apart, disagreement=limits.disagreement), interval)
    yield f"more than {limits.disagreement:g} standard errors and a quarter spread apart"


@fragments_of("docs/experiments.md")
def experiments() -> Iterator[str]:
    """The grids, digits of metrics, and how the report's intervals are made and how often they hold."""
    small, paper = scaled("small"), scaled("paper")
    assert small.steps == 200_000
    yield f"# medium and random data, 200k steps, {word(len(small.seeds))} seeds"
    yield f"Table 1, {word(len(table1(paper).datasets))} datasets"
    yield f"Table 2, {word(len(GAMES))} games"
    yield f"Table 6, {word(len(alpha_sweep(paper).datasets))} datasets"
    yield f"CQL at α {', '.join(f'{each:g}' for each in OTHER_ALPHAS[:-1])} and {OTHER_ALPHAS[-1]:g}"
    yield f"SA-CQL and the controls at b0 = {B0:g} |"
    yield f"resumes after Ctrl-C, `kill -{signal.SIGKILL.value}` or the loss of a node"
    row = {"run": "a", "step": 1, "phase": "b", "values": json.dumps({"loss": 1.23456789012})}
    ((*_, kept),) = text_store._metrics([row], [])
    yield f"and ends of phases only, to {word(len(re.sub('[^0-9]', '', kept)))} digits"
    yield f"Intervals ({100 * CONFIDENCE:g} %) are for the mean over all possible seeds"
    population, held = POPULATIONS["collapse"], []
    for count in range(3, 11):  # seeds
        scores = population.draw(np.random.default_rng(count), (100_000, count))
        half = t.ppf(0.5 + CONFIDENCE / 2, count - 1) * scores.std(1, ddof=1) / count**0.5
        held.append(100 * float(np.mean(np.abs(scores.mean(1) - population.mean) <= half)))
    covers = f"{min(held):.0f} to {max(held):.0f} %"
    yield f"one seed in {word(round(1 / COLLAPSE))} collapses, the interval of *one* method's mean covers only {covers}"
    first, *others = (dict.fromkeys(range(start, start + 9), 1.0) for start in (0, *range(9, 4, -1)))
    enough = min(shared for shared, other in enumerate(others) if compare(first, other).paired)
    yield f"if fewer than {word(enough)} are shared, all seeds are compared as groups"


@fragments_of("docs/architecture.md")
def architecture() -> Iterator[str]:
    """Frames, steps of a graph and the programs that share it, counters, and gradients that are not finite."""
    frames = r"(?m)^\| *\d* \| (`[\w.]+` \| `[\w/]+\.py`) \|"
    named = re.findall(frames, text("docs/architecture.md"))[1:-1]
    assert len(named) == int(found_in("tests/training/test_loop.py", r"assert len\(deepest\) <= (\d+)"))
    yield f"There are {word(len(named))} frames between `sapp.train` and CQL's loss"
    for number, frame in enumerate(named, 1):
        yield f"| {number} | {frame} |"
    yield f"{word(STRIDE)} steps (`STRIDE`) are one iteration"
    yield f"shared by up to {word(TOGETHER)} programs of different shapes"
    counters = [each.name for each in fields(Learner) if each.name.endswith("updates")]
    yield f"its seed and of {word(len(counters))} counters: updates in which"
    assert "SIGKILL" in text("tests/training/test_kill.py")
    yield f"(tested with `kill -{signal.SIGKILL.value}`)"
    yield f"Elements of a gradient that are not finite count as {float(usable(jnp.float32(jnp.nan))):g}, so"


@fragments_of("docs/reliability.md")
def reliability() -> Iterator[str]:
    """How much `make test`, `make fuzz` and `make faults` try; limits, options and exit codes."""
    cases = int(found_in("tests/fuzz/test_fuzz.py", r'"SAPP_FUZZ_CASES", "(\d+)"'))
    formats = [*keys("fuzz/test_fuzz.py", "FORMATS"), *MORE_FORMATS]
    slow = values("fuzz/test_fuzz.py", "SLOW")
    total = sum(max(1, cases // slow.get(name, 1)) for name in formats)
    fuzzed = {row["name"]: row["read"] + row["refused"] for row in rows("reliability") if row["kind"] == "fuzz"}
    assert set(fuzzed) == set(formats)
    yield f"make fuzz faults FUZZ={max(fuzzed.values())}`, on the version of this page"
    yield f"`make test` generates some {round(total, -2)} cases from a seed"
    yield f"`make fuzz` {of_make('FUZZ'):,} of most kinds"
    cut = PARTS[int(found_in("tests/faults/test_faults.py", r"\(MANY // (\d) if scenario\.trains"))]
    yield f"`make faults` (`FAULTS={of_make('FAULTS')}`: cases per command, {cut} as many where it trains)"
    quick = word(len(values("faults/test_faults.py", "QUICK")))
    yield f"does this to {len(SCENARIOS)} commands, `make test` to {quick} of them"
    pairs, few = (values("faults/test_races.py", name) for name in ("PAIRS", "FEW"))
    yield f"`make faults` starts {sum(pairs.values())} pairs of processes on the same"
    yield f"`make test` starts {sum(few.values())}."
    hostile = "tests/faults/test_hostile.py"
    times = int(found_in(hostile, r"max\(LEAST, (\d) \* size\)"))
    yield f"{len(keys('faults/test_hostile.py', 'HOSTILE'))} files and folders (`tests/faults/test_hostile.py`)"
    least = 2 ** (int(found_in(hostile, r"(?m)^LEAST = 1 << (\d+)$")) - 20)
    yield f"more than {word(times)} times its size (or {least} MiB)"
    yield f"more than {RATIO} times its size (and more than {FREE >> 20} MiB)"
    every = inspect.signature(collect_dqn).parameters["checkpoint_every"].default
    yield f"(`checkpoint_every`, {every:,} steps)"
    yield f"(`JAX_DEFAULT_PRNG_IMPL` and {word(len(SETTINGS) - 1)} more)"
    commands = typer.main.get_command(app).commands
    named = commands["data"].commands | commands["theory"].commands | commands
    asked = [named[each] for each in ("export", "report", "convert", "audit", "train", "collect")]
    force = ["--force" in [opt for each in command.params for opt in each.opts] for command in asked]
    without = force.count(False)
    assert not any(force[-without:])
    yield f"All but the last {word(without)} take `--force`."
    test = "tests/collect/test_online_dqn.py"  # it holds the commands to these
    code = found_in(test, r"(?s)def test_an_interrupted_command_saves.*?returncode == (\d+)")
    limit = found_in(test, r'"--time-limit", "0.01", "--quiet"\]\) == (\d+)')
    yield f"and exit with {code}; a time limit does the same and exits with {limit}."
    (written,) = set(re.findall(r"if \(plan->half.*content, size / (\d)", text("tests/faults/interpose.c")))
    yield f"or {PARTS[int(written)]} a write) or kills the command there"


@fragments_of("docs/install.md")
def install() -> Iterator[str]:
    """Versions of Python: the oldest, those of the workflow's tests, and what the package names beyond them."""
    oldest = project()["requires-python"].removeprefix(">=")
    yield f"Python {oldest} or newer; CPU, CUDA or TPU"
    pinned = found_in("constraints.txt", r"Versions the tests pass with on Python ([\d.]+):")
    yield f"the versions with which the tests pass on Python {pinned}."
    tested = json.loads(re.findall(r"python: (\[.*\])", text(".github/workflows/ci.yml"))[0])
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    assert named[: len(tested)] == tested
    yield f"under Python {', '.join(tested[:-1])} and {tested[-1]}. For {' and '.join(named[len(tested) :])}, wheels of"


@fragments_of("docs/faq.md")
def faq() -> Iterator[str]:
    """How far scales of α are apart."""
    yield f"by a factor of up to {word(max(ALPHA_SCALES.values()) / min(ALPHA_SCALES.values()))}, see [CQL]"
