"""Fragments of the pages on commands, data, theory and weights, and of those on extending and exporting."""

from __future__ import annotations

import inspect
import json
import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fragments import ROOT, fragments_of, word
from page_numbers import text_of
from scipy.stats import norm
from test_told_defaults import PROSE, ROW, parts, told, wrong

import sapp
from bench.strangers_log import COMMANDS
from sapp.algorithms.cql import ALPHA_SCALES
from sapp.algorithms.iql import RETURN_SCALE
from sapp.cli import collect, main, select
from sapp.cli.train import sweep
from sapp.collect import given as collect_given
from sapp.collect import online_training
from sapp.collect.benchmark import make as benchmark
from sapp.collect.benchmark.shipped import shipped
from sapp.collect.online_dqn import Exploration
from sapp.core.errors import SappError
from sapp.core.pytrees import usable
from sapp.core.seeds import parse_seeds
from sapp.core.spec import Spec
from sapp.core.statistics import Estimate
from sapp.data.action_masks import mask_of
from sapp.data.action_units import to_unit
from sapp.data.array_checks import ACTION_SLACK
from sapp.data.benchmark_names import NAMES
from sapp.data.columns import Columns
from sapp.data.field_names import normal
from sapp.data.ledger import SHARE, Ledger
from sapp.data.loaders.d4rl import PUBLISHED
from sapp.data.loaders.dqn_replay import load_dqn_replay, save_dqn_replay
from sapp.data.loaders.dqn_writer import SHARD_ROWS
from sapp.data.loaders.frame_files import save_frames
from sapp.data.loaders.table_files import _in_order
from sapp.data.log_actions import infer_bounds
from sapp.data.logs import _features
from sapp.data.normalised_scores import REFERENCE, normalized_score
from sapp.data.repair import FALSE, SPARSE, TRUE, codes_of, labels_of, sparse_rewards
from sapp.data.table import Table
from sapp.data.value_findings import CODES
from sapp.envs.atari import FRAME_SKIP, MAX_STEPS, SIZE, STICKY
from sapp.envs.catch import Catch
from sapp.envs.frames import play
from sapp.envs.locomotion import TASKS, Locomotion, asset_path
from sapp.envs.physics import load_model
from sapp.export.policy import TIES, TOLERANCE
from sapp.ope.diagnostics import Limits
from sapp.ope.estimators import Settings
from sapp.runs.plan import COUNTS
from sapp.tabular.bounds import c0_printed, c0_repaired
from sapp.tabular.divergence import BOUNDED, DIVERGENCES
from sapp.theory.audit import CONVENTIONS, DISCOUNTS
from sapp.theory.families import DELTA, instances
from sapp.training.planning import a_twentieth
from sapp.training.population import STRIDE
from sapp.weights.classifier import accuracy
from sapp.weights.registry import ABOUT
from sapp.weights.successor import GaussianSuccessor
from studies.ope.tables import snapshots
from studies.physics.tables import rows as replayed

RATIOS = [name for name, about in ABOUT.items() if "state ratio" in about]
"""Estimators of the state ratio, by name."""


class Lost(sapp.RatioWeights):
    """An estimate that is never reliable."""

    f: sapp.Transform = sapp.Identity()
    fallback: bool = True

    def ratio(self, state, batch, policy):
        return jnp.asarray([0.0, 3.0])

    def unreliable(self, state):
        return jnp.bool_(True)


def fallen_back() -> float:
    """The weight of every state while an estimate is unreliable, with ``fallback``."""
    (weight,) = set(Lost().weights(None, None, None, None)[0].tolist())
    return weight


def uniform() -> float:
    """The weight of every state of the algorithm as published."""
    low, high = sapp.Uniform().bounds()
    assert low == high
    return float(low)


def unit() -> str:
    """What actions are scaled to."""
    return "[{:g}, {:g}]".format(*to_unit([-2.0, 100.0], [-2.0, 0.0], [2.0, 100.0]))


def power(number: float) -> str:
    """Such as 1e-5."""
    return f"{number:.0e}".replace("e-0", "e-")


def raised(exponent: int) -> str:
    """A power of ten as pages write it."""
    return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def default(function: object, name: str) -> object:
    """Of a parameter."""
    return inspect.signature(function).parameters[name].default


def told_defaults(page: str) -> Iterator[str]:
    """Every default that a page of commands tells, as it stands there, where it is the command's own."""
    for command, body in parts(text_of(page)):
        group, _, own = command.rpartition(" ")
        rows = [found[0] for found in ROW.finditer(body)]
        prose = re.sub(r"^\|.*$|```.*?```", "", body, flags=re.MULTILINE | re.DOTALL)
        for each in (*rows, *(found[0] for found in PROSE.finditer(prose))):
            section = f"## sapp {group}\n- `{own}` {each}\n" if group else f"## sapp {command}\n{each}\n"
            if told(section) and not wrong(section):
                yield each


@fragments_of("docs/cli.md")
def cli() -> Iterator[str]:
    """Defaults, exit codes, what names and lists of values mean, and what can be made."""
    yield from told_defaults("docs/cli.md")
    page = text_of("docs/cli.md")
    several, one = re.findall(r"or which: `([\d,]+)`, or `([\d,]+)`", page)[0]
    assert (parse_seeds(several), parse_seeds(one)) == ([3, 7, 11], [7])
    yield f"how many ({', '.join(map(str, parse_seeds('2')))}, …), or which: `{several}`, or `{one}`"
    first, ratio, _ = sapp.sa_protocol()
    yield f"`--pretrain`, `--ratio-steps` ({first.steps:,}, {ratio.steps:,})"
    million = sapp.sa_protocol()[-1].steps
    yield f"`--eval-every` (a {({20: 'twentieth'})[million // a_twentieth(million)]} of `--steps`)"
    yield f"counted in each phase; {COUNTS['eval_every']} = off"
    yield f"multiples of {STRIDE} steps are fastest"
    yield f"`uniform` ({uniform():g}: the algorithm as published)"
    such = ABOUT["constant:NUMBER"].rpartition(" ")[2]
    assert sapp.state_weights(such).bounds() == (0.5, 0.5)
    yield f"`random-b0-b1`, `{such}`, and the controls"
    alphas, spans = re.findall(r"`--alpha ([\d.,]+) --b0 ([\d.,]+)` makes", page)[0]
    found = list(sweep(["sa-cql"], {"alpha": alphas, "b0": spans}))
    yield f"`--alpha {alphas} --b0 {spans}` makes {word(len(found))} variants per seed, named `{found[0]}` and so on"
    layers = ",".join(map(str, sapp.TD3BC().hidden))
    assert list(sweep(["cql"], {"hidden": layers})) == ["cql"]
    yield f"`--hidden {layers}` is one network"
    yield f"with {100 * default(Estimate.interval, 'confidence'):g} % intervals over episodes"
    yield f"Exit code {select.ALL_REFUSED} if no estimate can be trusted"
    yield f"`--fallback` | weights of {fallen_back():g} while the ratio estimate is unreliable"
    yield f"`all` makes all {word(len(NAMES))}."

    source = inspect.getsource(collect)
    dqn, sac = (int(each) for each in re.findall(r'random_steps or "([\d_]+)"', source))
    assert sac == default(online_training.train, "random_steps")
    assert dqn == Exploration().warm_up
    yield f"`--random-steps` ({sac:,} (dqn: {dqn:,}))"
    given, dqn, sac = (int(each) for each in re.findall(r"\brows or (\d+)", source))
    assert given == dqn
    yield f"`--rows` ({sac} (dqn: {dqn}))"
    (images,) = re.findall(r'options\["epsilon"\] = ([\d.]+) if', source)
    assert float(images) == default(collect_given.log_given, "epsilon")
    yield f"`--epsilon`, `--temperature` (images: {images}, {default(collect.collect, 'temperature'):g})"
    yield f"random actions fall from {Exploration().epsilon(0):g} to {Exploration().last:g};"
    assert "if episodes else []" in source
    yield "episodes per snapshot (0 = off)"
    (spare,) = re.findall(r"cores\(\) - (\d)", inspect.getsource(online_training))
    yield f"`--threads` (cores − {spare})"
    codes = re.findall(r"(?s)except \(typer.Abort, KeyboardInterrupt\):.*?, (\d+)\)", inspect.getsource(main))
    yield f"Exit code {codes[0]} means Ctrl-C or SIGTERM"


@fragments_of("docs/theory.md")
def theory() -> Iterator[str]:
    """How long the audit takes, δ, what γ makes of the occupancy's sum, and the counts of the families' logs."""
    lines = (ROOT / "bench" / "rows" / "commands.jsonl").read_text(encoding="utf-8").splitlines()
    (seconds,) = (row["cpu_seconds"] for row in map(json.loads, lines) if row["command"] == "sapp theory audit")
    yield f"about {round(seconds, -1)} s of one core"
    discount = max(DISCOUNTS)
    yield f"At γ = {discount:g} that is a factor of {1 / (1 - discount):.0f} by which"
    unbounded = [name for name in DIVERGENCES if name not in BOUNDED]
    assert list(DIVERGENCES)[: len(unbounded)] == unbounded
    yield f"leaves the support of β̂ the first {word(len(unbounded))} are +∞"
    yield f"violated no more often than δ = {100 * DELTA:g} % allows"
    counts = instances("plenty", range(50), discount).model.pairs
    low, high = math.floor(np.log10(counts.min())), math.ceil(np.log10(counts.max()))
    yield f"*plenty* ({raised(low)} to {raised(high)} transitions per pair)"
    yield f"known from {raised(round(np.log10(instances('arms', (0,), discount).model.pairs.max())))} draws"
    share = c0_printed(3, 99, 5, discount, DELTA) / c0_repaired(3, 5, discount, DELTA)
    yield f"C₀ is {({0.5: 'half'})[round(share, 12)]} of what Hoeffding's inequality gives"
    yield f"has {word(len(CONVENTIONS))} meanings (above)"


@fragments_of("docs/data.md")
def data() -> Iterator[str]:
    """The benchmark's names, how logs are read, and what may be lost, clipped or filled without being asked for."""
    tasks, qualities = ({name.partition("-")[part] for name in NAMES} for part in (0, 2))
    yield f"({word(len(tasks))} tasks × {word(len(qualities))} qualities)"
    yield f"`scaled_action()`: in {unit()}"
    numbers, _ = labels_of(["wait", "go"], None, "action", "here")
    yield f"`num_actions` of them, numbered from {numbers.min()}"
    (digits,) = {len(each.sha256) for each in PUBLISHED.values()}
    yield f"SHA-{4 * digits} is checked"
    early, late = sorted(("part-10", "part-2"), key=_in_order)
    yield f"({early} before {late})"
    yield f"more than {100 * SHARE:g} % of the reward or of the episodes"
    yield f"rows before gaps hold more than {100 * SHARE:g} % of the reward"
    yield f"clipped if by at most {power(ACTION_SLACK)};"
    assert -999 in CODES
    yield "codes such as −999, …"
    few, many = np.array([1.0, np.nan, 2.0, 3.0]), np.array([np.nan, np.nan, 1.0])
    assert np.isnan(sparse_rewards(few, np.arange(4) == 3)[0][1])
    filled, _ = sparse_rewards(many, np.arange(3) == 2)
    share = {0.5: "half"}[SPARSE]
    yield f"rewards empty on more than {share} of the rows that do not end an episode | {filled[0]:g} there"
    yield "any other empty reward | a missing value, never 0"
    kept, refused = ((7, 12, 17), (-1, 0, 1))
    assert codes_of(np.array(kept), "action", "here")
    with pytest.raises(SappError, match=r"action_labels = \["):
        codes_of(np.array(refused), "action", "here")
    yield f"codes ({', '.join(map(str, kept))}; {', '.join(map(str, refused))}) | kept if none is negative"
    (low,), (high,), _ = infer_bounds(np.array([[-0.5], [0.5]]), "here", False)
    yield f"that leave [{low:g}, {high:g}] get the range of the data"
    numbered = ("obs_0", "obs.0", "obs[0]")
    assert {normal(each) for each in numbered} == {"obs"}
    yield f"if there is one column per dimension ({', '.join(f'`{each}`' for each in numbered)})"
    no, yes = mask_of([[0, 1]], "action_mask", 1, 2, "here")[0]
    yield f"next_action_mask: {no:g}/{yes:g} per discrete action"
    cells = Table.of_arrays({"ward": np.array(["a", "b"], object)}, 2, "here")
    hot = _features(cells, Columns(observation=("ward",), one_hot=("ward",)), "observation", {}, Ledger(2))
    yield "each value becomes a feature of {:g} and {:g}".format(*np.unique(hot))
    assert "0" in FALSE
    assert "1" in TRUE
    for name in ("tripped", "stopped"):
        yield f'= "{name}" # 0/1'
    yield "# 0/1, at every end, also at the step limit"


@fragments_of("docs/state-ratios.md")
def state_ratios() -> Iterator[str]:
    """The estimators, the one-step model and its particles, the classifier, and what of it is logged."""
    yield f"and the other {word(len(RATIOS) - 1)} estimators on this page"
    yield f"works with each of the {word(len(RATIOS))}"
    own = sapp.OccupancyModel()
    yield f"`RescaledWeights(OccupancyModel(), mean={sapp.RescaledWeights(own).mean})` divides"
    kinds = get_args(get_type_hints(sapp.OccupancyModel)["successor"])
    yield f"There are {word(len(kinds))} kinds"
    yield f"leaves the data's range by more than {100 * own.margin:g} %"
    yield f"{own.slices} slices of {own.particles} states follow the policy"
    yield f"clipped to tanh(μ ± {own.width:g}σ)"
    small = sapp.OccupancyModel(hidden=(4,), particles=2, slices=2)
    state = small.init(jax.random.PRNGKey(0), Spec(2, 1, jnp.zeros(2), jnp.ones(2)))
    classes = state.networks.classifier(jnp.zeros(2)).shape[-1]
    what = ("the policy's particles,", "the behaviour's particles,", "the batch with weights γᵗ", "the batch as it is")
    named = [f"({number}) {each}" for number, each in zip(range(classes), what, strict=True)]
    yield f"distinguishes {word(classes)} kinds: {' '.join(named[:-1])}"
    yield named[-1]
    over = {100: "a hundred", 1000: "a thousand"}
    yield f"the model's parameters over about {over[round(1 / own.model_average)]} steps"
    yield f"from the classifier's average over about {over[round(1 / own.average)]}."
    yield f"about {100 * 2 * norm.sf(own.width):.0f} % for the behaviour itself"
    model, rest = GaussianSuccessor(jax.random.PRNGKey(0), 2, 1, (4,)), (jnp.zeros((3, 2)), jnp.zeros((3, 1)), None)
    moves = [model.step(*rest, jnp.float32(0.0), jax.random.PRNGKey(seed))[0] for seed in range(2)]
    assert jnp.array_equal(*moves)
    yield "0 makes it a mean model"
    blind, sure = jnp.asarray([1.0, -1.0]), jnp.ones(2)
    share = jnp.full(2, 0.5)
    assert accuracy(blind, share, blind) == 0.5
    yield f"½ if it cannot distinguish policy and data, near {accuracy(sure, share, -sure):g} if they do not overlap"


@fragments_of("docs/coming-from.md")
def coming_from() -> Iterator[str]:
    """Scales of α, and defaults of ours."""
    alpha, plain = sapp.CQL().alpha, ALPHA_SCALES[sapp.CQL().alpha_scale]
    assert ALPHA_SCALES["half-td"] * 0.5 == ALPHA_SCALES["per-critic"], "½ before the TD error"
    for scale, before in {"per-critic": "(`conservative_weight`)", "half-td": "with ½ before the TD error"}.items():
        same = f"`CQL(alpha={alpha * ALPHA_SCALES[scale] / plain:g})`"
        yield f'{before} | {alpha:g} | `CQL(alpha={alpha:g}, alpha_scale="{scale}")`, which is {same}'
    yield f"| {alpha:g} | `CQL(alpha={alpha:g})` |"
    (width,) = set(sapp.CQL().hidden)
    yield f"| {len(sapp.CQL().hidden)} × {width} | | CQL: action in the target"
    yield f"× {RETURN_SCALE:g} / range of returns (`reward_scaling`)"
    yield f"| | {sapp.DiscreteCQL().batch_size} |"
    million = sapp.sa_protocol()[-1].steps
    often = word(million // a_twentieth(million))
    yield f"{default(sapp.train, 'eval_episodes')} episodes, {often} times per run"


@fragments_of("docs/atari-data.md")
def atari_data() -> Iterator[str]:
    """Sizes of rows and shards, what is written into folders, and the protocol of games."""
    stack = default(sapp.FrameDataset, "stack")
    yield f"the `stack` ({stack}) frames t−{stack - 1} … t"
    rows, ends = 12, 3
    frames = np.arange(1, rows + 1, dtype=np.uint8)[:, None, None] * np.ones((SIZE, SIZE), np.uint8)
    end = np.arange(rows) % (rows // ends) == rows // ends - 1
    log = sapp.FrameDataset(frames, np.ones(rows, int), np.ones(rows), end, ~end & end, num_actions=2)
    picture = log.frames.nbytes // rows
    rest = (log.nbytes - log.frames.nbytes) // rows
    yield f"A row with an {SIZE}×{SIZE} frame takes {picture} bytes for the frame and {rest} for everything else"
    with tempfile.TemporaryDirectory() as scratch:
        files = list(save_frames(log, Path(scratch) / "frames").iterdir())
        read = load_dqn_replay(save_dqn_replay(log, Path(scratch) / "shards")).provenance["rows_read"]
    yield f"writes a folder of {word(len(files))} files"
    yield f"Dopamine puts stack − {stack - (read - rows) // ends} rows of zeros before every episode"
    (part,) = {int(each) for each in re.findall(r"per_shard=([\d_]+)", text_of("docs/atari-data.md"))}
    yield f"# CQL's {100 * part / SHARD_ROWS:g} %: the first rows of each shard"
    yield f"# d3rlpy's {100 * part / SHARD_ROWS:g} %: whole shuffled episodes"
    yield f"at most `shard_rows` ({default(save_dqn_replay, 'shard_rows'):,}) rows"
    yield f"is repeated with probability {STICKY:g}, at every emulator frame"
    yield f"| frame skip | {FRAME_SKIP} |"
    yield f"grey, resized to {SIZE}×{SIZE} by area"
    yield f"at most {MAX_STEPS:,} agent steps (then a time-out)"
    yield f"epsilon={default(play, 'epsilon'):g}, seed={default(play, 'seed')})` plays ε-greedy"
    yield f"`act(stacks uint8 [B, {default(play, 'stack')}, {SIZE}, {SIZE}]) → actions [B]`"
    game = Catch()
    yield "{}×{} frames, best return {:g}".format(*game.frame_shape, game.best_return)


@fragments_of("docs/guides/own-logs.md")
def own_logs() -> Iterator[str]:
    """The guide's steps and candidates, what may be dropped, and what a stranger's log took and gave."""
    page = text_of("docs/guides/own-logs.md")
    headings = re.findall(r"(?m)^## \d+\. (.*)$", page)
    yield f"Steps 1 to {len(headings)} run as written"
    for number, heading in enumerate(headings, 1):
        yield f"## {number}. {heading}"
    yield f"more than {100 * SHARE:g} % is dropped only if you agree"
    (line,) = re.findall(r"(?s)sapp train cql plant.csv .*?--quiet", page)
    of = dict(re.findall(r"--([\w-]+) ([\d.,]+)", line))
    strengths, made = len(of["alpha"].split(",")), int(of["steps"]) // int(of["checkpoint-every"])
    points = min(made, int(of["keep"]))
    first, second, all_of_them = map(word, (strengths, points, strengths * points))
    yield f"{first} strengths of pessimism, each at {second} checkpoints, make {all_of_them} candidates"
    assert int(of["eval-every"]) == COUNTS["eval_every"]
    yield f"`--eval-every {COUNTS['eval_every']}`, because there is no environment"
    folders = {each for line in COMMANDS for each in re.findall(r"rllib-\w+", line)}
    yield f"RLlib's output for Pendulum, {word(len(folders))} folders of JSON lines"
    discount = default(Settings, "discount")
    enough = (
        steps
        for steps in range(500, 20_001, 500)
        if Settings(steps=steps).rates()["target_rate"] * steps * (1 - discount) >= Limits().horizons[0]
    )
    yield f"At γ = {discount:g}, FQE needs {next(enough):,} steps"
    row = json.loads((ROOT / "bench" / "rows" / "strangers-log.json").read_text(encoding="utf-8"))
    train, estimates = (int(row["parts"][name]) for name in ("train", "select"))
    took, cores = int(row["seconds"]), word(row["cores"])
    yield f"{took} seconds in all on {cores} cores (training {train}, estimates {estimates})"
    yield f"return was −{-row['logs_return']}; the chosen policy's, −{-row['policy_return']}"
    assert "outcome = int(recovered[row])" in (ROOT / "docs" / "tutorials" / "decisions.ipynb").read_text()
    yield f"the only reward is {int(True)} for a patient who leaves recovered"


@fragments_of("docs/physics.md")
def physics() -> Iterator[str]:
    """Masses and margins of the models, the rows that were replayed, and the snapshots that were played."""
    cheetah = load_model(asset_path("half_cheetah.xml"))
    yield f"(HalfCheetah: {cheetah.body_mass.sum():.12g})"
    (today,), (restored,) = ({*load_model(asset_path("hopper.xml"), name).geom_margin} for name in ("v4", "d4rl"))
    assert today == 2 * restored
    yield f"(Hopper's {today:g} is halved)"
    (rows,) = {int(row["rows"]) for row in replayed() if row["file"].startswith("halfcheetah")}
    episodes = word(rows // Locomotion.max_episode_steps)
    yield f"each recorded state of the first {episodes} episodes of D4RL's files"
    bounds = {name: task.velocity_bound for name, task in TASKS.items() if np.isfinite(task.velocity_bound)}
    (bound,) = set(bounds.values())
    assert set(bounds) == {"hopper", "walker2d"}
    yield f"clipped to ±{bound:g} (Hopper, Walker2d)"
    found = snapshots(ROOT / "studies" / "ope" / "rows")
    for _, published, ours, _ in found:
        (theirs, deviation), (mean, _) = (map(int, each.split(" ± ")) for each in (published, ours))
        assert abs(theirs - mean) <= deviation
    yield f"Mean returns of the {word(len(found))} policies that DOPE published"
    yield f"any D4RL file of the {word(len(TASKS))} environments"
    worst = max(float(row["largest"]) for row in replayed() if row["physics"] == "d4rl")
    yield f"Restored errors far above {power(10 ** math.ceil(math.log10(worst)))} mean"


@fragments_of("docs/datasets.md")
def datasets() -> Iterator[str]:
    """The benchmark's size, its blocks, and how long a dataset takes, from a tenth of it."""
    yield f"# The benchmark's {word(len(NAMES))} datasets, without a download"
    yield f"`timeout` the {Locomotion.max_episode_steps}-step limit"
    lines = (ROOT / "bench" / "rows" / "commands.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = [row["cpu_seconds"] for row in map(json.loads, lines) if row["command"].startswith("sapp data make")]
    assert 60 < 10 * max(seconds) < 240, "of two cores"
    yield "D4RL's size: a minute or two on two cores"
    yield "a minute or two per million transitions on two cores"
    yield f"`sapp collect hopper --steps {int(default(collect.collect, 'steps')):_}` keeps a true one"
    policies = shipped("hopper").policies
    yield f"policies with their SHA-{4 * len(benchmark.digest(next(iter(policies.values()))))}, versions"
    yield f"finished blocks of about {benchmark.BLOCK:,} transitions"
    (times,) = re.findall(r"needed = (\d) \* size_estimate", inspect.getsource(benchmark.check_disk))
    yield f"a dataset takes {({2: 'twice'})[int(times)]} its size"
    card = json.loads((ROOT / "sapp/collect/benchmark/policies/card.json").read_text(encoding="utf-8"))
    (count,) = {len(each["snapshots"]) for each in card["environments"].values()}
    yield f"with about {word(count)} snapshots of one SAC run"


@fragments_of("docs/weights.md")
def weights() -> Iterator[str]:
    """What weights are without an estimate, and what transforms make of one."""
    yield f"where w(s) = {uniform():g} gives the algorithm as published"
    yield f"All {word(len(RATIOS))} learn by the paper's protocol"
    yield f"with `fallback=True` weights are {fallen_back():g} while an estimate is unreliable"
    ratio = jnp.asarray([0.25, 4.0])
    flat, same = (sapp.Power(k)(ratio)[0] for k in (0.0, 1.0))
    assert set(flat.tolist()) == {uniform()}
    assert jnp.array_equal(same, sapp.Identity()(ratio)[0])
    yield "between CQL (k = 0) and plain SA-PP (k = 1)"
    f = sapp.LogMinMax()
    assert sum(map(float, f.bounds())) / 2 == uniform() / 2
    yield f"With `LogMinMax({f.b0:g}, {f.b1:g})` the mean weight is about ½, so the algorithm is half as pessimistic"
    yield f"`uniform` is {uniform():g} everywhere"


@fragments_of("docs/add-an-estimator.md")
def add_an_estimator() -> Iterator[str]:
    """What a batch's actions are scaled to."""
    yield f"`action` (scaled to {unit()}, or whole numbers)"


@fragments_of("docs/add-an-algorithm.md")
def add_an_algorithm() -> Iterator[str]:
    """What becomes of gradients that are not finite."""
    treated = set(usable(jnp.asarray([jnp.nan, jnp.inf, -jnp.inf])).tolist())
    yield f"treats gradients that are not finite as {treated.pop():g}"
    assert not treated


@fragments_of("docs/export.md")
def export() -> Iterator[str]:
    """How far a file may be from the policy, and the candidates of the policies that choose."""
    assert sapp.BCQ().candidates == sapp.BEAR().candidates == sapp.UWAC().candidates
    yield f"more than {power(TOLERANCE)} (relative"
    yield f"on at most {100 * TIES:g} % of inputs"
    yield f"the best of a {word(sapp.BCQ().candidates)} candidates (BCQ, BEAR, UWAC)"


@fragments_of("docs/glossary.md")
def glossary() -> Iterator[str]:
    """The ends of normalised scores."""
    random, expert = (normalized_score("hopper", each) for each in REFERENCE["hopper"])
    yield f"{random:g} for a random policy, {expert:g} for D4RL's expert"
