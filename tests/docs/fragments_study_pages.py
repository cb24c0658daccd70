"""Fragments of the studies' pages, from rows and code: studies that train, their data, and the short answers."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from fragments import ROOT, csv_rows, fragments_of, word
from fragments_studies import LEVEL, default, found_in, listed

from sapp.algorithms import BCQ, BEAR, BRAC, CQL
from sapp.algorithms.registry import preset
from sapp.collect.benchmark.shipped import CARD, FOLDER
from sapp.collect.given import log_given
from sapp.core.comparisons import compare, holm
from sapp.core.statistics import average
from sapp.data.benchmark_names import NAMES, QUALITIES, TRANSITIONS
from sapp.evaluation.online_evaluation import EPSILON
from sapp.experiments.grid import scaled
from sapp.experiments.parts import seconds
from sapp.report.marked_sections import sections_of
from sapp.report.records import Experiment
from sapp.report.score_summary import cells, differences
from sapp.report.sources import read
from sapp.runs.events import RatioHealth
from sapp.runs.phases import sa_protocol
from sapp.weights.paper import GAMES, dualdice, weight_range
from studies.atari.grid import SETTINGS
from studies.atari.grid import grid as atari_grid
from studies.baselines import tables as baselines
from studies.benchmark_data import comparison
from studies.benchmark_data import table as eighteen
from studies.benchmark_data.levels import D4RL_RETURNS, d4rl_return
from studies.readings import page as readings_page
from studies.readings.grid import ALPHAS as LARGER_ALPHAS
from studies.readings.grid import NARROW, RANGE, mean_of_range
from studies.readings.part import STEPS as READINGS_STEPS
from studies.skewed_coverage import tables as skewed_tables
from studies.skewed_coverage.grid import MEAN, SHARE
from studies.table1.part import SEEDS, SHUFFLED
from studies.table1.part import STUDY as TABLE1

STUDIES = ROOT / "studies"
WITHIN = 4
"""Points from its published score at which a baseline reaches it."""
MEDIUM = ("hopper", "halfcheetah-walker2d")
"""Runs of the earlier study of the medium datasets."""


@cache
def scores_of(study: str) -> Experiment:
    """What a study's file of scores has."""
    (found,) = read([STUDIES / study / "rows" / "scores.csv"])
    return found


@cache
def settings_of(study: str) -> dict[str, Any]:
    """The settings of a study's runs, by run."""
    found: dict[str, Any] = json.loads((STUDIES / study / "rows" / "settings.json").read_text(encoding="utf-8"))
    return found


def members_of(study: str) -> list[dict[str, Any]]:
    """The algorithms that a study trained."""
    runs = settings_of(study).values()
    return [member for run in runs for variants in run["methods"].values() for member in variants]


def shared(study: str, name: str) -> Any:
    """A hyper-parameter that all algorithms of a study have alike."""
    (found,) = {json.dumps(member[name]) for member in members_of(study)}
    return json.loads(found)


def played(study: str) -> tuple[int, int]:
    """Seeds of all runs of a study, and episodes of their evaluations."""
    (found,) = {(len(run["seeds"]), run["evaluation"]["episodes"]) for run in settings_of(study).values()}
    return found


def millions(study: str) -> float:
    """Of transitions that the datasets of a study have, each."""
    (found,) = {
        round(own["transitions"] / 1e6, 2) for run in settings_of(study).values() for own in run["datasets"].values()
    }
    return found


def last_steps(experiment: Experiment, *variants: str) -> list[int]:
    """At which variants end."""
    ends = {max(max(m.evaluations) for m in experiment.members if m.variant == name) for name in variants}
    return sorted(ends)


def final_scores(name: str, dataset: str, step: int | None = None) -> list[float]:
    """Of a baseline's seeds at a step, or at its last."""
    found = baselines.of(baselines.scores(), *baselines.METHODS[name], dataset)
    return list(found[max(found) if step is None else step].values())


def reached(name: str) -> list[bool]:
    """Whether a baseline's final scores are near those printed, by dataset."""
    printed = zip(baselines.DATASETS, map(float, baselines.PUBLISHED[name][1:]), strict=True)
    return [abs(np.mean(final_scores(name, dataset)) - theirs) < WITHIN for dataset, theirs in printed]


@fragments_of("studies/README.md")
def answers() -> Iterator[str]:
    """On how many datasets SA-CQL is better, and how many baselines reach their published scores."""
    six = scores_of("six_datasets")
    better = [gap for gap in differences(six, cells(six)) if gap.verdict.startswith("higher")]
    assert {gap.other for gap in better} == {"CQL"}, "never better than its controls"
    best, count = word(len(better)), word(len(six.datasets))
    yield f"better than CQL on {best} of {count} datasets, and never better than its controls"
    many = sum(all(reached(name)) for name in baselines.PUBLISHED)
    yield f"{word(many)} of {word(len(baselines.PUBLISHED))} do on all {word(len(baselines.DATASETS))} datasets"
    yield f"datasets, within {WITHIN} points"


@fragments_of("studies/table1/README.md")
def table1() -> Iterator[str]:
    """Its size, its parts, and where the shuffled control is run."""
    grid = TABLE1.whole()
    assert grid.scale.steps == 1_000_000, "a million"
    assert grid.scale.seeds == SEEDS
    yield f"# The paper's Table 1: {word(len(NAMES))} datasets, a million steps, {word(len(SEEDS))} seeds"
    assert 20 < max(seconds(TABLE1, part) for part in TABLE1.parts) / 60 < 30
    yield "# one part: half an hour of one GPU"
    yield "then a million steps of both together"
    yield f"from the paper's tables and {word(grid.scale.eval_episodes)} episodes per evaluation"
    yield f"it is run on {word(sum(map(len, SHUFFLED)))} datasets"


@fragments_of("studies/readings/README.md")
def readings() -> Iterator[str]:
    """Its questions, where they are asked, and what stands in for the mean weight of b1 = 5."""
    yield f"can be read in several ways. {word(len(readings_page.QUESTIONS))} questions"
    assert all(weight_range(name)[0] != 0 for name in RANGE)
    yield "On datasets whose b0 is not 0."
    (b1,) = {weight_range(name)[1] for name in NARROW}
    yield f"**Is b1 = {b1:g} just a larger α?** SA-CQL with b1 = {b1:g} against"
    means = sorted({float(sum(dualdice(name).bounds())) / 2 for name in NARROW})
    own = CQL().alpha
    assert [own * mean for mean in means] == list(LARGER_ALPHAS), "what its mean weight amounts to"
    yield f"CQL with α = {listed([f'{own:g}·{mean:g}' for mean in means])}"
    yield f"sapp experiment studies/readings/grid.py --scale paper --steps {READINGS_STEPS}"
    (value,) = {mean_of_range(name).value for name in RANGE}
    yield f"`--weights constant:{value:g}`, `--alpha {LARGER_ALPHAS[0]:g}`"


@fragments_of("studies/six_datasets/README.md")
def six_datasets() -> Iterator[str]:
    """What was trained, for how long, and on how many datasets SA-CQL is above CQL."""
    found = scores_of("six_datasets")
    better = [gap for gap in differences(found, cells(found)) if gap.verdict.startswith("higher")]
    assert {gap.other for gap in better} == {"CQL"}, "it beats no control"
    assert {gap.verdict for gap in better} == {"higher only before correction"}
    names = ", ".join(gap.dataset for gap in better)
    count = word(len(found.datasets))
    yield f"SA-CQL is above CQL on {word(len(better))} of {count} datasets ({names}), if that"
    seeds, episodes = played("six_datasets")
    assert len(found.members) == len(found.datasets) * len(found.variants) * seeds == 90, "ninety"
    yield f"We trained ninety policies: {count} datasets × {word(len(found.variants))} methods × {word(seeds)} seeds"
    assert millions("six_datasets") == 1
    yield "with one million transitions each. **Methods**"
    first, ratio, joint = (phase.steps for phase in sa_protocol())
    (last,) = last_steps(found, *found.variants)
    assert joint == 1_000_000
    yield f"as in the paper, {first:,} steps of CQL and {ratio:,} of the ratio alone"
    yield f"then {last:,} of both instead of the paper's million"
    hidden, batch = (shared("six_datasets", name) for name in ("hidden", "batch_size"))
    yield f"{word(len(hidden))} layers of {hidden[0]}, batch size {batch}, {word(episodes)} episodes per evaluation"
    earlier = medium_runs()
    assert {each.seed for each in earlier.members} == {each.seed for each in found.members}
    yield f"with the same {word(seeds)} seeds"
    (near,) = {float(sum(dualdice(name).bounds())) / 2 for name in found.datasets if name.startswith("walker2d")}
    yield f"keeps the mean weight near {near:g} (walker2d)"
    lost = {
        m.dataset
        for m in earlier.members
        if m.variant == "SA-CQL" and any(kind.health is RatioHealth.UNRELIABLE for _, kind in m.events)
    }
    assert lost == set(earlier.datasets)
    yield f"unreliable on all {word(len(lost))} datasets of the [earlier runs]"


@cache
def medium_runs() -> Experiment:
    """The earlier runs on the medium datasets."""
    (found,) = read([STUDIES / "medium_datasets" / "rows" / name for name in MEDIUM])
    return found


@fragments_of("studies/medium_datasets/README.md")
def medium_datasets() -> Iterator[str]:
    """What was trained, and for how long."""
    found = medium_runs()
    plans = [
        json.loads((STUDIES / "medium_datasets" / "rows" / n / "config.json").read_text(encoding="utf-8"))
        for n in MEDIUM
    ]
    (last,) = last_steps(found, *found.variants)
    yield f"The runs have only {last:,} joint steps"
    assert {problem["transitions"] for plan in plans for problem in plan["problems"]} == {1_000_000}
    yield "with one million transitions each. Networks"
    members = [member for plan in plans for member in plan["members"]]
    ((hidden, batch),) = {(tuple(m["algorithm"]["hidden"]), m["algorithm"]["batch_size"]) for m in members}
    yield f"Networks have {word(len(hidden))} layers of {hidden[0]}; batch size {batch}"
    first, ratio, _ = (phase.steps for phase in sa_protocol())
    begun = {
        int(r["updates"]) - int(r["step"])
        for n in MEDIUM
        for r in csv_rows(f"medium_datasets/rows/{n}/evaluations.csv")
    }
    assert begun == {first}
    (episodes,) = {plan["eval_episodes"] for plan in plans}
    seeds = {name: {m.seed for m in found.members if m.variant == name} for name in found.variants}
    assert len(seeds["CQL-half"]) == 1
    (own,) = {len(each) for name, each in seeds.items() if name != "CQL-half"}
    yield f"({first:,} + {ratio:,} + joint steps); {word(own)} seeds; {word(episodes)} episodes per evaluation"
    yield f"those of [{word(len(scores_of('six_datasets').datasets))} datasets]"
    alphas = {m["name"]: m["algorithm"]["alpha"] for m in members}
    assert alphas["CQL-half"] == alphas["CQL"] / 2
    yield "*CQL-half* is CQL with half its penalty, one seed"


@fragments_of("studies/skewed_coverage/README.md")
def skewed_coverage() -> Iterator[str]:
    """What was trained and for how long, and how far seeds are apart."""
    found = scores_of("skewed_coverage")
    seeds, episodes = played("skewed_coverage")
    count = word(len(found.datasets))
    short, long = last_steps(found, "occupancy", "dualdice", "infonce")
    yield f"({count} datasets, {word(seeds)} seeds, {short:,} to {long:,} joint steps)"
    means = skewed_tables.gaps(found, 0.5)
    p = {key: average(each).p for key, each in means.items()}
    assert p["occupancy", "shuffled"] < 0.05 < min(holm(list(p.values()))), "alone, but not after correction"
    yield f"a correction for {word(len(means))} comparisons"
    mixed = [name for name in found.datasets if "random" in name]
    assert mixed == [
        f"{name}-random{100 - 100 * SHARE:.0f}-medium{100 * SHARE:.0f}" for name in ("halfcheetah", "hopper")
    ]
    medium = len(found.datasets) - len(mixed)
    yield f"on the {word(medium)} medium datasets and on {word(len(mixed))} with strongly skewed"
    assert millions("skewed_coverage") == 1
    yield f"{100 - 100 * SHARE:g} % uniform actions and {100 * SHARE:g} % of D4RL's medium policy"
    yield "(halfcheetah, hopper; a million transitions each)"
    assert {each["weights"]["mean"] for each in members_of("skewed_coverage")} == {MEAN}
    yield f"**Every method has the same mean weight, {MEAN:g}, in every batch**"
    hidden, alpha = (shared("skewed_coverage", name) for name in ("hidden", "alpha"))
    yield f"{word(len(hidden))} layers of {hidden[0]}; α = {alpha:g};"
    metrics = [
        row for name in settings_of("skewed_coverage") for row in csv_rows(f"skewed_coverage/rows/metrics/{name}.csv")
    ]
    (first,) = {int(row["updates"]) - int(row["step"]) for row in metrics}
    yield f"{first:,} steps of CQL, then the ratio alone"
    yield f"then joint steps; {word(episodes)} episodes per evaluation"
    networks = len({(each.dataset, each.seed) for each in found.members})
    yield f"All {len(found.members)} members began from the same {networks} networks"
    yield f"at {long:,} joint steps (TD-InfoNCE: {short:,})"
    assert last_steps(found, "infonce") == [short]
    yield f"for the mean of {count}"
    what = "the mean of the evaluations in the second half of training"
    assert skewed_tables.differences(means, what) == sections_of(skewed_tables.PAGE)["late"]
    yield "*Late* means the second half of training"
    wide = 0
    for dataset in found.datasets:
        finals = ([one.mean(max(one.evaluations)) for one in found.of(dataset, name)] for name in found.variants)
        wide += bool(np.median([np.ptp(own) for own in finals]) > 10)
    yield f"differ by tens of points on {word(wide)} of the {count} datasets"


@fragments_of("studies/atari/README.md")
def atari() -> Iterator[str]:
    """The logs that the page's command makes, what the grid trains on them, and where it ends."""
    text = (STUDIES / "atari" / "README.md").read_text(encoding="utf-8")
    rows = csv_rows("atari/rows/curves.csv")
    games = list(dict.fromkeys(row["game"] for row in rows))
    (start,) = (game for game in games if "start" in game)
    last: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    updates: dict[tuple[str, str], int] = {}
    for row in rows:  # in the order of updates
        last[row["game"], row["column"]][row["seed"]] = float(row["return"])
        updates[row["game"], row["column"]] = int(row["updates"])
    methods = list(dict.fromkeys(row["column"] for row in rows if row["column"] != "REM"))
    for game in games:
        for other in methods:
            if other != "SA-CQL":
                assert compare(last[game, "SA-CQL"], last[game, other]).estimate.p > 0.05
    yield f"in {word(len(games) - 1)} games no difference between SA-CQL and CQL or its controls is significant"
    assert sorted(name.lower() for name in games if name != start) == sorted(GAMES)
    side, seed = (default(log_given, name) for name in ("rows", "seed"))
    (steps,) = {int(each.replace("_", "")) for each in re.findall(r"--steps ([\d_]+) --out logs", text)}
    made = -(-steps // side) * side
    yield f"We made {word(len(GAMES))} logs of {made:,} steps each"
    (shares,) = set(re.findall(r"--epsilon ([\d.,]+)", text))
    *some, end = [f"{100 * float(share):g}" for share in shares.split(",")]
    yield f"{word(len(some) + 1)} quarters of the steps have {', '.join(some)} and {end} % random actions"
    yield f"{side} games run in parallel with seed {seed}."
    assert set(re.findall(r"--temperature ([\d.]+)", text)) == {"0.25"}
    yield "Pong was sampled at a quarter of the policy's temperature"
    joint = int(found_in("studies/atari/grid.py", r"--steps (\d+)"))
    grid = atari_grid(scaled("small", steps=joint))
    first, ratio, _ = (phase.steps for phase in grid.families[0].phases(grid.scale, ["pong"]))
    plain, rem = (grid.families[place].variants[name]("pong") for place, name in ((0, "CQL"), (1, "REM")))
    assert set(grid.families[0].variants) == set(methods)
    yield f"{first:,} updates of CQL, {ratio:,} of the ratio alone"
    yield f"then {joint:,} joint updates of the {word(len(methods))} methods"
    assert {updates["Seaquest", name] for name in (*methods, "REM")} == {first + joint}
    yield f"(REM: {updates['Seaquest', 'REM']:,} of its own)"
    (seeds,) = {len(each) for each in last.values()}
    yield f"There are {word(seeds)} seeds; batch size {plain.batch_size} (REM {rem.batch_size})"
    assert plain.lr == rem.lr == SETTINGS["lr"] == 1.5e-4
    assert plain.target_every == rem.target_every
    yield f"Adam 1.5e-4 and a new target every {plain.target_every:,} updates for all"
    low, high = (float(bound) for bound in preset("sa-discrete-cql", "pong").weights.bounds())
    yield f"DualDICE's weights lie in [{low:g}, {high:g}] as in the paper"
    scale = grid.scale
    yield f"Evaluations have {word(scale.eval_episodes)} episodes"
    yield f"cut at {scale.eval_max_steps:,} agent steps, with ε = {EPSILON:g}"
    (fork,) = {updates["Pong", name] - first for name in methods}
    yield f"at {fork:,} joint updates; against REM"
    assert scaled("paper").steps == 1_000_000
    yield "The paper's runs have a million updates on other data"
    yield f"learned next to nothing in {updates['Pong', 'REM']:,} updates"
    (lowest,) = {value for name in (*methods, "REM") for value in last[start, name].values()}
    yield f"every member ends at −{-lowest:g}, the lowest score there is (the row *PyTorch's start*)"


@fragments_of("studies/baselines/README.md")
def baseline_scores() -> Iterator[str]:
    """Which reach their published scores, what they were trained with, and why two of them clone."""
    datasets, runs = word(len(baselines.DATASETS)), settings_of("baselines")
    for name in ("TD3+BC", "IQL", "ReBRAC", "Fisher-BRC"):
        assert all(reached(name))
        assert ("CORL" in baselines.PUBLISHED[name][0]) == (name != "Fisher-BRC")
    yield f"TD3+BC, IQL and ReBRAC score within {WITHIN} of CORL on all {datasets} medium datasets"
    yield f"Fisher-BRC within {WITHIN} of the SA-PP paper's figures"
    assert millions("baselines") == 1
    seeds, episodes = played("baselines")
    yield f"with one million transitions each. There are {word(seeds)} seeds, {word(episodes)} episodes per evaluation"
    on_cpu = [run for _, run in baselines.METHODS.values() if runs[run]["versions"]["device"] == "cpu"]
    assert [run for _, run in list(baselines.METHODS.values())[-len(on_cpu) :]] == on_cpu
    assert runs["hopper-bc"]["versions"]["device"] == "cpu"
    yield f"(BC on hopper and the last {word(len(on_cpu))} methods: float32 on a CPU)"
    (fisher,) = {each["behaviour_steps"] for each in runs["sa-fisher-brc"]["methods"]["fisher-brc"]}
    (brac,) = {each["behaviour_steps"] for each in runs["sa-brac"]["methods"]["brac"]}
    warm = {int(row["updates"]) - int(row["step"]) for row in csv_rows("baselines/rows/metrics/sa-bear.csv")}
    assert warm == {int(each["warm_steps"]) for each in runs["sa-bear"]["methods"]["bear"]}
    yield f"Fisher-BRC had {fisher:,} steps of cloning (published: {preset('fisher-brc').behaviour_steps // 10**6}M)"
    yield f"and BRAC-v {brac:,}, both then some steps of their own, and BEAR a warm start of {max(warm):,}."
    ((cloned, trained),) = {tuple(n for _, n in runs[run]["phases"]) for run in on_cpu}
    assert {max(each) for (run, *_), each in baselines.scores().items() if run in on_cpu} == {cloned + trained}
    yield f"The {cloned + trained:,} steps of BRAC-p and brac-mmd include {cloned:,} of cloning"
    assert {each["decay_steps"] for each in runs["td3bc+iql"]["methods"]["iql"]} == {1e6}
    yield "IQL's learning rate decays over the whole million"
    yield f"A single evaluation of {word(seeds)} seeds swings by several points"
    yield f"where the authors draw {BCQ().next_actions}."
    early = 100_000
    for dataset in baselines.DATASETS:
        assert np.mean(final_scores("EDAC", dataset, early)) < 0.3 * np.mean(final_scores("EDAC", dataset))
    yield f"EDAC learns little in its first {early:,} steps"
    (critics,) = {each["critics"] for each in runs["hopper-sac-n"]["methods"]["sac-n"]}
    assert critics == preset("sac-n", "hopper-medium").critics
    yield f"on hopper its published {critics} critics would take hours"
    yield from clones()
    yield f"ours is {BRAC().alpha:g}. Runs with other α"
    yield f"the {BRAC().behaviour_steps:,} published steps of cloning"
    mmd, draws = preset("brac-mmd", "hopper-medium"), BRAC().samples
    yield f"For the MMD, α is {mmd.alpha:g}."
    yield f"two sets of {word(draws)} draws from the same distribution are (2/{draws})·(1 − E k) apart"
    yield f"With α = {mmd.alpha:g} that exceeds the reward per step"


def clones() -> Iterator[str]:
    """Multipliers at their bound and trust that is gone, at the last logged step, and BEAR's draws."""
    last: dict[tuple[str, str], tuple[int, float]] = {}
    for name, metric in (("sa-bear", "actor/alpha"), ("uwac", "critic/trust")):
        for row in csv_rows(f"baselines/rows/metrics/{name}.csv"):
            key = metric, f"{row['algorithm']} {row['dataset']}"
            last[key] = max(last.get(key, (0, 0.0)), (int(row["step"]), float(row[metric])))
    for (metric, _), (_, value) in last.items():
        assert value == pytest.approx(np.exp(10), rel=1e-3) if metric == "actor/alpha" else value < 1e-3
    bound = [name.split() for metric, name in last if metric == "actor/alpha"]
    datasets = {dataset for _, dataset in bound}
    assert len(bound) == len(datasets) * len({variant for variant, _ in bound})
    yield f"α is at its bound, e¹⁰, on all {word(len(datasets))} datasets"
    own, draws = BEAR(), word(BEAR().mmd_samples)
    yield f"The published MMD is estimated from {draws} draws per side"
    yield f"two sets of {draws} draws from the same distribution are further apart than the permitted {own.threshold:g}"
    many = found_in("tests/algorithms/test_bear.py", r"distance\((\d+)\)")
    yield f"with {many} draws per side the constraint could be met"
    yield "so the trust, exp(−β·Var), falls towards 0"


@fragments_of("studies/benchmark_data/README.md")
def benchmark_data() -> Iterator[str]:
    """How many datasets, how far they are from D4RL's, and how the policies were trained and measured."""
    found = comparison.read(STUDIES / "benchmark_data" / "rows" / "d4rl-medium" / "comparison.json")
    assert len(found) == 3
    for each in found:
        assert each.difference[1] < 0 < each.difference[2]
        low, high = each.regenerated.length_interval
        assert low <= each.published_length <= high
        assert min(each.ks_any_p, each.energy_p) > 0.05
    yield f"every {LEVEL} interval of the difference contains zero, and no test distinguishes"
    count = word(len(NAMES))
    yield f"The {count} datasets made with the shipped policies"
    yield f"# the {count} datasets on this machine"
    yield f"## The {count} datasets beside D4RL's"
    rows = eighteen.read(STUDIES / "benchmark_data" / "rows" / "datasets.csv")
    apart = [abs(rows[name]["return_mean"] / d4rl_return(name) - 1) for name in rows if name in D4RL_RETURNS]
    yield f"within {100 * max(apart):.1f} % of D4RL's wherever D4RL's is published"
    assert {round(each.regenerated.transitions / 1e6, 2) for each in found} == {1}
    yield "These are one million transitions for each medium file"
    (genuine,) = {len(each.genuine_returns) for each in found}
    yield f"the {word(genuine)} genuine episodes of each file with {comparison.POOL} regenerated ones"
    yield f"With {word(genuine)} genuine episodes, only gross differences"
    place = QUALITIES.index("medium-replay")
    sizes = (round(TRANSITIONS[name][place] / 1e5) * 100 for name in ("halfcheetah", "hopper", "walker2d"))
    yield f"({' / '.join(map(str, sizes))} thousand steps)"
    card = json.loads((FOLDER / CARD).read_text(encoding="utf-8"))
    (episodes,) = {each["episodes"] for each in card["environments"].values()}
    yield f"measurements of every snapshot, {episodes} episodes each"
    run = json.loads((STUDIES / "benchmark_data" / "rows" / "sac" / "config.json").read_text(encoding="utf-8"))
    (played_each,) = {int(row["episodes"]) for row in csv_rows("benchmark_data/rows/sac/evaluations.csv")}
    members = len(run["environments"]) * len(run["seeds"])
    yield f"{word(members)} runs of {word(round(run['steps'] / 1e6, 3))} million steps each"
    yield f"{word(played_each)} episodes per evaluation, TF32"
